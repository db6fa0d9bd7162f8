// SPDX-License-Identifier: Apache-2.0
/// rater-consensus fuse: fuses masks of several raters into one map.
#include <cstdio>
#include <filesystem>

#include "rcnCommands.h"
#include "rcnProcesses.h"

namespace rcn
{

namespace
{

rcn_fusion_options FusionOptionsFrom(const Arguments& arguments)
{
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  if (!arguments.Has("--method"))
  {
    throw Error(RCN_EINVALID, "Use --method to choose a method; see rater-consensus fuse --help.");
  }
  Parse(options.method, arguments.Get("--method"));
  options.tie = arguments.Get("--tie", "foreground") == "foreground" ? RCN_TIE_FOREGROUND : RCN_TIE_BACKGROUND;
  options.sigma = arguments.GetNumber("--sigma", options.sigma);
  options.seed = static_cast<uint64_t>(arguments.GetInteger("--seed", 0, 0, INT64_MAX));
  options.staple_output = arguments.Has("--mask") ? RCN_STAPLE_MASK : RCN_STAPLE_POSTERIOR;
  options.staple_confidence = arguments.GetNumber("--confidence", options.staple_confidence);
  options.staple_margin = arguments.GetInteger("--margin", options.staple_margin, 0, INT64_MAX);
  options.simple_alpha = arguments.GetNumber("--alpha", options.simple_alpha);
  if (const char* sentence = rcn_fusion_check(&options))
  {
    throw Error(RCN_EINVALID, sentence);
  }
  return options;
}

/// Whole numbers as bytes when --type uint8 asks for it.
std::string WriteMap(
  const std::string& path, const FusionReport& report, const Workspace& workspace, const Arguments& arguments)
{
  const rcn_image& map = report.Map.View();
  WriteOptions options = WriteOptionsFrom(arguments, report.Map.Note());
  if (map.type == RCN_UINT8) // labels
  {
    const std::vector<uint8_t> values = LabelValues(workspace.Structures());
    for (size_t c = 0; c < values.size(); ++c)
    {
      options.Segments.push_back({ workspace.Structures()[c].Name, values[c], 0 });
    }
  }
  if (arguments.Get("--type", "float32") == "float32" || map.type == RCN_UINT8)
  {
    return WriteImage(path, map, report.MapContent, options);
  }
  if (report.MapContent == Content::Probability)
  {
    throw Error(RCN_EINVALID, "--type uint8 cannot store probabilities; leave it out.");
  }
  const Volume bytes = Volume::Allocate(map.geometry, RCN_UINT8, map.components);
  rcn_image stored = bytes.View();
  rcn_image_from_float(&stored, static_cast<const float*>(map.data), 1);
  return WriteImage(path, stored, report.MapContent, options);
}

/// What a method found about one structure.
std::string FiguresText(const rcn_fusion_result& figures, const rcn_fusion_options& options, const Workspace& workspace)
{
  const std::vector<std::string>& names = workspace.RaterNames();
  const uint64_t present = rcn_votes_present(workspace.Votes());
  std::string text;
  if (options.method == RCN_STAPLE)
  {
    text = "STAPLE: prior " + Fixed(figures.prior, 4) + ", " + Counted(figures.iterations, "iteration") + ", " +
      Counted(figures.region_voxels, "voxel") + "\n";
    Table table({ "Rater", "Sensitivity", "Specificity" });
    for (size_t r = 0; r < names.size(); ++r)
    {
      if (present >> r & 1)
      {
        table.Add({ names[r], Fixed(figures.sensitivity[r], 4), Fixed(figures.specificity[r], 4) });
      }
    }
    text += table.Text();
    for (const std::string& name : NamesOf(figures.inverted, names))
    {
      text += "Warning: rater " + name + " marks the opposite of the consensus (sensitivity + specificity < 1).\n";
    }
    if (!figures.converged)
    {
      text += "Warning: STAPLE did not converge; the result is its last estimate.\n";
    }
  }
  else if (options.method == RCN_SIMPLE)
  {
    text = "SIMPLE: " + Counted(figures.iterations, "round") + "\n";
    Table table({ "Rater", "Dice with the estimate", "Kept" });
    for (size_t r = 0; r < names.size(); ++r)
    {
      if (present >> r & 1)
      {
        table.Add({ names[r], Fixed(figures.weight[r], 4), figures.kept >> r & 1 ? "yes" : "no" });
      }
    }
    text += table.Text();
  }
  else if (options.method == RCN_RANDOM)
  {
    text = "Drawn: " + NamesOf(figures.kept, names).front() + "\n";
  }
  return text;
}

/// What STAPLE found about all labels: how often each rater gives the one that is true.
std::string LabelText(const FusionReport& report, const Workspace& workspace)
{
  const std::vector<std::string>& names = workspace.RaterNames();
  const size_t labels = workspace.Structures().size() + 1;
  std::vector<std::string> header = NamesOf(workspace.Structures());
  header.insert(header.begin(), { "Rater gives the true label of", "background" });
  Table table(header);
  for (size_t r = 0; r < names.size(); ++r)
  {
    std::vector<std::string> row = { names[r] };
    for (size_t label = 0; label < labels; ++label)
    {
      row.push_back(Fixed(report.Confusion[(r * labels + label) * labels + label], 4));
    }
    if (rcn_votes_present(workspace.Votes()) >> r & 1)
    {
      table.Add(row);
    }
  }
  return "STAPLE of all labels: " + Counted(report.Labels.iterations, "iteration") + ", " +
    Counted(report.Labels.region_voxels, "voxel") + ", " + std::to_string(report.Labels.undecided_voxels) +
    " of them undecided\n" + table.Text() +
    (report.Labels.converged ? "" : "Warning: STAPLE did not converge; the result is its last estimate.\n");
}

std::string FusionText(const FusionReport& report, const rcn_fusion_options& options, const Workspace& workspace)
{
  std::string text;
  for (size_t c = 0; c < report.Each.size(); ++c)
  {
    const std::string one = FiguresText(report.Each[c], options, workspace);
    text += one.empty() ? "" : workspace.Structures()[c].Name + ": " + one;
  }
  if (!report.Confusion.empty())
  {
    text = LabelText(report, workspace);
  }
  return workspace.HasStructures() ? text : FiguresText(report.Figures, options, workspace);
}

std::string MapFile(const Case& one, const Arguments& arguments)
{
  return (std::filesystem::path(arguments.Get("-o")) /
    (one.Id + "_" + arguments.Get("--method") + arguments.Get("--format", ".nrrd")))
    .string();
}

std::vector<NamedFile> FuseOutputs(const Arguments& arguments, const DataList& list)
{
  std::vector<NamedFile> files;
  if (!arguments.Has("--data"))
  {
    files.push_back({ "-o", arguments.Get("-o") });
    return files;
  }
  for (const Case& one : list.Cases)
  {
    if (IsAskedFor(one, arguments))
    {
      files.push_back({ "-o", MapFile(one, arguments) });
    }
  }
  return files;
}

int FuseOne(const Arguments& arguments, Terminal& terminal)
{
  const rcn_fusion_options options = FusionOptionsFrom(arguments);
  const std::string path = arguments.Get("-o");
  const std::string sentence = CheckOutput(path, ContentOf(options));
  if (!sentence.empty())
  {
    throw Error(RCN_EIO, sentence);
  }
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  Seconds seconds;
  Stopwatch watch;
  terminal.Watch(workspace);
  workspace.LoadCase(CaseFrom(arguments));
  for (const std::string& remark : workspace.Remarks())
  {
    terminal.Remark(remark);
  }
  seconds.Read = watch.Lap();
  const FusionReport report = workspace.FuseStructures(options);
  seconds.Compute = watch.Lap();
  terminal.Remark(WriteMap(path, report, workspace, arguments));
  seconds.Write = watch.Lap();
  Print(arguments, DescribeCase(workspace) + "\n" + FusionText(report, options, workspace) + "Written: " + path + "\n");
  const Json json(FusionJson(report, options, workspace));
  json_object_set_new(json.Get(), "output", JsonString(path));
  json_object_set_new(json.Get(), "seconds", seconds.Json());
  WriteResults(arguments, json);
  return Done;
}

int FuseList(const Arguments& arguments, Terminal& terminal)
{
  rcn_fusion_options options = FusionOptionsFrom(arguments);
  DataList list = DataListFrom(arguments);
  terminal.Remark(LeaveOutUnrated(list, arguments.Get("--split")));
  MakeFolder(arguments.Get("-o"));
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  terminal.Watch(workspace);
  Seconds seconds;
  JsonArray cases;
  const uint64_t seed = options.seed;
  const auto fuse = [&](const Case& one, size_t number, std::vector<std::string>& remarks) {
    const std::string path = MapFile(one, arguments);
    Seconds spent;
    Stopwatch watch;
    workspace.LoadCase(one, list.Raters);
    remarks.push_back(workspace.LabelRemark());
    spent.Read = watch.Lap();
    options.seed = seed + number; // another draw for each case, the same one for any number of processes
    const FusionReport report = workspace.FuseStructures(options);
    spent.Compute = watch.Lap();
    const std::string remark = WriteMap(path, report, workspace, arguments);
    spent.Write = watch.Lap();
    const Json json(FusionJson(report, options, workspace));
    json_object_set_new(json.Get(), "case", JsonString(one.Id));
    json_object_set_new(json.Get(), "output", JsonString(path));
    return JsonHandle(JsonObject{ { "json", json }, { "remark", remark }, { "seconds", spent.Json() } }.Release());
  };
  const auto collect = [&](const Case&, const json_t* record) {
    if (json_array_size(cases.Get()) == 0)
    {
      terminal.Remark(json_string_value(json_object_get(record, "remark"))); // the same for all cases
    }
    cases.Add(json_incref(json_object_get(record, "json")));
    seconds.Add(json_object_get(record, "seconds"));
  };
  const std::vector<LeftOutCase> leftOut = ForEachCase(list, LoopFor(arguments, terminal), fuse, collect);
  Print(arguments,
    Counted(static_cast<int64_t>(json_array_size(cases.Get())), "map") + " written to " + arguments.Get("-o") + "\n");
  WriteResults(
    arguments, JsonObject{ { "cases", cases }, { "left_out", LeftOutJson(leftOut) }, { "seconds", seconds.Json() } });
  return ExitCodeOf(leftOut);
}

int RunFuse(const Arguments& arguments)
{
  Terminal terminal(arguments);
  CheckCaseOrList(arguments);
  if (!arguments.Has("-o"))
  {
    throw Error(RCN_EINVALID, "Use -o to name the output.");
  }
  CheckTextOutputs(arguments);
  return arguments.Has("--data") ? FuseList(arguments, terminal) : FuseOne(arguments, terminal);
}

} // namespace

Command FuseCommand()
{
  return { "fuse", "fuse masks of several raters into one map",
    { "--method METHOD --rater NAME=FILE --rater NAME=FILE ... -o OUT", "--method METHOD --data LIST -o DIR" },
    "Fuses the masks of the raters into one map: float32, compressed, in the geometry of the input. Of several structures, "
    "median writes a label map with the label that most raters gave and "
    "staple one with the most probable label; the other methods write a component for each structure. " +
      ChoicesHelp(Methods()),
    Join(Join({ { "--method", "METHOD", "method of fusion", ChoiceNames(Methods()) },
                { "-o", "OUT", "file of the map (.nrrd, .nii.gz, .mha, .tif, .png); with --data a folder" } },
           CaseOptions()),
      Join({ { "--tie", "RULE", "median, simple: result where exactly half of the raters marked (foreground)",
               { "foreground", "background" } },
             { "--sigma", "VOXELS", "soft-gaussian, svls: standard deviation of the Gaussian (1)" },
             { "--seed", "N", "random: random seed (0)" },
             { "--mask", "", "staple: write the mask (probability at least 0.5) instead of the probability" },
             { "--margin", "VOXELS", "staple: estimate only in the box around all marks, with this margin (whole image)" },
             { "--confidence", "W", "staple: factor on the prior probability (1)" },
             { "--alpha", "A", "simple: drop raters below mean - A standard deviations (1)" },
             { "--type", "TYPE", "voxel type of masks and levels (float32)", { "float32", "uint8" } },
             { "--format", "EXT", "with --data: file format (.nrrd)", { ".nrrd", ".nii.gz", ".mha", ".tif", ".png" } } },
        OutputOptions())),
    RunFuse, FuseOutputs };
}

} // namespace rcn
