// SPDX-License-Identifier: Apache-2.0
/// rater-consensus study: every strategy under one protocol, judged on the same test cases.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "rcnCommands.h"
#include "rcnProcesses.h"
#include "rcnStudy.h"

namespace rcn
{

namespace
{

/// What may change from one sitting to the next without changing any figure.
bool IsFree(const std::string& option)
{
  for (const char* free : { "--data", "-o", "--strategies", "--alternatives", "--seeds", "--threads", "--json", "--quiet",
         "--checkpoint-seconds", "--cache-gb" })
  {
    if (option == free)
    {
      return true;
    }
  }
  return false;
}

std::vector<std::string> StrategiesFrom(const Arguments& arguments)
{
  if (arguments.Has("--strategies") && arguments.Has("--alternatives"))
  {
    throw Error(RCN_EINVALID, "Give either --strategies or --alternatives, which means all of them.");
  }
  if (arguments.Has("--alternatives"))
  {
    return ChoiceNames(Strategies());
  }
  std::vector<std::string> strategies;
  std::istringstream words(arguments.Get("--strategies"));
  for (std::string word; std::getline(words, word, ',');)
  {
    strategies.push_back(word);
  }
  return strategies;
}

std::string TableText(const std::vector<StudyRow>& rows, const std::string& structure)
{
  std::vector<std::string> header = { structure.empty() ? "Strategy" : structure };
  for (const StudyColumn& column : StudyColumns())
  {
    header.push_back(column.Name);
  }
  Table table(header);
  for (const StudyRow& row : rows)
  {
    std::vector<std::string> cells = { row.Name() };
    for (size_t c = 0; c < row.Cells.size(); ++c)
    {
      const StudyCell& cell = row.Cells[c];
      cells.push_back(StudyColumns()[c].Text(cell.Value) + (cell.Best ? " *" : cell.Tie ? " ≈" : "  "));
    }
    table.Add(cells);
  }
  return table.Text();
}

std::string VolumesText(const std::vector<StudyRow>& rows)
{
  std::vector<std::string> volumeHeader;
  std::vector<std::vector<std::string>> volumeRows;
  for (const auto& [strategy, figures] : StudyVolumes(rows))
  {
    volumeHeader = { "Volumes" };
    volumeRows.push_back({ strategy });
    for (const VolumeFigure& figure : figures)
    {
      volumeHeader.push_back(figure.Name);
      volumeRows.back().push_back(figure.Text);
    }
  }
  Table volumes(volumeHeader);
  std::for_each(volumeRows.begin(), volumeRows.end(), [&](const std::vector<std::string>& row) { volumes.Add(row); });
  return volumes.Text();
}

std::string TablesText(const StudyResult& result)
{
  std::string text = TableText(result.Rows, result.Structures.empty() ? "" : "Mean over structures");
  for (const StudyStructure& structure : result.Structures)
  {
    text += "\n" + TableText(structure.Rows, structure.Name);
  }
  return text + (result.Structures.empty() ? "\n" + VolumesText(result.Rows) : "") +
    "\n*: the best; ≈: not significantly different from it. Written: " + result.Markdown + ", " + result.Json + ", " +
    result.Html + "\n";
}

std::vector<NamedFile> StudyOutputs(const Arguments& arguments, const DataList& list)
{
  StudyOptions options;
  options.Structure = arguments.Get("--structure");
  options.Folder = arguments.Get("-o");
  options.Strategies = StrategiesFrom(arguments);
  options.Seeds = static_cast<int>(arguments.GetInteger("--seeds", 1, 1, 1000));
  std::vector<NamedFile> files;
  for (const std::string& path : StudyFiles(options, list))
  {
    files.push_back({ "-o", path });
  }
  return files;
}

int RunStudyCommand(const Arguments& arguments)
{
  Terminal terminal(arguments);
  CheckTextOutputs(arguments);
  if (!arguments.Has("--data") || !arguments.Has("-o"))
  {
    const bool folder = arguments.Has("-o");
    throw Error(RCN_EINVALID, folder ? "The study needs a data list." : "The study needs a folder for its results.",
      folder ? "data" : "output");
  }
  StudyOptions options;
  options.Data = arguments.Get("--data");
  options.Structure = arguments.Get("--structure");
  options.Folder = arguments.Get("-o");
  options.Strategies = StrategiesFrom(arguments);
  options.Seeds = static_cast<int>(arguments.GetInteger("--seeds", 1, 1, 1000));
  options.Training = TrainingOptionsFrom(arguments);
  options.Judge.Calib.bins = static_cast<int>(arguments.GetInteger("--bins", 15, 1, 1000));
  options.Judge.Region.band_mm = arguments.GetNumber("--band", options.Judge.Region.band_mm);
  options.Judge.Region.margin = arguments.GetInteger("--margin", options.Judge.Region.margin, 0, 1 << 30);
  options.Prediction.Tiles.flips = arguments.Has("--flips");
  for (const auto& value : arguments.Values())
  {
    if (!IsFree(value.first))
    {
      options.Choices[value.first] = value.second.back();
    }
  }
  options.Command = arguments.CommandLine("rater-consensus study");
  options.Remark = [&terminal](const std::string& sentence) { terminal.Remark(sentence); };
  options.Warn = [&terminal](const std::string& sentence) { terminal.Warn(sentence); };
  options.Progress = [&terminal](double fraction, const std::string& stage) { return terminal.Show(fraction, stage.c_str()); };
  const StudyResult result = RunStudy(options);
  if (Processes::All().IsFirst()) // the others may not have the file yet
  {
    WriteResults(arguments, ParseJson(ReadText(result.Json), result.Json).release());
  }
  Print(arguments, TablesText(result));
  return Done;
}

} // namespace

Command StudyCommand()
{
  return { "study", "train and compare all strategies under one protocol",
    { "--data LIST -o DIR [--strategies ordinal,median,...] [--seeds N] [training options]" },
    "Trains a model with each strategy (same network, schedule, data and random seed), predicts the same test cases and writes "
    "table.md, table.json and report.html with MR-ECE, AUC, Dice, Brier score and others, 95 % intervals over test patients "
    "(and seeds), the best in bold, and a mark where a value is not significantly different from the best. A stopped study "
    "continues with the same command. Strategies and seeds can be added later; another protocol needs another folder.",
    Join(Join({ { "--data", "LIST", "data list (JSON) with training, validation and test cases", {}, false, FileUse::ReadList },
                { "-o", "DIR", "folder of the study: models, predictions, tables" },
                { "--strategies", "NAMES",
                  "strategies, separated by commas (ordinal and the paper's eight; for several structures all four)" },
                { "--alternatives", "", "use all strategies, also the alternatives to ordinal" }, StructureOption(),
                { "--seeds", "N", "train each strategy N times (1)" }, { "--bins", "N", "number of bins (15)" },
                { "--margin", "VOXELS", "box: margin around the marks (20)" },
                { "--band", "MM",
                  "band: distance from the contour of the mean vote, in pixels for a picture without spacing (5)" },
                { "--flips", "", "average predictions over all flips of the image" } },
           TrainingOptionTable()),
      OutputOptions()),
    RunStudyCommand, StudyOutputs };
}

} // namespace rcn
