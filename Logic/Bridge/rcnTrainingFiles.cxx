// SPDX-License-Identifier: Apache-2.0
#include "rcnTrainingFiles.h"

#include <filesystem>
#include <limits>

#include "rcn/rcn_model.h"
#include "rcnFile.h"
#include "rcnReport.h"

namespace rcn
{

namespace fs = std::filesystem;

namespace
{

const std::string ModelEnding = ".safetensors";

/// The figures of an epoch in the order of the log, so that checkpoint, log and results cannot differ.
const struct
{
  const char* Name;
  double TrainingEpoch::* Value;
} Columns[] = {
  { "rate", &TrainingEpoch::Rate },
  { "loss", &TrainingEpoch::Loss },
  { "rps", &TrainingEpoch::Rps },
  { "mr_ece_majority", &TrainingEpoch::MajorityMrEce },
  { "mr_ece_expected", &TrainingEpoch::ExpectedMrEce },
  { "auc", &TrainingEpoch::Auc },
  { "dice", &TrainingEpoch::Dice },
  { "seconds", &TrainingEpoch::Seconds },
  { "megabytes", &TrainingEpoch::Megabytes },
};

} // namespace

json_t* EpochJson(const TrainingEpoch& epoch)
{
  JsonObject json{ { "epoch", epoch.Epoch } };
  for (const auto& column : Columns)
  {
    json.Set(column.Name, epoch.*column.Value);
  }
  json.Set("best", epoch.Best);
  json.Set("averaged", epoch.Averaged);
  json.Set("score", epoch.IsBrier ? "brier" : "rps");
  return json.Release();
}

json_t* EpochsJson(const std::vector<TrainingEpoch>& epochs)
{
  json_t* array = json_array();
  for (const TrainingEpoch& epoch : epochs)
  {
    json_array_append_new(array, EpochJson(epoch));
  }
  return array;
}

TrainingEpoch EpochFrom(const json_t* json)
{
  TrainingEpoch epoch;
  epoch.Epoch = CountAt(json, "epoch");
  for (const auto& column : Columns)
  {
    epoch.*column.Value = NumberAt(json, column.Name);
  }
  epoch.Best = json_is_true(json_object_get(json, "best"));
  epoch.Averaged = json_is_true(json_object_get(json, "averaged"));
  const char* score = json_string_value(json_object_get(json, "score"));
  epoch.IsBrier = score && std::string(score) == "brier";
  return epoch;
}

std::string EpochsCsv(const std::vector<TrainingEpoch>& epochs)
{
  std::vector<std::string> cells = { "epoch" };
  for (const auto& column : Columns)
  {
    cells.push_back(column.Name);
  }
  cells.push_back("best");
  cells.push_back("averaged");
  cells.push_back("score");
  std::string text = CsvRow(cells);
  for (const TrainingEpoch& epoch : epochs)
  {
    cells = { std::to_string(epoch.Epoch) };
    for (const auto& column : Columns)
    {
      cells.push_back(CsvNumber(epoch.*column.Value));
    }
    cells.push_back(epoch.Best ? "1" : "0");
    cells.push_back(epoch.Averaged ? "1" : "0");
    cells.push_back(epoch.IsBrier ? "brier" : "rps"); // what the column rps is
    text += CsvRow(cells);
  }
  return text;
}

double NumberAt(const json_t* object, const char* key)
{
  const json_t* value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : std::numeric_limits<double>::quiet_NaN();
}

int CountAt(const json_t* object, const char* key)
{
  const double value = NumberAt(object, key);
  return value >= 0 && value <= 1 << 30 ? static_cast<int>(value) : 0;
}

const json_t* ProtocolValue(const json_t* protocol, const std::string& key)
{
  const json_t* value = json_object_get(protocol, key.c_str());
  return value ? value : json_object_get(protocol, ("--" + key).c_str()); // earlier versions stored flags
}

JsonHandle ReadTrainingEntry(rcn_context* context, const std::string& path)
{
  char* text = nullptr;
  Check(rcn_model_read(&text, context, path.c_str(), "training"), context);
  JsonHandle root(text ? json_loads(text, 0, nullptr) : nullptr);
  rcn_model_free(text, context);
  return root;
}

void CheckProtocol(const json_t* now, const json_t* then, const std::string& path)
{
  const char* key;
  json_t* value;
  json_object_foreach(const_cast<json_t*>(now), key, value)
  {
    if (!json_equal(value, ProtocolValue(then, key)))
    {
      throw Error(
        RCN_EINVALID, path + " has another value of " + key + "; resume with the same options as at the start.", "resume");
    }
  }
}

std::shared_ptr<rcn_file_lock> ClaimTrainingFiles(rcn_context* context, const TrainingOptions& options, bool inPlace)
{
  const std::vector<std::string> files = TrainingFiles(options.Output);
  for (const std::string& path : files)
  {
    const std::string sentence = AtomicFile::Check(path);
    if (!sentence.empty())
    {
      throw Error(RCN_EIO, sentence);
    }
  }
  rcn_file_lock* lock = nullptr;
  Check(rcn_file_lock_create(&lock, context, options.Output.c_str()), context);
  std::shared_ptr<rcn_file_lock> claim(lock, rcn_file_lock_destroy);
  std::error_code ignored;
  const bool canResume = fs::exists(files[1], ignored);
  const std::string file = TrainingFileInTheWay(options.Output);
  if (!file.empty() && !options.Overwrite && !(options.Resume && canResume) && !inPlace)
  {
    throw Error(RCN_EINVALID,
      file + " already exists" + (options.Resume ? ", and there is no " + files[1] + " to resume from." : "."),
      canResume ? "exists-resumable" : "exists");
  }
  return claim;
}

bool IsModelName(const std::string& path)
{
  return path.size() > ModelEnding.size() &&
    path.compare(path.size() - ModelEnding.size(), std::string::npos, ModelEnding) == 0;
}

std::vector<std::string> TrainingFiles(const std::string& model)
{
  const std::string stem = IsModelName(model) ? model.substr(0, model.size() - ModelEnding.size()) : model;
  return { model, stem + ".checkpoint" + ModelEnding, stem + ".log.csv" };
}

std::string TrainingFileInTheWay(const std::string& model)
{
  std::error_code ignored;
  for (const std::string& file : TrainingFiles(model))
  {
    if (fs::exists(file, ignored))
    {
      return file;
    }
  }
  return "";
}

std::string RemoveTraining(const std::string& model)
{
  for (const std::string& file : TrainingFiles(model))
  {
    std::error_code failure;
    fs::remove(file, failure);
    if (failure)
    {
      return file + " cannot be removed: " + failure.message() + ".";
    }
  }
  return "";
}

} // namespace rcn
