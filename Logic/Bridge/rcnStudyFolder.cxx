// SPDX-License-Identifier: Apache-2.0
/// The folder of a study: what lies where, and the protocol that it holds.
#include "rcnStudyParts.h"

#include <algorithm>
#include <set>

#include "rcn/rcn_hash.h"
#include "rcn/rcn_train.h"

namespace rcn
{
namespace study
{

namespace fs = std::filesystem;

std::vector<Run> RunsOf(const StudyOptions& options, bool structures)
{
  std::vector<std::string> names = options.Strategies;
  if (names.empty() && structures)
  {
    names = ChoiceNames(StructureStrategies());
  }
  else if (names.empty())
  {
    names = ChoiceNames(Strategies());
    names.resize(RCN_STRATEGIES_COMPARED);
  }
  if (structures) // what the default means for several
  {
    std::replace(names.begin(), names.end(), std::string(rcn_strategy_name(0)), std::string(rcn_strategy_structures_name(0)));
  }
  std::vector<Run> runs;
  for (int seed = 0; seed < options.Seeds; ++seed)
  {
    for (const std::string& name : names)
    {
      runs.push_back({ name, seed });
    }
  }
  return runs;
}

void CheckProtocol(const Job& job)
{
  const std::map<std::string, std::string>& now = job.Options.Choices;
  const std::string list = ReadText(job.Options.Data);
  const std::string hash = HashText(rcn_hash_bytes(RCN_HASH_START, list.data(), list.size()));
  const std::string path = job.Folder.File("study.json");
  std::error_code ignored;
  if (!fs::exists(path, ignored))
  {
    const std::string data = fs::weakly_canonical(job.Options.Data).string();
    WriteText(path, DocumentText(JsonObject{ { "data", data }, { "list", hash }, { "choices", now } }.Get()));
    return;
  }
  const std::string about = path + " belongs to another study", remedy = "Use another folder, or the same options.";
  const JsonHandle root = ParseJson(ReadText(path), about, remedy);
  const JsonReader stored(root.get(), about, remedy);
  if (stored.Text("list") != hash)
  {
    stored.Fail("the data list was a different one.");
  }
  const std::map<std::string, std::string> then = stored.TextsByKey("choices");
  for (const auto& choice : now)
  {
    const auto old = then.find(choice.first);
    if (old == then.end() || old->second != choice.second)
    {
      stored.Fail(choice.first + " was " + (old == then.end() ? "not given" : old->second) + ", now " + choice.second + ".");
    }
  }
  for (const auto& choice : then)
  {
    if (!now.count(choice.first))
    {
      stored.Fail(choice.first + " was " + choice.second + ", now it is not given.");
    }
  }
}

} // namespace study

std::vector<std::string> StudyFiles(const StudyOptions& options, const DataList& list)
{
  const study::Folder folder{ options.Folder };
  std::set<std::string> files; // the study refuses a strategy that is named twice
  for (const char* name : { "study.json", "table.md", "table.json", "report.html" })
  {
    files.insert(folder.File(name));
  }
  const bool structures = list.HasStructures() && options.Structure.empty();
  for (const study::Run& run : study::RunsOf(options, structures))
  {
    files.insert(folder.Model(run, ".json"));
    files.insert(folder.Model(run, ".safetensors"));
    for (const Case& one : list.Cases)
    {
      if (one.Split == "test")
      {
        files.insert(structures ? folder.Map(run, one.Id, "prob") : folder.Levels(run, one.Id));
      }
    }
  }
  return { files.begin(), files.end() };
}

} // namespace rcn
