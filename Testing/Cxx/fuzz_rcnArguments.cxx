// SPDX-License-Identifier: Apache-2.0
/// libFuzzer: any words as options, and any word as --rater. Numbers are asked
/// for as the commands do.
#include <cmath>
#include <cstdlib>

#include "rcnArguments.h"

namespace
{

void Require(bool condition)
{
  if (!condition)
  {
    std::abort();
  }
}

template <class TBody> void Try(TBody&& body)
{
  try
  {
    body();
  }
  catch (const rcn::Error& error)
  {
    Require(*error.what() != '\0' && error.Status() == RCN_EINVALID);
  }
}

void Ask(const std::vector<std::string>& words)
{
  static const std::vector<rcn::Option> options = rcn::Join(rcn::Join(rcn::CaseOptions(), rcn::OutputOptions()),
    { { "--method", "METHOD", "how", { "orc", "staple" } }, { "-o", "OUT", "where" }, { "--mask", "", "a switch" },
      { "--sigma", "VOXELS", "a number" }, { "--seed", "N", "a whole number" } });
  const rcn::Arguments arguments = rcn::ParseArguments(words, "rater-consensus fuse", options);
  Try([&] { Require(!rcn::CaseFrom(arguments).Raters.empty()); });
  for (const char* name : { "--sigma", "--tolerance" })
  {
    Try([&] { Require(std::isfinite(arguments.GetNumber(name, 1))); });
  }
  for (const char* name : { "--seed", "--threads", "--unanswered" })
  {
    Try([&] {
      const long long number = arguments.GetInteger(name, 0, -5, 1000000);
      Require(number >= -5 && number <= 1000000);
    });
  }
  Require(!arguments.Has("--method") || arguments.Get("--method") == "orc" || arguments.Get("--method") == "staple");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  std::vector<std::string> words(1);
  for (size_t i = 0; i < size; ++i)
  {
    if (data[i] == '\n' || data[i] == '\0')
    {
      words.emplace_back();
    }
    else
    {
      words.back() += static_cast<char>(data[i]);
    }
  }
  Try([&] {
    const rcn::RaterFile rater = rcn::ParseRater(words.front());
    Require(!rater.Path.empty());
  });
  Try([&] { Ask(words); });
  return 0;
}
