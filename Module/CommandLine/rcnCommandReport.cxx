// SPDX-License-Identifier: Apache-2.0
/// rater-consensus report: one page to read, to print and to send.
#include <algorithm>
#include <filesystem>
#include <tuple>

#include "rcnCommands.h"
#include "rcnReportPage.h"
#include "rcnReportPatient.h"

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

/// What was written, for the last line on the terminal.
std::string WrittenText(const std::string& page, const std::vector<std::string>& slides, const std::string& about)
{
  std::vector<std::string> files = slides;
  if (!page.empty())
  {
    files.insert(files.begin(), page);
  }
  return "Written: " + JoinNames(files) + about + "." + (page.empty() ? "" : " Open " + page + " in a browser.") + "\n";
}

/// An image that nobody outlined: what a model expects, on one page.
int RunPatient(const Arguments& arguments)
{
  Terminal terminal(arguments);
  const std::vector<ReportModel> models = ModelsFrom(arguments);
  for (const char* option : { "--pred", "--recalibration", "--pictures", "--bins", "--margin", "--band", "--seed" })
  {
    if (arguments.Has(option))
    {
      throw Error(RCN_EINVALID, std::string(option) + " needs raters to compare with; give --rater NAME=FILE or --data LIST.");
    }
  }
  if (models.size() != 1)
  {
    throw Error(RCN_EINVALID, "A report without raters needs one model; give one --model FILE.");
  }
  PatientPageOptions options;
  options.One.Images = arguments.GetAll("--image");
  options.One.Id = StemOf(options.One.Images.front());
  options.Model = models.front().Model;
  options.Structure = arguments.Get("--structure");
  options.Title = arguments.Get("--title");
  options.Readout = arguments.Get("--readout");
  options.Anonymous = arguments.Has("--anonymous");
  options.Slides = arguments.GetAll("--slide");
  options.Output = arguments.Get("-o");
  if (options.Output.empty() && options.Slides.empty())
  {
    std::error_code ignored;
    options.Output = options.Anonymous ? "report.html" : options.One.Id + "_report.html";
    if (std::filesystem::exists(options.Output, ignored))
    {
      throw Error(RCN_EINVALID, options.Output + " already exists; choose another file with -o.");
    }
  }
  options.Slices = static_cast<size_t>(arguments.GetInteger("--slices", 2, 1, 100));
  options.Workspace = WorkspaceOptionsFrom(arguments);
  options.Command = arguments.CommandLine("rater-consensus report");
  options.Progress = [&terminal](double fraction, const std::string& stage) { return terminal.Show(fraction, stage.c_str()); };
  options.Remark = [&terminal](const std::string& sentence) { terminal.Remark(sentence); };
  WritePatientPage(options);
  Print(arguments, WrittenText(options.Output, options.Slides, ""));
  return Done;
}

int RunReport(const Arguments& arguments)
{
  if (!arguments.Has("--rater") && !arguments.Has("--data") && arguments.Has("--image") && arguments.Has("--model"))
  {
    return RunPatient(arguments);
  }
  Terminal terminal(arguments);
  if (arguments.Has("--image") && !arguments.Has("--rater") && !arguments.Has("--data"))
  {
    throw Error(RCN_EINVALID, "Give raters to compare with --rater NAME=FILE, or a model to predict with --model FILE.");
  }
  CheckCaseOrList(arguments);
  if (arguments.Has("--split") && !arguments.Has("--data"))
  {
    throw Error(RCN_EINVALID, "--split is for a list of cases; give --data LIST.");
  }
  if (arguments.Has("--image") && arguments.Has("--data"))
  {
    throw Error(RCN_EINVALID, "--image is for one case; the list names its images.");
  }
  ReportOptions options;
  options.Output = arguments.Get("-o");
  options.Slides = arguments.GetAll("--slide");
  options.Title = arguments.Get("--title");
  options.Data = arguments.Get("--data");
  options.Split = arguments.Get("--split");
  options.Structure = arguments.Get("--structure"); // predictions have all structures
  const DataList list = arguments.Has("--data") ? DataListFrom(arguments, "--data", true) : DataList();
  if (arguments.Has("--data"))
  {
    options.List = &list;
  }
  else
  {
    options.One = CaseFrom(arguments, true);
  }
  options.Models = ModelsFrom(arguments);
  options.Anonymous = arguments.Has("--anonymous");
  options.Readout = arguments.Get("--readout");
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
  Print(
    arguments, WrittenText(options.Output, options.Slides, " (" + Counted(static_cast<int64_t>(result.Cases), "case") + ")"));
  return result.LeftOut ? FailedWhileWorking : Done;
}

} // namespace

Command ReportCommand()
{
  return { "report", "write one HTML page: agreement, pictures, calibration",
    { "--rater NAME=FILE --rater NAME=FILE ... [--image FILE] [--pred NAME=FILE ...] -o FILE.html",
      "--data LIST [--split test] [--pred NAME=DIR ...] [--model NAME=FILE ...] -o FILE.html",
      "--image FILE --model FILE [-o FILE.html] [--anonymous] [--slide FILE.png]" },
    "Writes one HTML file that needs no other file and no network: a summary in words, sortable tables of agreement, pictures "
    "of the most disputed slices with every rater and every model side by side, and reliability diagrams, which show whether "
    "predicted probabilities match how often raters mark a voxel. It works in light and dark mode, on a phone and on paper. "
    "With an image and a model alone, the page is for an image without outlines: slices with map, levels and "
    "contours, "
    "volumes with intervals, where the model is unsure, and the record of the model, on at most two printed sheets.",
    Join(
      Join(
        { { "-o", "FILE",
            "the page (.html); - is standard output (without raters <image>_report.html, with --anonymous report.html)", {},
            false, FileUse::Written },
          { "--slide", "FILE",
            "one case: a picture of 1920 x 1080 with its legend (.png or .svg), in addition to the page or, without -o, "
            "instead of "
            "it. Repeat it for several files",
            {}, true, FileUse::Written },
          { "--anonymous", "", "leave out paths, and the names of files, cases and raters" },
          { "--pred", "NAME=PATH",
            "predictions of a model: the file of one case, or with --data the folder with <case>_levels or <case>_prob. Repeat "
            "it "
            "to compare models",
            {}, true, FileUse::ReadNamed },
          { "--model", "NAME=FILE",
            "a model: with --pred of the same NAME, its metadata are shown; alone, it predicts the cases", {}, true,
            FileUse::ReadNamed },
          { "--recalibration", "NAME=FILE", "also evaluate the model NAME with this correction", {}, true, FileUse::ReadNamed },
          ScaleOption(),
          { "--readout", "WHICH",
            "readout of levels: majority, more-than-half, expected or at-least:T (majority, expected, and the one that predict "
            "used)" },
          { "--pictures", "N", "number of cases shown, the most disputed first (3)" },
          { "--slices", "N", "number of slices of each (2)" }, { "--title", "TEXT", "heading of the page" },
          { "--bins", "N", "number of bins (15)" }, { "--margin", "VOXELS", "box: margin around the marks (20)" },
          { "--band", "MM", "band: distance from the contour of the mean vote, in pixels for a picture without spacing (5)" },
          { "--seed", "N", "random seed of the paper's ten draws of 60 % of the cases (0)" } },
        CaseOptions()),
      RunOptions()),
    RunReport };
}

} // namespace rcn
