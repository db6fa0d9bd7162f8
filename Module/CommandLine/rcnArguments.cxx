// SPDX-License-Identifier: Apache-2.0
#include "rcnArguments.h"

#include "rcnAddress.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace rcn
{

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

Arguments ParseArguments(const std::vector<std::string>& words, const std::string& program, const std::vector<Option>& options)
{
  Arguments arguments;
  arguments.Words_ = words;
  const std::string advice = "; see " + program + " --help.";
  for (size_t i = 0; i < words.size(); ++i)
  {
    std::string name = words[i], value;
    const std::string::size_type equals = name.find('=');
    const bool attached = name.rfind("--", 0) == 0 && equals != std::string::npos;
    if (attached)
    {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    auto option =
      std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.Name == name && name[0] == '-'; });
    if (option == options.end() && words[i][0] != '-')
    {
      option = std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.Name[0] != '-'; });
      if (option != options.end())
      {
        RefuseAddress(words[i]);
        arguments.Values_[option->Name].push_back(words[i]);
        continue;
      }
    }
    if (option == options.end())
    {
      throw Error(RCN_EINVALID, (name.rfind('-', 0) == 0 ? "There is no option " : "What is ") + words[i] + advice);
    }
    if (option->Argument.empty())
    {
      if (attached)
      {
        throw Error(RCN_EINVALID, name + " takes no value" + advice);
      }
    }
    else if (!attached)
    {
      // "--json --quiet" is a forgotten file name; "--json=--quiet" is not.
      const bool forgotten = i + 1 < words.size() &&
        std::any_of(options.begin(), options.end(), [&](const Option& o) { return o.Name == words[i + 1]; });
      if (i + 1 == words.size() || forgotten)
      {
        throw Error(RCN_EINVALID, name + " needs " + option->Argument + advice);
      }
      value = words[++i];
    }
    if (!option->Choices.empty() && std::find(option->Choices.begin(), option->Choices.end(), value) == option->Choices.end())
    {
      std::string choices;
      for (const std::string& choice : option->Choices)
      {
        choices += (choices.empty() ? "" : ", ") + choice;
      }
      throw Error(RCN_EINVALID, name + " is one of " + choices + ", not '" + value + "'.");
    }
    if (option->Argument != "TEXT")
    {
      // "NAME=http://..." too, but not an address that has a '=' further on.
      const std::string::size_type equal = value.find('='), scheme = value.find("://");
      RefuseAddress(equal < scheme ? value.substr(equal + 1) : value, name + " ");
    }
    if (!option->Repeats && arguments.Has(name))
    {
      throw Error(RCN_EINVALID, name + " is given twice.");
    }
    arguments.Values_[name].push_back(value);
  }
  return arguments;
}

std::vector<Option> CaseOptions()
{
  return {
    { "--rater", "NAME=FILE",
      "one rater's mask; NAME=FILE:3 takes label value 3, :1,3 several. A FILE alone "
      "brings all raters it holds: segments of a .seg.nrrd, components, volumes of a 4-D file",
      {}, true, FileUse::ReadRater },
    { "--image", "FILE", "the image that was outlined; masks must have its geometry. A folder is a DICOM series", {}, false,
      FileUse::Read },
    { "--data", "LIST", "instead of one case: all cases of a data list (JSON)", {}, false, FileUse::ReadList },
    { "--split", "WHICH", "with --data: only these cases", { "training", "validation", "test" } },
    { "--resample", "", "resample masks of another geometry (nearest neighbour) instead of refusing them" },
    { "--tolerance", "VOXELS", "how far voxels may lie apart and still count as the same place (0.01)" },
    { "--unanswered", "VALUE", "label value of voxels that a rater did not look at" },
  };
}

std::vector<Option> OutputOptions()
{
  return {
    { "--json", "FILE", "all results for machines; - is standard output", {}, false, FileUse::Written },
    { "--threads", "N", "how many threads (all cores)" },
    { "--quiet", "", "no table, no progress, no remarks; a case that is left out is named all the same" },
  };
}

std::vector<Option> ViewOptions()
{
  return {
    { "FILE", "", "a workspace (.rcn.json), a data list, images and masks, a DICOM folder, or a model", {}, true,
      FileUse::Read },
    { "--data", "LIST", "all cases of a data list (JSON)", {}, false, FileUse::ReadList },
    { "--image", "FILE", "one case: the image. A folder is a DICOM series", {}, false, FileUse::Read },
    { "--rater", "NAME=FILE",
      "one case: a rater's mask; NAME=FILE:3 takes label value 3. A FILE alone brings all raters it holds", {}, true,
      FileUse::ReadRater },
    { "--model", "FILE", "a model to predict with", {}, false, FileUse::Read },
    { "--layout", "WHICH", "three linked slices, or raters and models side by side", { "slices", "compare" } },
    { "--panel", "WHICH", "the panel in front", { "consensus", "agreement", "calibration", "training" } },
    { "--case", "ID", "the case to show first" },
    { "--do", "ACTION",
      "do this first, as if a person had: compare-raters, fuse:METHOD, predict, predict-all, evaluate, recalibrate, "
      "next-region, save:FILE, report:FILE",
      {}, true },
    { "--size", "WxH", "of the window, in pixels" },
    { "--screenshot", "FILE", "save a picture of the window (.png) and leave", {}, false, FileUse::Written },
  };
}

Option ScaleOption()
{
  return { "--scale", "N",
    "of maps that hold whole numbers: the one that means a probability of 1, such as 255 (0: as the file says, "
    "as this program's PNG do; otherwise only 0 and 1 are taken)" };
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

Case CaseFrom(const Arguments& arguments)
{
  Case one;
  one.Id = "case";
  if (arguments.Has("--image"))
  {
    one.Images.push_back(arguments.Get("--image"));
  }
  for (const std::string& rater : arguments.GetAll("--rater"))
  {
    one.Raters.push_back(ParseRater(rater));
  }
  if (one.Raters.empty())
  {
    throw Error(RCN_EINVALID, "There is no rater; give at least one mask with --rater NAME=FILE, or a list with --data.");
  }
  return one;
}

} // namespace rcn
