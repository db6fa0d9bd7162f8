// SPDX-License-Identifier: Apache-2.0
/// rater-consensus report: one page to read, to print and to send.
#include <algorithm>
#include <filesystem>
#include <tuple>

#include "rcnCommands.h"
#include "rcnReportPage.h"

namespace rcn
{

namespace
{

/// "NAME=FILE"; a FILE alone is named after itself.
std::pair<std::string, std::string> NameAndFile(const std::string& argument, const std::string& option)
{
  std::error_code ignored;
  const std::string::size_type equals = argument.find('=');
  if (equals == std::string::npos || std::filesystem::exists(argument, ignored))
  {
    return { StemOf(argument), argument };
  }
  if (equals == 0 || equals + 1 == argument.size())
  {
    throw Error(RCN_EINVALID, option + " takes NAME=FILE, not '" + argument + "'.");
  }
  return { argument.substr(0, equals), argument.substr(equals + 1) };
}

std::vector<ReportModel> ModelsFrom(const Arguments& arguments)
{
  std::vector<ReportModel> models;
  for (const std::string& argument : arguments.GetAll("--pred"))
  {
    ReportModel model;
    std::tie(model.Name, model.Predictions) = NameAndFile(argument, "--pred");
    models.push_back(model);
  }
  const auto named = [&models](const std::string& name) {
    return std::find_if(models.begin(), models.end(), [&name](const ReportModel& model) { return model.Name == name; });
  };
  for (const std::string& argument : arguments.GetAll("--model"))
  {
    const auto one = NameAndFile(argument, "--model");
    const auto found = named(one.first);
    if (found == models.end())
    {
      ReportModel model;
      model.Name = one.first;
      model.Model = one.second;
      models.push_back(model);
    }
    else if (!found->Model.empty())
    {
      throw Error(RCN_EINVALID, "--model " + one.first + " is given twice.");
    }
    else
    {
      found->Model = one.second;
    }
  }
  for (const std::string& argument : arguments.GetAll("--recalibration"))
  {
    auto one = NameAndFile(argument, "--recalibration");
    if (argument.find('=') == std::string::npos && models.size() == 1)
    {
      one.first = models.front().Name; // there is no other that could be meant
    }
    const auto found = named(one.first);
    if (found == models.end())
    {
      throw Error(RCN_EINVALID,
        "--recalibration " + argument +
          " is for a model that is not given; use NAME=FILE, with the NAME of a --pred or --model.");
    }
    found->Recalibration = one.second;
  }
  return models;
}

int RunReport(const Arguments& arguments)
{
  Terminal terminal(arguments);
  CheckCaseOrList(arguments);
  if (arguments.Has("--split") && !arguments.Has("--data"))
  {
    throw Error(RCN_EINVALID, "--split goes with a list of cases; give --data LIST.");
  }
  if (arguments.Has("--image") && arguments.Has("--data"))
  {
    throw Error(RCN_EINVALID, "--image is for one case; a list has its own.");
  }
  ReportOptions options;
  options.Output = arguments.Get("-o");
  options.Title = arguments.Get("--title");
  options.Data = arguments.Get("--data");
  options.Split = arguments.Get("--split");
  if (!arguments.Has("--data"))
  {
    options.One = CaseFrom(arguments);
  }
  options.Models = ModelsFrom(arguments);
  options.Readout = arguments.Get("--readout");
  options.Surfaces = arguments.Has("--surfaces");
  options.Pictures = static_cast<size_t>(arguments.GetInteger("--pictures", 3, 0, 1000));
  options.Slices = static_cast<size_t>(arguments.GetInteger("--slices", 2, 1, 100));
  options.Workspace = WorkspaceOptionsFrom(arguments);
  options.Judge.Calib.bins = static_cast<int>(arguments.GetInteger("--bins", 15, 1, 1000));
  options.Judge.Region.margin = arguments.GetInteger("--margin", options.Judge.Region.margin, 0, 1 << 30);
  options.Judge.Region.band_mm = arguments.GetNumber("--band", options.Judge.Region.band_mm);
  options.Judge.Scale = ScaleFrom(arguments);
  options.Judge.Tolerance = options.Workspace.Tolerance;
  options.Judge.Seed = static_cast<uint64_t>(arguments.GetInteger("--seed", 0, 0, INT64_MAX));
  options.Command = arguments.CommandLine("rater-consensus report");
  options.Progress = [&terminal](double fraction, const std::string& stage) { return terminal.Show(fraction, stage.c_str()); };
  options.Remark = [&terminal](const std::string& sentence) { terminal.Remark(sentence); };
  options.Warn = [&terminal](const std::string& sentence) { terminal.Warn(sentence); };
  const ReportResult result = WriteReport(options);
  Print(arguments,
    "Written: " + options.Output + " (" + Counted(static_cast<int64_t>(result.Cases), "case") + "). Open it in a browser.\n");
  return result.LeftOut ? FailedWhileWorking : Done;
}

} // namespace

Command ReportCommand()
{
  return { "report", "one page to read, to print and to send: agreement, pictures, calibration",
    { "--rater NAME=FILE --rater NAME=FILE ... [--image FILE] [--pred NAME=FILE ...] -o FILE.html",
      "--data LIST [--split test] [--pred NAME=DIR ...] [--model NAME=FILE ...] -o FILE.html" },
    "Writes one HTML file that needs nothing else: what raters agree on in plain words, in tables that sort and in pictures of "
    "the most "
    "disputed places with every rater and every model side by side, and reliability diagrams that show "
    "whether predicted probabilities match how often raters mark a voxel. It opens in any browser, in light or dark and on a "
    "phone, prints, and loads nothing from elsewhere.",
    Join(
      Join(
        { { "-o", "FILE", "the page (.html); - is standard output", {}, false, FileUse::Written },
          { "--pred", "NAME=PATH",
            "a model's predictions: one case, the file; with --data, the folder with <case>_levels or <case>_prob. Several "
            "times: side by side",
            {}, true, FileUse::ReadNamed },
          { "--model", "NAME=FILE",
            "a model: beside --pred of the same NAME, what it says about itself; alone, it predicts the cases", {}, true,
            FileUse::ReadNamed },
          { "--recalibration", "NAME=FILE", "judge the model NAME with this correction too", {}, true, FileUse::ReadNamed },
          ScaleOption(),
          { "--readout", "WHICH",
            "of level maps: majority, more-than-half, expected, or at-least:T (majority and expected, and the one that predict "
            "used)" },
          { "--surfaces", "", "also the Hausdorff (95 %) and mean surface distances of each pair, in mm (a picture: pixels)" },
          { "--pictures", "N", "show so many cases, the most disputed first (3)" },
          { "--slices", "N", "show so many slices of each (2)" }, { "--title", "TEXT", "heading of the page" },
          { "--bins", "N", "number of bins (15)" }, { "--margin", "VOXELS", "box: how far it reaches beyond the marks (20)" },
          { "--band", "MM", "band: distance from the contour of the mean vote, pixels for a picture without spacing (5)" },
          { "--seed", "N", "of the paper's ten draws of 60 % of the cases (0)" } },
        CaseOptions()),
      { { "--threads", "N", "how many threads (all cores)" },
        { "--quiet", "", "no progress, no remarks; a case that is left out is named all the same" } }),
    RunReport };
}

} // namespace rcn
