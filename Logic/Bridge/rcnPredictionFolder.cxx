// SPDX-License-Identifier: Apache-2.0
#include "rcnPredictionFolder.h"

#include <algorithm>
#include <filesystem>

#include "rcn/rcn.h"

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

[[noreturn]] void Fail(const std::string& path, const std::string& what)
{
  throw Error(RCN_EFORMAT, path + " is not a usable manifest of predictions: " + what + " Remove it, or use another folder.");
}

std::string TextAt(const json_t* object, const char* key, const std::string& path)
{
  const json_t* text = json_object_get(object, key);
  if (!json_is_string(text))
  {
    Fail(path, std::string("\"") + key + "\" must be a text.");
  }
  return json_string_value(text);
}

/// Of a file in the folder only: nothing that a manifest says may reach elsewhere.
std::string FileName(const json_t* name, const std::string& path)
{
  const std::string file = json_is_string(name) ? json_string_value(name) : "";
  if (file.empty() || file == "." || file == ".." || fs::path(file).filename() != file)
  {
    Fail(path, "\"files\" must be names of files in this folder.");
  }
  return file;
}

PredictionRun RunFrom(const json_t* root, const std::string& path)
{
  PredictionRun run;
  run.Model = TextAt(root, "model", path);
  run.Hash = TextAt(root, "hash", path);
  run.Readout = TextAt(root, "readout", path);
  const std::string tie = TextAt(root, "tie", path);
  rcn_readout readout{};
  int atLeast = 0;
  if (!ParseReadout(readout, atLeast, run.Readout))
  {
    Fail(path, std::string("\"readout\" must be ") + ReadoutChoices + ".");
  }
  if (tie != "foreground" && tie != "background")
  {
    Fail(path, "\"tie\" must be foreground or background.");
  }
  run.TieBackground = tie == "background";
  const json_t* levels = json_object_get(root, "levels");
  if (!json_is_boolean(levels))
  {
    Fail(path, "\"levels\" must be true or false.");
  }
  run.Levels = json_is_true(levels);
  const json_t* correction = json_object_get(root, "correction");
  if (correction && !json_is_null(correction))
  {
    run.Correction = std::make_shared<Recalibration>(ParseRecalibration(JsonText(correction), path));
  }
  return run;
}

} // namespace

bool IsSameRun(const PredictionRun& a, const PredictionRun& b)
{
  const auto correction = [](const PredictionRun& run) { return run.Correction ? RecalibrationText(*run.Correction) : ""; };
  return a.Hash == b.Hash && a.Readout == b.Readout && a.TieBackground == b.TieBackground && a.Levels == b.Levels &&
    correction(a) == correction(b);
}

void RefuseCorrected(const PredictionRun* run, const std::string& name)
{
  if (run && run->Correction)
  {
    throw Error(RCN_EINVALID, name + " holds predictions that are corrected already.", "corrected");
  }
}

void CheckReadout(const PredictionRun* run, const Volume& prediction, const EvaluationOptions& options, const std::string& file)
{
  const std::string wanted = ReadoutText(options.Calib.readout, options.Calib.at_least);
  if (run && run->Levels && prediction.View().components == 1 && wanted != run->Readout)
  {
    throw Error(RCN_EINVALID,
      file + " holds the probability of the readout " + run->Readout + ", not of " + wanted +
        "; judge by that readout, or predict with levels.");
  }
}

std::string PredictionFolder::ManifestOf(const std::string& folder)
{
  return (fs::path(folder) / "predictions.json").string();
}

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
  const std::string path = ManifestOf(this->Path_);
  const std::string text = ReadText(path);
  json_error_t error;
  const JsonHandle root(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error));
  if (!root)
  {
    Fail(path, std::string("it is not valid JSON (") + error.text + ").");
  }
  this->Run_ = RunFrom(root.get(), path);
  const json_t* cases = json_object_get(root.get(), "cases");
  if (!json_is_array(cases))
  {
    Fail(path, "\"cases\" must be a list.");
  }
  for (size_t i = 0; i < json_array_size(cases); ++i)
  {
    const json_t* one = json_array_get(cases, i);
    const std::string id = TextAt(one, "case", path);
    const char* map;
    json_t* name;
    json_object_foreach(json_object_get(one, "files"), map, name)
    {
      this->Cases_[id][map] = FileName(name, path);
      this->Older_[id].insert(FileName(name, path));
    }
  }
  const json_t* superseded = json_object_get(root.get(), "superseded");
  for (size_t i = 0; i < json_array_size(superseded); ++i)
  {
    const json_t* one = json_array_get(superseded, i);
    const std::string id = TextAt(one, "case", path);
    const json_t* files = json_object_get(one, "files");
    for (size_t f = 0; f < json_array_size(files); ++f)
    {
      this->Superseded_[id].insert(FileName(json_array_get(files, f), path));
    }
    this->Older_[id].insert(this->Superseded_[id].begin(), this->Superseded_[id].end());
  }
  this->HasManifest_ = true;
}

std::string PredictionFolder::Find(const std::string& id) const
{
  std::error_code ignored;
  if (this->HasManifest_)
  {
    const auto found = this->Cases_.find(id);
    for (const char* map : { "levels", "prob" })
    {
      if (found == this->Cases_.end() || !found->second.count(map))
      {
        continue;
      }
      const std::string file = (fs::path(this->Path_) / found->second.at(map)).string();
      if (!fs::exists(file, ignored))
      {
        throw Error(RCN_EIO,
          file + ", which " + ManifestOf(this->Path_) + " names, is not there any more; predict case " + id + " again.");
      }
      return file;
    }
    throw Error(RCN_EIO,
      ManifestOf(this->Path_) + " names no prediction for case " + id +
        "; predict it, by the same model and in the same way as the others of this folder.");
  }
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
  this->Superseded_.erase(id);
}

void PredictionFolder::Finish()
{
  if (!this->HasManifest_ && this->Cases_.empty())
  {
    return; // a run that failed leaves nothing behind
  }
  this->HasManifest_ = true;
  const JsonHandle root(json_object());
  json_object_set_new(root.get(), "version", json_string(RCN_VERSION));
  json_object_set_new(root.get(), "model", JsonString(this->Run_.Model));
  json_object_set_new(root.get(), "hash", JsonString(this->Run_.Hash));
  json_object_set_new(root.get(), "readout", JsonString(this->Run_.Readout));
  json_object_set_new(root.get(), "tie", json_string(this->Run_.TieBackground ? "background" : "foreground"));
  json_object_set_new(root.get(), "levels", json_boolean(this->Run_.Levels));
  json_error_t error;
  const std::string correction = this->Run_.Correction ? RecalibrationText(*this->Run_.Correction) : "";
  json_object_set_new(
    root.get(), "correction", correction.empty() ? json_null() : json_loadb(correction.data(), correction.size(), 0, &error));
  json_t* cases = json_array();
  for (const auto& one : this->Cases_)
  {
    json_t* entry = json_object();
    json_t* files = json_object();
    for (const auto& map : one.second)
    {
      json_object_set_new(files, map.first.c_str(), JsonString(map.second));
    }
    json_object_set_new(entry, "case", JsonString(one.first));
    json_object_set_new(entry, "files", files);
    json_array_append_new(cases, entry);
  }
  json_object_set_new(root.get(), "cases", cases);
  json_t* superseded = json_array();
  for (const auto& one : this->Superseded_)
  {
    json_t* entry = json_object();
    json_object_set_new(entry, "case", JsonString(one.first));
    json_object_set_new(entry, "files", JsonStrings({ one.second.begin(), one.second.end() }));
    json_array_append_new(superseded, entry);
  }
  json_object_set_new(root.get(), "superseded", superseded);
  WriteText(ManifestOf(this->Path_), JsonText(root.get()));
}

} // namespace rcn
