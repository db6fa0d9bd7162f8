// SPDX-License-Identifier: Apache-2.0
/// libFuzzer: any text as a data list. It is refused with one sentence, or every promise of
/// rcnDataList.h holds.
#include <cstdlib>
#include <set>

#include "rcnDataList.h"

namespace
{

void Require(bool condition)
{
  if (!condition)
  {
    std::abort();
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  const std::string text(reinterpret_cast<const char*>(data), size);
  try
  {
    const rcn::DataList list = rcn::ParseDataList(text, "folder", "list.json");
    Require(!list.Cases.empty() && !list.Raters.empty() && list.Raters.size() <= RCN_MAX_RATERS);
    const std::set<std::string> names(list.Raters.begin(), list.Raters.end());
    Require(names.size() == list.Raters.size() && !names.count(""));
    Require(rcn::CheckStructures(list.Structures).empty());
    std::set<std::string> ids;
    for (const rcn::Case& one : list.Cases)
    {
      Require(!one.Id.empty() && one.Id.find('/') == std::string::npos && ids.insert(one.Id).second);
      Require(!one.Raters.empty());
      std::set<std::string> answered;
      for (const rcn::RaterFile& rater : one.Raters)
      {
        Require(names.count(rater.Name) && answered.insert(rater.Name).second && !rater.Path.empty());
        Require(!list.HasStructures() || rater.Values.empty());
        Require(rater.Structures.empty() || (list.HasStructures() && rater.Structures.size() == list.Structures.size()));
      }
      Require(one.Structures.size() == list.Structures.size());
      Require(!list.HasStructures() || rcn::OneStructure(one, 1).Raters.size() == one.Raters.size());
    }
  }
  catch (const rcn::Error& error)
  {
    const std::string sentence = error.what();
    Require(sentence.rfind("list.json", 0) == 0);
    Require(error.Status() == RCN_EFORMAT);
    for (const char c : sentence)
    {
      Require(static_cast<unsigned char>(c) >= ' '); // one line
    }
  }
  return 0;
}
