// SPDX-License-Identifier: Apache-2.0
#include "rcnLabelTemperature.h"

#include <algorithm>
#include <cstdint>

namespace rcn
{

// Each case is read once and leaves small sums behind: fitting to all of them, or to all but one, reads no voxel again.
LabelTemperature::LabelTemperature(rcn_context* context, int structures, const EvaluationOptions& options)
  : Context_(context), Structures_(structures), Options_(options)
{
}

LabelTemperature::~LabelTemperature() = default;

LabelTemperature::Handle LabelTemperature::New() const
{
  rcn_temperature* temperature = nullptr;
  Check(rcn_temperature_create_labels(&temperature, this->Context_, this->Structures_), this->Context_);
  return Handle(temperature);
}

void LabelTemperature::Add(const Case& one, size_t number, const rcn_votes* votes, const CasePrediction& prediction)
{
  const StructureMaps* maps = prediction.Structures.get();
  if (!maps || !maps->Levels.empty())
  {
    throw Error(RCN_EINVALID,
      "A temperature of several structures needs the share of each label; " + prediction.File +
        " has separate levels of each structure.");
  }
  // Fitted where it is judged; a case with nothing there has nothing to say.
  const auto inside = Judging::RegionOf(this->Context_, votes, this->Options_);
  if (inside && std::find(inside->begin(), inside->end(), 1) == inside->end())
  {
    return;
  }
  const Volume means = CompleteShares(this->Context_, maps->Shares, prediction.File);
  const rcn_calib_case given = { votes, means.View(), inside ? inside->data() : nullptr, nullptr };
  Entry entry{ one.Id.empty() ? prediction.File : one.Id, FingerprintOf(prediction), this->New() };
  Check(rcn_temperature_add_labels(entry.Sums.get(), this->Context_, &given), this->Context_, prediction.File);
  this->Cases_[number] = std::move(entry);
}

void LabelTemperature::Share(Processes& processes)
{
  if (!processes.AreSeveral())
  {
    return;
  }
  SharedRecords records; // what is no sum
  for (const auto& one : this->Cases_)
  {
    records.Set(one.first, JsonObject{ { "id", one.second.Id }, { "fingerprint", one.second.Fingerprint } }.Release());
  }
  records.Merge(processes);
  for (size_t number = 0; number < records.Count(); ++number)
  {
    const json_t* record = records.Get(number);
    if (!record)
    {
      continue;
    }
    // One process has the sums and the others zeros: adding up changes no bit.
    Entry& entry = this->Cases_[number];
    entry.Id = json_string_value(json_object_get(record, "id"));
    entry.Fingerprint = json_string_value(json_object_get(record, "fingerprint"));
    entry.Sums = entry.Sums ? std::move(entry.Sums) : this->New();
    Check(rcn_temperature_share(entry.Sums.get(), this->Context_, processes.Comm()), this->Context_);
  }
}

Recalibration LabelTemperature::FitTo(size_t without) const
{
  const Handle all = this->New();
  for (const auto& one : this->Cases_)
  {
    if (one.first != without)
    {
      Check(rcn_temperature_merge(all.get(), this->Context_, one.second.Sums.get()), this->Context_);
    }
  }
  Recalibration out = RecalibrationFor(this->Options_);
  Check(rcn_temperature_fit(&out.Correction, this->Context_, all.get()), this->Context_);
  return out;
}

Recalibration LabelTemperature::Fit() const
{
  Recalibration out = this->FitTo(SIZE_MAX);
  for (const auto& one : this->Cases_)
  {
    out.Cases.push_back(one.second.Id);
    out.Fingerprints.push_back(one.second.Fingerprint);
  }
  return out;
}

std::map<std::string, Recalibration> LabelTemperature::FitWithoutEach() const
{
  std::map<std::string, Recalibration> fits;
  for (const auto& one : this->Cases_)
  {
    try
    {
      fits[one.second.Id] = this->FitTo(one.first);
    }
    catch (const Error& error)
    {
      // Without that case there may be nothing left to fit to: it then has no correction that did not know it.
      if (error.Status() != RCN_EDATA)
      {
        throw;
      }
      fits.erase(one.second.Id);
    }
  }
  return fits;
}

} // namespace rcn
