// SPDX-License-Identifier: Apache-2.0
#include "rcnStructures.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "rcn/rcn_votes.h"
#include "rcnFileName.h"

namespace rcn
{

std::string CheckStructures(const std::vector<Structure>& structures)
{
  if (structures.size() > RCN_MAX_STRUCTURES)
  {
    return "there are " + std::to_string(structures.size()) + " structures; there may be up to " +
      std::to_string(RCN_MAX_STRUCTURES) + ".";
  }
  // Structures become parts of file names and voxels become structures by value: neither may be ambiguous.
  std::map<std::string, std::string> byFile;
  std::map<int64_t, std::string> byValue;
  for (const Structure& one : structures)
  {
    if (one.Name.empty())
    {
      return "a structure has no name.";
    }
    // Also on systems that take small and capital letters for the same file.
    const auto file = byFile.emplace(LowerCase(FileNameFrom(one.Name)), one.Name);
    if (!file.second)
    {
      return file.first->second == one.Name
        ? "the structure " + one.Name + " is named twice."
        : "files of the structures " + file.first->second + " and " + one.Name + " would have the same name; rename one.";
    }
    if (one.Values.empty())
    {
      return "the structure " + one.Name + " has no label value.";
    }
    for (const int64_t value : one.Values)
    {
      if (value == 0)
      {
        return "the structure " + one.Name + " has the label value 0, which is the background.";
      }
      const auto other = byValue.emplace(value, one.Name);
      if (!other.second)
      {
        return "the label value " + std::to_string(value) + " is given twice, for " +
          (other.first->second == one.Name ? "" : other.first->second + " and ") + one.Name +
          "; a voxel belongs to one structure.";
      }
    }
  }
  return "";
}

// From 1: 0 is the background in label maps, and "no choice" in programs.
int FindStructure(const std::vector<Structure>& structures, const std::string& name)
{
  std::string names;
  for (size_t c = 0; c < structures.size(); ++c)
  {
    if (structures[c].Name == name)
    {
      return static_cast<int>(c) + 1;
    }
    names += (c == 0 ? "" : c + 1 == structures.size() ? " and " : ", ") + structures[c].Name;
  }
  throw Error(RCN_EINVALID,
    "Unknown structure '" + name + "'; " +
      (structures.empty() ? "no structures were named."
                          : "there " + std::string(structures.size() == 1 ? "is " : "are ") + names + "."));
}

// "2" or "2,3"; nothing else around them.
bool ParseLabelValues(std::vector<int64_t>& values, const std::string& text)
{
  values.clear();
  for (const char* at = text.c_str();;)
  {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(at, &end, 10);
    if (end == at || errno || (*end && *end != ',') || value > LargestLabel || value < -LargestLabel)
    {
      return false;
    }
    values.push_back(value);
    if (!*end)
    {
      return true;
    }
    at = end + 1;
  }
}

Structure ParseStructure(const std::string& argument)
{
  Structure one;
  const std::string::size_type equals = argument.rfind('='); // label values have none, names may
  one.Name = argument.substr(0, equals);
  if (equals == std::string::npos || !ParseLabelValues(one.Values, argument.substr(equals + 1)))
  {
    throw Error(RCN_EINVALID, "'" + argument + "' must be a name and label values, such as kidney=1 or liver=2,3.");
  }
  // It goes into JSON files, which are UTF-8.
  if (!JsonHandle(json_string(one.Name.c_str())))
  {
    throw Error(RCN_EINVALID, argument + ": the structure's name is not UTF-8 text; give another one.");
  }
  return one;
}

Json StructuresJson(const std::vector<Structure>& structures)
{
  JsonArray array;
  for (const Structure& one : structures)
  {
    array.Add(JsonObject{ { "name", one.Name }, { "values", one.Values } });
  }
  return array;
}

std::vector<Structure> StructuresFrom(const JsonReader& reader, const std::string& key)
{
  std::vector<Structure> structures;
  for (const JsonReader& one : reader.Objects(key))
  {
    structures.push_back({ one.Text("name"), one.WholeNumbers("values", -LargestLabel, LargestLabel) });
  }
  const std::string sentence = CheckStructures(structures);
  if (!sentence.empty())
  {
    reader.Fail(sentence);
  }
  return structures;
}

std::vector<std::string> NamesOf(const std::vector<Structure>& structures)
{
  std::vector<std::string> names;
  std::transform(
    structures.begin(), structures.end(), std::back_inserter(names), [](const Structure& one) { return one.Name; });
  return names;
}

// What is written into a map of bytes: the labels that people know from their own files, or numbers from 1 where one of them
// does not fit.
std::vector<uint8_t> LabelValues(const std::vector<Structure>& structures)
{
  std::vector<uint8_t> values, numbers;
  for (const Structure& structure : structures)
  {
    const int64_t value = structure.Values.empty() ? 0 : structure.Values.front();
    numbers.push_back(static_cast<uint8_t>(numbers.size() + 1));
    if (value >= 1 && value <= 255)
    {
      values.push_back(static_cast<uint8_t>(value));
    }
  }
  return values.size() == numbers.size() ? values : numbers;
}

} // namespace rcn
