// SPDX-License-Identifier: Apache-2.0
#include "rcnPredictionFolder.h"

#include <algorithm>
#include <filesystem>

#include "rcn/rcn.h"
#include "rcnFileName.h"

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

/// Of a file in the folder only: nothing that a manifest says may reach elsewhere.
std::string FileName(const JsonReader& reader, const std::string& file)
{
  if (file.empty() || file == "." || file == ".." || fs::path(file).filename() != file)
  {
    reader.Fail("\"files\" must be names of files in this folder.");
  }
  return file;
}

/// How all cases of the folder were predicted; every key is checked, because a person may have edited the file.
PredictionRun RunFrom(const JsonReader& reader, const std::string& path)
{
  PredictionRun run;
  run.Model = reader.Text("model");
  run.Hash = reader.Text("hash");
  run.Readout = reader.Text("readout");
  run.Levels = reader.Boolean("levels");
  const std::string tie = reader.Text("tie");
  run.TieBackground = tie == "background";
  rcn_readout readout{};
  int atLeast = 0;
  if (!ParseReadout(readout, atLeast, run.Readout))
  {
    reader.Fail(std::string("\"readout\" must be ") + ReadoutChoices + ".");
  }
  if (tie != "foreground" && tie != "background")
  {
    reader.Fail("\"tie\" must be foreground or background.");
  }
  const json_t* correction = reader.Get("correction");
  if (correction && !json_is_null(correction))
  {
    run.Correction = std::make_shared<Recalibration>(ParseRecalibration(JsonText(correction), path));
  }
  const json_t* volumes = reader.Get("volumes");
  if (volumes && !json_is_null(volumes))
  {
    run.Volumes = std::make_shared<VolumeScores>(ParseVolumeScores(volumes, path + " cannot be used"));
  }
  run.Structures = StructuresFrom(reader);
  const json_t* correlation = reader.Get("correlation");
  run.Correlation = correlation && !json_is_null(correlation) ? reader.Number("correlation", 0, 1) : NAN;
  return run;
}

} // namespace

// What decides how numbers came about. The model's name is not in it: a file can be renamed, its hash stays.
bool IsSameRun(const PredictionRun& a, const PredictionRun& b)
{
  const auto correction = [](const PredictionRun& run) { return run.Correction ? RecalibrationText(*run.Correction) : ""; };
  return a.Hash == b.Hash && a.Readout == b.Readout && a.TieBackground == b.TieBackground && a.Levels == b.Levels &&
    correction(a) == correction(b) && NamesOf(a.Structures) == NamesOf(b.Structures);
}

void RefuseCorrected(const PredictionRun* run, const std::string& name)
{
  if (run && run->Correction)
  {
    const Recalibration& correction = *run->Correction;
    throw Error(RCN_EINVALID,
      "The predictions of " + name + " are corrected already (" + rcn_recalib_name(correction.Correction.method) +
        ", fitted to " + Counted(static_cast<int64_t>(correction.Cases.size()), "case") + ").",
      "corrected");
  }
}

// A map of levels gives any readout; a map of one probability has been read out already, for good.
void CheckReadout(const PredictionRun* run, bool levels, const EvaluationOptions& options, const std::string& file)
{
  const std::string wanted = ReadoutText(options.Calib.readout, options.Calib.at_least);
  if (run && run->Levels && !levels && wanted != run->Readout)
  {
    throw Error(RCN_EINVALID,
      file + " holds the probability of the readout " + run->Readout + ", not of " + wanted +
        "; evaluate that readout, or predict with levels.");
  }
}

// Which map of a case it is, and the ending of its file: "levels", "prob", or of one of several structures.
std::string LevelsMap(const std::string& structure)
{
  return FileNameFrom(structure) + "_levels";
}

std::string PredictionFolder::ManifestOf(const std::string& folder)
{
  return (fs::path(folder) / "predictions.json").string();
}

// Folders without a manifest are read, too: maps of other programs, found by their names.
PredictionFolder::PredictionFolder(const std::string& path) : Path_(path)
{
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
  {
    throw Error(RCN_EIO, path + " is not a folder of predictions.");
  }
  if (fs::exists(ManifestOf(path), ignored))
  {
    this->Read();
  }
}

void PredictionFolder::Read()
{
  const std::string path = ManifestOf(this->Path_), about = path + " is not a usable manifest of predictions",
                    remedy = "Remove it, or use another folder.";
  const JsonHandle root = ParseJson(ReadText(path), about, remedy);
  const JsonReader reader(root.get(), about, remedy);
  this->Run_ = RunFrom(reader, path);
  for (const JsonReader& one : reader.Objects("cases"))
  {
    const std::string id = one.Text("case");
    for (const auto& file : one.TextsByKey("files"))
    {
      this->Cases_[id][file.first] = FileName(one, file.second);
      // Files that this class wrote at some time. Only these may it remove: others in the folder are somebody else's.
      this->Older_[id].insert(file.second);
    }
  }
  for (const JsonReader& one : reader.Objects("superseded"))
  {
    const std::string id = one.Text("case");
    for (const std::string& file : one.Texts("files"))
    {
      this->Superseded_[id].insert(FileName(one, file));
      this->Older_[id].insert(file);
    }
  }
  this->HasManifest_ = true;
}

std::string PredictionFolder::FindMap(const std::string& id, const std::string& map) const
{
  const auto found = this->Cases_.find(id);
  if (found == this->Cases_.end() || !found->second.count(map))
  {
    return "";
  }
  const std::string file = (fs::path(this->Path_) / found->second.at(map)).string();
  std::error_code ignored;
  if (!fs::exists(file, ignored))
  {
    throw Error(
      RCN_EIO, file + ", which " + ManifestOf(this->Path_) + " names, is not there any more; predict case " + id + " again.");
  }
  return file;
}

// Levels before a probability: they say more. In a folder with a manifest nothing is looked for by name, because a map that the
// manifest does not name may be of an earlier run.
std::string PredictionFolder::Find(const std::string& id) const
{
  std::error_code ignored;
  if (this->HasManifest_)
  {
    for (const char* map : { "levels", "prob" })
    {
      const std::string file = this->FindMap(id, map);
      if (!file.empty())
      {
        return file;
      }
    }
    throw Error(RCN_EIO,
      ManifestOf(this->Path_) + " names no prediction for case " + id +
        "; predict it, by the same model and in the same way as the others of this folder.");
  }
  // In order of preference; the last is a map that is called like its case.
  for (const char* suffix : { "_levels", "_prob", "" })
  {
    for (const char* extension : { ".nrrd", ".nii.gz", ".nii", ".mha", ".tif", ".tiff", ".png" })
    {
      const fs::path path = fs::path(this->Path_) / (id + suffix + extension);
      if (fs::exists(path, ignored))
      {
        return path.string();
      }
    }
  }
  throw Error(
    RCN_EIO, this->Path_ + " holds no prediction for case " + id + " (" + id + "_levels.nrrd or " + id + "_prob.nrrd).");
}

// Of a map that somebody names by its file: how it was made, if the folder knows.
std::shared_ptr<const PredictionRun> PredictionFolder::RunOf(const std::string& file)
{
  const fs::path path(file);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  std::error_code ignored;
  if (!fs::exists(ManifestOf(folder), ignored))
  {
    return nullptr;
  }
  const PredictionFolder read(folder);
  for (const auto& one : read.Cases_)
  {
    for (const auto& map : one.second)
    {
      if (map.second == path.filename().string())
      {
        return std::make_shared<PredictionRun>(read.Run_);
      }
    }
  }
  return nullptr;
}

// Maps that are about to be replaced are named as superseded first, and cases of another run go: a folder is about one run, so
// that figures of its cases may be averaged. Written to the disk before any map is, so that a run that ends half-way leaves a
// manifest that is true.
std::string PredictionFolder::Begin(const PredictionRun& run, const std::vector<std::string>& ids)
{
  std::string remark;
  const auto supersede = [this](const std::string& id) {
    for (const auto& map : this->Cases_[id])
    {
      this->Superseded_[id].insert(map.second);
    }
    this->Cases_.erase(id);
  };
  std::for_each(ids.begin(), ids.end(), supersede);
  if (!this->Cases_.empty() && !IsSameRun(run, this->Run_))
  {
    remark = ManifestOf(this->Path_) + " no longer names " + std::to_string(this->Cases_.size()) +
      (this->Cases_.size() == 1 ? " case" : " cases") + " that another model, readout or correction predicted; predict " +
      (this->Cases_.size() == 1 ? "it" : "them") + " again, or use one folder for each.";
    while (!this->Cases_.empty())
    {
      supersede(std::string(this->Cases_.begin()->first));
    }
  }
  this->Run_ = run;
  this->Finish();
  return remark;
}

std::string PredictionFolder::FileFor(
  const std::string& folder, const std::string& id, const std::string& map, const std::string& extension)
{
  return (fs::path(folder) / (id + "_" + map + extension)).string();
}

// After a case was written anew: its maps of earlier runs that the new one has not replaced, such as levels where now only a
// probability is written.
void PredictionFolder::RemoveOlder(const std::string& id, const std::map<std::string, std::string>& files) const
{
  const auto older = this->Older_.find(id);
  for (const std::string& file : older == this->Older_.end() ? std::set<std::string>() : older->second)
  {
    const bool fresh =
      std::any_of(files.begin(), files.end(), [&](const auto& one) { return fs::path(one.second).filename() == file; });
    std::error_code ignored;
    if (!fresh)
    {
      fs::remove(fs::path(this->Path_) / file, ignored);
    }
  }
}

void PredictionFolder::Add(const std::string& id, const std::map<std::string, std::string>& files)
{
  Files& own = this->Cases_[id];
  own.clear();
  for (const auto& one : files)
  {
    own[one.first] = fs::path(one.second).filename().string();
  }
  // Its files have been replaced or removed.
  this->Superseded_.erase(id);
}

void PredictionFolder::Finish()
{
  if (!this->HasManifest_ && this->Cases_.empty())
  {
    return; // a run that failed leaves nothing behind
  }
  this->HasManifest_ = true;
  JsonArray cases, superseded;
  for (const auto& one : this->Cases_)
  {
    cases.Add(JsonObject{ { "case", one.first }, { "files", one.second } });
  }
  for (const auto& one : this->Superseded_)
  {
    superseded.Add(
      JsonObject{ { "case", one.first }, { "files", std::vector<std::string>(one.second.begin(), one.second.end()) } });
  }
  const PredictionRun& run = this->Run_;
  JsonObject manifest{ { "model", run.Model }, { "hash", run.Hash }, { "readout", run.Readout },
    { "tie", run.TieBackground ? "background" : "foreground" }, { "levels", run.Levels },
    { "correction", run.Correction ? Json(ParseJson(RecalibrationText(*run.Correction), "").release()) : Json(nullptr) },
    { "volumes", run.Volumes && !run.Correction ? Json(VolumeScoresJson(*run.Volumes)) : Json(nullptr) } };
  if (!run.Structures.empty())
  {
    manifest.Set("structures", StructuresJson(run.Structures)).Set("correlation", run.Correlation);
  }
  manifest.Set("cases", cases).Set("superseded", superseded);
  WriteText(ManifestOf(this->Path_), DocumentText(manifest.Get()));
}

} // namespace rcn
