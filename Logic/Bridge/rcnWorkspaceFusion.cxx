// SPDX-License-Identifier: Apache-2.0
/// The workspace's fusion, of one structure and of several, and what fused maps say about themselves.
#include "rcnWorkspace.h"

#include <algorithm>
#include <sstream>

#include "rcnReport.h"

namespace rcn
{

namespace
{

// Written into the files of fused maps, and recognized when somebody judges such a map as if it were a prediction.
const char* const FusionNoteBegin = "rater-consensus fuse ";

} // namespace

std::string FusionNote(const std::string& method, const std::vector<std::string>& raters)
{
  std::string note = FusionNoteBegin + method + ": ";
  for (size_t r = 0; r < raters.size(); ++r)
  {
    note += (r ? "," : "") + raters[r];
  }
  return note;
}

// One common rater is enough: whoever took part in a map agrees with it more than chance would have it.
bool IsFusedFrom(const std::string& note, const std::vector<std::string>& raters)
{
  if (note.rfind(FusionNoteBegin, 0) != 0)
  {
    return false;
  }
  std::istringstream names(note.substr(std::min(note.size(), note.find(": ") + 2)));
  for (std::string name; std::getline(names, name, ',');)
  {
    if (std::find(raters.begin(), raters.end(), name) != raters.end())
    {
      return true;
    }
  }
  return false;
}

FusionReport Workspace::Fuse(const rcn_fusion_options& options) const
{
  this->RequireCase();
  rcn_context* context = this->Context_.get();
  FusionReport report;
  report.Map = Volume::Allocate(*rcn_votes_geometry(this->Votes()), RCN_FLOAT32);
  report.MapContent = ContentOf(options);
  Check(rcn_fuse(static_cast<float*>(report.Map.Data()), &report.Figures, context, this->Votes(), &options), context);
  report.Map.SetNote(FusionNote(rcn_method_name(options.method), this->PresentRaters()));
  return report;
}

std::vector<std::string> Workspace::PresentRaters() const
{
  return NamesOf(rcn_votes_present(this->Votes()), this->RaterNames());
}

void Workspace::FuseLabels(FusionReport& report, const rcn_fusion_options& options) const
{
  rcn_context* context = this->Context_.get();
  const rcn_votes* votes = this->Votes_.get();
  const size_t labels = this->Structures_.size() + 1;
  // A label for each pattern of answers; the map is one look-up per voxel.
  std::vector<uint8_t> table(static_cast<size_t>(rcn_votes_pattern_count(votes)));
  if (options.method == RCN_STAPLE)
  {
    report.Confusion.resize(this->Raters_.size() * labels * labels);
    Check(rcn_label_staple_patterns(table.data(), nullptr, report.Confusion.data(), &report.Labels, context, votes, &options),
      context);
  }
  else
  {
    Check(rcn_plurality_patterns(table.data(), context, votes), context);
  }
  const std::vector<uint8_t> values = LabelValues(this->Structures_);
  for (uint8_t& label : table)
  {
    // From the number of the structure to the value in people's own files.
    label = label ? values[label - 1U] : label;
  }
  report.Map = Volume::Allocate(*rcn_votes_geometry(votes), RCN_UINT8);
  report.MapContent = Content::Levels;
  Check(rcn_votes_expand_u8(static_cast<uint8_t*>(report.Map.Data()), context, votes, table.data()), context);
}

FusionReport Workspace::FuseStructures(const rcn_fusion_options& options)
{
  this->RequireCase();
  if (!this->HasStructures())
  {
    return this->Fuse(options);
  }
  FusionReport report;
  // These have a form for labels, in which structures compete for a voxel; the others are made of one structure at a time.
  if (options.method == RCN_MEDIAN || options.method == RCN_STAPLE)
  {
    if (options.method == RCN_MEDIAN ? options.tie != RCN_TIE_FOREGROUND : options.staple_confidence != 1)
    {
      throw Error(RCN_EINVALID,
        options.method == RCN_MEDIAN ? "Of several structures, a tie goes to a structure before the background."
                                     : "STAPLE of several structures has no factor on the prior probability.");
    }
    this->FuseLabels(report, options);
  }
  else
  {
    report.MapContent = ContentOf(options);
    report.Map = this->MapOfEach([&] {
      const FusionReport one = this->Fuse(options);
      report.Each.push_back(one.Figures);
      return one.Map;
    });
  }
  report.Map.SetNote(FusionNote(rcn_method_name(options.method), this->PresentRaters()));
  return report;
}

Content ContentOf(const rcn_fusion_options& options)
{
  switch (options.method)
  {
    case RCN_ORC: return Content::Levels;
    case RCN_RANDOM:
    case RCN_MEDIAN:
    case RCN_SIMPLE: return Content::Mask;
    case RCN_STAPLE: return options.staple_output == RCN_STAPLE_MASK ? Content::Mask : Content::Probability;
    default: return Content::Probability;
  }
}

} // namespace rcn
