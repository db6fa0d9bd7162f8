// SPDX-License-Identifier: Apache-2.0
#include "rcnArguments.h"

#include "rcnAddress.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace rcn
{

// The last one counts where somebody asks for one of several.
std::string Arguments::Get(const std::string& name, const std::string& fallback) const
{
  const auto found = this->Values_.find(name);
  return found == this->Values_.end() ? fallback : found->second.back();
}

std::vector<std::string> Arguments::GetAll(const std::string& name) const
{
  const auto found = this->Values_.find(name);
  return found == this->Values_.end() ? std::vector<std::string>() : found->second;
}

// For pages and logs: what a person can copy into a shell and get the same. Quoted unless every letter is known to be harmless.
std::string Arguments::CommandLine(const std::string& begin) const
{
  const std::string harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  std::string line = begin;
  for (const std::string& word : this->Words_)
  {
    if (!word.empty() && word.find_first_not_of(harmless) == std::string::npos)
    {
      line += " " + word;
      continue;
    }
    std::string quoted;
    for (const char c : word)
    {
      quoted += c == '\'' ? "'\\''" : std::string(1, c);
    }
    line += " '" + quoted + "'";
  }
  return line;
}

// The whole text must be the number: "10x" and "" are mistakes, not 10 and 0.
long long Arguments::GetInteger(const std::string& name, long long fallback, long long low, long long high) const
{
  if (!this->Has(name))
  {
    return fallback;
  }
  const std::string text = this->Get(name);
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end || errno || value < low || value > high)
  {
    throw Error(RCN_EINVALID,
      name + " takes a whole number from " + std::to_string(low) + " to " + std::to_string(high) + ", not '" + text + "'.");
  }
  return value;
}

double Arguments::GetNumber(const std::string& name, double fallback) const
{
  if (!this->Has(name))
  {
    return fallback;
  }
  const std::string text = this->Get(name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !std::isfinite(value))
  {
    throw Error(RCN_EINVALID, name + " takes a number, not '" + text + "'.");
  }
  return value;
}

namespace
{

/// The option with that name; for a word that is no option, the one that takes words ("FILE"). Null: none.
const Option* FindOption(const std::vector<Option>& options, const std::string& name)
{
  const bool isWord = name.empty() || name[0] != '-';
  const auto found =
    std::find_if(options.begin(), options.end(), [&](const Option& o) { return isWord ? o.Name[0] != '-' : o.Name == name; });
  return found == options.end() ? nullptr : &*found;
}

/// Throws Error unless the option takes that value.
void CheckValue(const Option& option, const std::string& value)
{
  if (!option.Choices.empty() && std::find(option.Choices.begin(), option.Choices.end(), value) == option.Choices.end())
  {
    std::string choices;
    for (const std::string& choice : option.Choices)
    {
      choices += (choices.empty() ? "" : ", ") + choice;
    }
    throw Error(RCN_EINVALID, option.Name + " must be one of " + choices + ", not '" + value + "'.");
  }
  if (option.Argument != "TEXT")
  {
    // "NAME=http://..." too, but not an address that has a '=' further on.
    const std::string::size_type equal = value.find('='), scheme = value.find("://");
    RefuseAddress(equal < scheme ? value.substr(equal + 1) : value, option.Name[0] == '-' ? option.Name + " " : "");
  }
}

} // namespace

Arguments ParseArguments(const std::vector<std::string>& words, const std::string& program, const std::vector<Option>& options)
{
  Arguments arguments;
  arguments.Words_ = words;
  const std::string advice = "; see " + program + " --help.";
  for (size_t i = 0; i < words.size(); ++i)
  {
    std::string name = words[i], value;
    const std::string::size_type equals = name.find('=');
    // "--name=value"; a word with "=" that is no option is "NAME=FILE".
    const bool attached = name.rfind("--", 0) == 0 && equals != std::string::npos;
    if (attached)
    {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const Option* const option = FindOption(options, name);
    if (!option)
    {
      throw Error(RCN_EINVALID,
        (name.rfind('-', 0) == 0 ? "Unknown option " + words[i] : "Unexpected argument '" + words[i] + "'") + advice);
    }
    // A word without an option in front goes to the one entry of the table that takes words.
    if (option->Name[0] != '-')
    {
      name = option->Name;
      value = words[i];
    }
    else if (option->Argument.empty() && attached)
    {
      throw Error(RCN_EINVALID, name + " takes no value" + advice);
    }
    else if (!option->Argument.empty() && !attached)
    {
      // "--json --quiet" is a forgotten file name; "--json=--quiet" is not.
      const bool forgotten = i + 1 == words.size() ||
        std::any_of(options.begin(), options.end(), [&](const Option& o) { return o.Name == words[i + 1]; });
      if (forgotten)
      {
        throw Error(RCN_EINVALID, name + " needs " + option->Argument + advice);
      }
      value = words[++i];
    }
    // As early as here, so that a wrong value is found before any file is read.
    CheckValue(*option, value);
    if (!option->Repeats && arguments.Has(name))
    {
      throw Error(RCN_EINVALID, name + " is given twice.");
    }
    arguments.Values_[name].push_back(value);
  }
  return arguments;
}

// What several commands have is written once; each joins the parts that it takes.
std::vector<Option> CaseOptions()
{
  return {
    { "--rater", "NAME=FILE",
      "mask of one rater; NAME=FILE:3 uses label value 3, :1,3 several values. FILE without NAME= uses all raters in the "
      "file: segments of a .seg.nrrd, components, volumes of a 4-D file",
      {}, true, FileUse::ReadRater },
    { "--image", "FILE", "image that was segmented; masks must have its geometry. A folder is read as a DICOM series", {},
      false, FileUse::Read },
    { "--label", "NAME=VALUE",
      "with --rater: a structure and its label value in the raters' label maps, such as kidney=1; liver=2,3 has several "
      "values. Repeat it for several structures",
      {}, true },
    { "--data", "LIST", "process all cases of a data list (JSON) instead of one case", {}, false, FileUse::ReadList },
    { "--split", "WHICH", "with --data: use only these cases", { "training", "validation", "test" } },
    StructureOption(),
    ResampleOption(),
    { "--tolerance", "VOXELS", "largest distance between voxels that count as the same place (0.01)" },
    UnansweredOption(),
  };
}

std::vector<Option> OutputOptions()
{
  std::vector<Option> options = RunOptions();
  options.insert(
    options.begin(), { "--json", "FILE", "write all results as JSON; - is standard output", {}, false, FileUse::Written });
  return options;
}

std::vector<Option> RunOptions()
{
  return {
    { "--threads", "N", "number of threads (all cores)" },
    { "--quiet", "", "no tables, progress or remarks; cases that are left out are still reported" },
  };
}

std::vector<Option> ViewOptions()
{
  return {
    { "FILE", "", "workspace (.rcn.json), data list, images and masks, DICOM folder, or model", {}, true, FileUse::Read },
    { "--data", "LIST", "open all cases of a data list (JSON)", {}, false, FileUse::ReadList },
    { "--image", "FILE", "image of one case; a folder is read as a DICOM series", {}, false, FileUse::Read },
    { "--rater", "NAME=FILE",
      "mask of one rater; NAME=FILE:3 uses label value 3. FILE without NAME= uses all raters in the file", {}, true,
      FileUse::ReadRater },
    { "--model", "FILE", "model to predict with", {}, false, FileUse::Read },
    { "--layout", "WHICH", "three linked slices, or raters and models side by side", { "slices", "compare" } },
    { "--panel", "WHICH", "panel to show first", { "consensus", "agreement", "calibration", "training" } },
    { "--case", "ID", "case to show first" },
    { "--structure", "NAME", "structure to show first, of several (default: the first of the data list)" },
    { "--do", "ACTION",
      "run an action at the start: compare-raters, fuse:METHOD, predict, predict-all, evaluate, recalibrate, next-region, "
      "save:FILE, report:FILE, slide:FILE",
      {}, true },
    { "--size", "WxH", "size of the window in pixels" },
    { "--screenshot", "FILE", "save a picture of the window (.png) and exit", {}, false, FileUse::Written },
  };
}

Option ScaleOption()
{
  return { "--scale", "N",
    "for maps of whole numbers: the number that means a probability of 1, such as 255 (0: as stored in the file, otherwise "
    "only 0 and 1 are accepted)" };
}

Option StructureOption()
{
  return { "--structure", "NAME", "use only this one of several structures (all)" };
}

Option ResampleOption()
{
  return { "--resample", "", "resample masks of another geometry (nearest neighbor) instead of rejecting them" };
}

Option UnansweredOption()
{
  return { "--unanswered", "VALUE", "label value of voxels that a rater did not assess" };
}

DataList DataListFrom(const Arguments& arguments, const std::string& option, bool whole)
{
  if (arguments.Has("--label"))
  {
    throw Error(RCN_EINVALID, "--label goes with --rater; a data list has \"structures\" of its own.");
  }
  const DataList list = ReadDataList(arguments.Get(option));
  const int structure = arguments.Has("--structure") ? FindStructure(list.Structures, arguments.Get("--structure")) : 0;
  return structure > 0 && !whole ? OneStructure(list, structure) : list;
}

double ScaleFrom(const Arguments& arguments)
{
  const double scale = arguments.GetNumber("--scale", 0);
  if (scale < 0)
  {
    throw Error(RCN_EINVALID, "--scale must not be negative; give the stored number that means a probability of 1.");
  }
  return scale;
}

std::vector<Option> Join(std::vector<Option> a, const std::vector<Option>& b)
{
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<RaterFile> RatersFrom(const Arguments& arguments)
{
  std::vector<RaterFile> raters;
  for (const std::string& rater : arguments.GetAll("--rater"))
  {
    try
    {
      raters.push_back(ParseRater(rater));
    }
    catch (const Error& error)
    {
      throw Error(error.Status(), std::string("--rater ") + error.what());
    }
  }
  return raters;
}

namespace
{

/// The structures behind --label.
std::vector<Structure> LabelsFrom(const Arguments& arguments)
{
  std::vector<Structure> structures;
  for (const std::string& label : arguments.GetAll("--label"))
  {
    try
    {
      structures.push_back(ParseStructure(label));
    }
    catch (const Error& error)
    {
      throw Error(error.Status(), std::string("--label ") + error.what());
    }
  }
  const std::string sentence = CheckStructures(structures);
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, "--label: " + sentence);
  }
  return structures;
}

} // namespace

Case CaseFrom(const Arguments& arguments, bool whole)
{
  Case one;
  one.Id = "case";
  one.Images = arguments.GetAll("--image");
  one.Raters = RatersFrom(arguments);
  if (one.Raters.empty())
  {
    throw Error(RCN_EINVALID, "Give at least one mask with --rater NAME=FILE, or a list with --data.");
  }
  one.Structures = LabelsFrom(arguments);
  for (RaterFile& rater : one.Raters)
  {
    // One structure is a mask after all, of these values.
    if (one.Structures.size() == 1 && rater.Values.empty())
    {
      rater.Values = one.Structures.front().Values;
    }
  }
  const int structure = arguments.Has("--structure") ? FindStructure(one.Structures, arguments.Get("--structure")) : 0;
  return structure > 0 && !whole ? OneStructure(one, structure) : one;
}

} // namespace rcn
