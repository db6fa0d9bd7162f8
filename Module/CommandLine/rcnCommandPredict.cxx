// SPDX-License-Identifier: Apache-2.0
/// rater-consensus predict: what a model says about images.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "rcnCommands.h"
#include "rcnPrediction.h"
#include "rcnPredictionFolder.h"
#include "rcnProcesses.h"

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

// ---- options ---------------------------------------------------------------------------------------

/// "64" for all axes, or "128,128,32".
void ParseTile(int64_t tile[3], const std::string& text)
{
  long long x = 0, y = 0, z = 0;
  int end = 0;
  const int count = std::sscanf(text.c_str(), "%lld%n,%lld%n,%lld%n", &x, &end, &y, &end, &z, &end);
  if ((count != 1 && count != 3) || static_cast<size_t>(end) != text.size() || x < 1 || (count == 3 && (y < 1 || z < 1)))
  {
    throw Error(RCN_EINVALID, "--tile takes one number of voxels or three (such as 128,128,32), not '" + text + "'.");
  }
  tile[0] = x;
  tile[1] = count == 3 ? y : x;
  tile[2] = count == 3 ? z : x;
}

PredictionOptions PredictionOptionsFrom(const Arguments& arguments)
{
  PredictionOptions options;
  if (arguments.Has("--tile"))
  {
    ParseTile(options.Tiles.tile, arguments.Get("--tile"));
  }
  options.Tiles.overlap = arguments.GetNumber("--overlap", options.Tiles.overlap);
  options.Tiles.flips = arguments.Has("--flips");
  options.Tiles.memory =
    static_cast<size_t>(arguments.GetInteger("--memory", static_cast<long long>(options.Tiles.memory >> 20), 1, 1 << 20)) << 20;
  options.Readout = arguments.Get("--readout");
  options.Recalibrate = !arguments.Has("--no-recalibration");
  options.Threshold = arguments.GetNumber("--threshold", options.Threshold);
  options.Uncertainty = arguments.Has("--uncertainty");
  options.Levels = !arguments.Has("--no-levels");
  options.Structure = arguments.Get("--structure");
  return options;
}

// ---- cases -----------------------------------------------------------------------------------------

/// What --image stands for: the channels of one image, a DICOM folder, or a folder of images.
DataList ListFrom(const Arguments& arguments)
{
  const std::vector<std::string> images = arguments.GetAll("--image");
  DataList list;
  list.Path = images.front();
  std::error_code ignored;
  const std::vector<std::string> found =
    images.size() == 1 && fs::is_directory(images.front(), ignored) ? ImagesIn(images.front()) : std::vector<std::string>();
  std::set<std::string> ids;
  for (size_t i = 0; i < std::max<size_t>(found.size(), 1); ++i)
  {
    Case one;
    one.Images = found.empty() ? images : std::vector<std::string>{ found[i] };
    one.Id = StemOf(one.Images.front());
    if (!ids.insert(one.Id).second)
    {
      throw Error(RCN_EINVALID,
        one.Images.front() + " would be written under the same name (" + one.Id +
          ") as another image of the folder; rename one of them.");
    }
    list.Cases.push_back(one);
  }
  return list;
}

/// <case>_NAME in the folder of -o.
std::string MapFile(const Case& one, const std::string& name, const Arguments& arguments)
{
  return PredictionFolder::FileFor(arguments.Get("-o", "."), one.Id, name, arguments.Get("--format", ".nrrd"));
}

/// All maps that there may be: those that are not asked for this time take away older ones.
std::vector<NamedFile> PredictOutputs(const Arguments& arguments, const DataList& list)
{
  std::vector<NamedFile> files = { { "-o", PredictionFolder::ManifestOf(arguments.Get("-o", ".")) } };
  for (const Case& one : arguments.Has("--image") ? ListFrom(arguments).Cases : list.Cases)
  {
    std::vector<std::string> names = { "levels", "uncertainty", "mask", "prob", "labels" };
    for (const Structure& structure : list.Structures)
    {
      names.push_back(LevelsMap(structure.Name));
    }
    for (const std::string& name : names)
    {
      if (IsAskedFor(one, arguments))
      {
        files.push_back({ "-o", MapFile(one, name, arguments) });
      }
    }
  }
  return files;
}

// ---- the command -----------------------------------------------------------------------------------

/// The cases that are to be predicted.
std::vector<std::string> IdsOf(const DataList& list, const Arguments& arguments)
{
  std::vector<std::string> ids;
  for (const Case& one : list.Cases)
  {
    if (IsAskedFor(one, arguments))
    {
      ids.push_back(one.Id);
    }
  }
  return ids;
}

/// A case's maps in an entry for --json.
std::map<std::string, std::string> FilesOf(const json_t* entry)
{
  std::map<std::string, std::string> files;
  for (const char* map : { "levels", "prob", "mask", "labels", "uncertainty" })
  {
    if (const char* file = json_string_value(json_object_get(entry, map)))
    {
      files[map] = file;
    }
  }
  const char* structure;
  json_t* file;
  json_object_foreach(json_object_get(entry, "levels"), structure, file)
  {
    files[LevelsMap(structure)] = json_string_value(file);
  }
  return files;
}

/// What is written of a case, and told about it.
struct Outcome
{
  std::string Readout;
  int64_t Tiles;
  std::vector<NamedMap> Maps;
  std::vector<Structure> Structures;     ///< empty: there is one
  std::vector<PredictedVolumes> Volumes; ///< by structure
  Volume Marks;                          ///< the mask, or the labels

  /// How many voxels are marked, or have the label of that structure.
  int64_t Marked(size_t structure) const
  {
    const uint8_t* marks = static_cast<const uint8_t*>(this->Marks.Data());
    const uint8_t value = this->Structures.empty() ? 1 : LabelValues(this->Structures)[structure];
    return std::count(marks, marks + rcn_geometry_voxels(&this->Marks.Geometry()), value);
  }
};

/// Writes the maps of a case in place of those that an earlier run left; returns its entry for --json.
JsonObject WritePrediction(const Outcome& outcome, const Case& one, const PredictionFolder& folder, const Arguments& arguments,
  std::vector<std::string>& remarks)
{
  std::map<std::string, std::string> files;
  JsonObject entry{ { "case", one.Id }, { "readout", outcome.Readout }, { "tiles", outcome.Tiles } };
  for (const NamedMap& map : outcome.Maps)
  {
    const std::string path = MapFile(one, map.Name, arguments);
    WriteOptions options = WriteOptionsFrom(arguments);
    options.Segments = map.Segments;
    remarks.push_back(WriteImage(path, map.Map.View(), map.What, options));
    files[map.Name] = path;
    if (map.Structure.empty())
    {
      entry.Set(map.Name, path);
    }
  }
  if (outcome.Structures.empty())
  {
    entry.Set("volumes", VolumesJson(outcome.Volumes.front()));
  }
  else
  {
    JsonObject levels, volumes;
    for (size_t c = 0; c < outcome.Structures.size(); ++c)
    {
      const std::string& name = outcome.Structures[c].Name;
      volumes.Set(name, VolumesJson(outcome.Volumes[c]));
      if (files.count(LevelsMap(name)))
      {
        levels.Set(name, files[LevelsMap(name)]);
      }
    }
    entry.Set("levels", levels).Set("volumes", volumes);
  }
  folder.RemoveOlder(one.Id, files);
  return entry;
}

/// Which intervals there are not: in one sentence where that is so of all structures.
std::string VolumeRemark(const Outcome& outcome)
{
  const std::string& first = outcome.Volumes.front().Remark;
  const bool same = std::all_of(outcome.Volumes.begin(), outcome.Volumes.end(),
    [&first](const PredictedVolumes& volumes) { return volumes.Remark == first; });
  std::string text = same ? first : "";
  for (size_t c = 0; c < outcome.Volumes.size() && !same; ++c)
  {
    const std::string& remark = outcome.Volumes[c].Remark;
    text += remark.empty() ? "" : (text.empty() ? "" : "\n") + outcome.Structures[c].Name + ": " + remark;
  }
  return text;
}

/// Rows of the table and of the CSV file: one for each structure, or for the only one.
void TellVolumes(JsonObject& record, const Outcome& outcome, const Case& one)
{
  const rcn_geometry& geometry = outcome.Marks.Geometry();
  const Extent extent(geometry);
  JsonArray rows;
  std::string csv;
  for (size_t c = 0; c < outcome.Volumes.size(); ++c)
  {
    const PredictedVolumes& volumes = outcome.Volumes[c];
    const PredictedInterval& interval = volumes.Intervals.front();
    const std::string* name = outcome.Structures.empty() ? nullptr : &outcome.Structures[c].Name;
    std::vector<std::string> row = { one.Id, SizeText(geometry), extent.Text(outcome.Marked(c)) + extent.Unit,
      volumes.TextWithUnit(volumes.Expected),
      interval.IsKnown() ? volumes.Text(interval.Low) + " to " + volumes.TextWithUnit(interval.High) : "–",
      std::to_string(outcome.Tiles) };
    if (name)
    {
      row.insert(row.begin() + 1, *name);
    }
    rows.Add(row);
    csv += VolumesCsv(one.Id, volumes, name);
  }
  record.Set("rows", rows).Set("csv", csv).Set("remark", VolumeRemark(outcome));
}

void CheckArguments(const Arguments& arguments)
{
  if (!arguments.Has("--model"))
  {
    throw Error(RCN_EINVALID, "Give the model with --model FILE.");
  }
  if (arguments.Has("--data") == arguments.Has("--image"))
  {
    throw Error(RCN_EINVALID, "Give either an image or a folder with --image, or a list with --data LIST.");
  }
  if (arguments.Has("--split") && !arguments.Has("--data"))
  {
    throw Error(RCN_EINVALID, "--split is for a list of cases; give --data LIST.");
  }
  if (arguments.Has("--levels") && arguments.Has("--no-levels"))
  {
    throw Error(RCN_EINVALID, "Give either --levels or --no-levels.");
  }
  if (arguments.Has("--recalibration") && arguments.Has("--no-recalibration"))
  {
    throw Error(RCN_EINVALID, "Give either --recalibration or --no-recalibration.");
  }
  CheckTextOutputs(arguments);
}

/// The cases of --data, whose raters must be the model's, or of --image.
DataList CasesFrom(const Arguments& arguments, const Model& model)
{
  if (!arguments.Has("--data"))
  {
    return ListFrom(arguments);
  }
  const DataList list = DataListFrom(arguments, "--data", model.HasSeveralStructures());
  try
  {
    model.CheckRaters(list.Raters, list.Path);
    model.CheckStructures(list.Structures, list.Path);
  }
  catch (const Error& error)
  {
    throw Error(error.Status(), std::string(error.what()) + " (To predict anyway, give the images with --image.)");
  }
  return list;
}

/// One case. Its end writes the maps and returns its entry for --json, its row in the table, and the time it took.
CaseEnd PredictCase(const Case& one, const Model& model, const PredictionOptions& options, Workspace& workspace,
  const PredictionFolder& folder, const Arguments& arguments, std::vector<std::string>& remarks)
{
  Seconds spent;
  Stopwatch watch;
  if (one.Images.empty())
  {
    throw Error(RCN_EDATA, "the list has no image.");
  }
  const double tolerance = arguments.GetNumber("--tolerance", RCN_GEOMETRY_TOLERANCE);
  const std::vector<Volume> images = ImagesOf(workspace.Context(), one, tolerance);
  spent.Read = watch.Lap();
  const Prediction prediction = Predict(model, workspace.Context(), images, one.Images.front(), options);
  remarks.insert(remarks.end(), prediction.Remarks.begin(), prediction.Remarks.end());
  const bool several = prediction.Structures != nullptr;
  // Only what is written stays in memory while the next case is predicted.
  Outcome outcome{ prediction.Readout, prediction.Tiles,
    MapsOf(prediction, workspace.Context(), model.RaterCount(), arguments.Has("--levels")), prediction.StructureList,
    several ? prediction.StructureVolumes : std::vector<PredictedVolumes>{ prediction.Volumes },
    several ? prediction.Labels : prediction.Mask };
  if (arguments.Has("--no-levels"))
  {
    outcome.Maps.erase(std::remove_if(outcome.Maps.begin(), outcome.Maps.end(),
                         [](const NamedMap& map) { return map.Name == "levels" || !map.Structure.empty(); }),
      outcome.Maps.end());
  }
  spent.Compute = watch.Lap();
  return [&one, &folder, &arguments, outcome, spent](std::vector<std::string>& endRemarks) mutable {
    Stopwatch endWatch;
    JsonObject record{ { "json", WritePrediction(outcome, one, folder, arguments, endRemarks) } };
    spent.Write = endWatch.Lap();
    TellVolumes(record, outcome, one);
    record.Set("seconds", spent.Json());
    return JsonHandle(record.Release());
  };
}

int RunPredict(const Arguments& arguments)
{
  Terminal terminal(arguments);
  CheckArguments(arguments);
  PredictionOptions options = PredictionOptionsFrom(arguments);
  Recalibration correction;
  if (arguments.Has("--recalibration"))
  {
    correction = ReadRecalibration(arguments.Get("--recalibration"));
    options.Correction = &correction;
  }
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  terminal.Watch(workspace);
  const Model model(workspace.Context(), arguments.Get("--model"));
  CheckPrediction(model, options);
  const DataList list = CasesFrom(arguments, model);
  MakeFolder(arguments.Get("-o", "."));
  // The manifest is one process's: it forgets the cases before anybody writes, and is complete after everybody has.
  PredictionFolder folder(arguments.Get("-o", "."));
  Processes::All().WaitForAll(); // all have read which maps are older
  if (Processes::All().IsFirst())
  {
    terminal.Remark(folder.Begin(RunOf(model, options), IdsOf(list, arguments)));
  }
  Processes::All().WaitForAll();

  Seconds seconds;
  const bool several = model.HasSeveralStructures() && options.Structure.empty();
  std::vector<std::string> headings = { "Case", "Size", "Marked", "Expected", "80 % prediction interval", "Tiles" };
  if (several)
  {
    headings.insert(headings.begin() + 1, "Structure");
  }
  Table table(headings);
  JsonArray cases;
  std::string csv = VolumesCsvHeading(model.RaterCount(), several), volumeRemark;
  const auto predict = [&](const Case& one, size_t, std::vector<std::string>& remarks) -> CaseEnd {
    return PredictCase(one, model, options, workspace, folder, arguments, remarks);
  };
  const auto collect = [&](const Case& one, const json_t* record) {
    folder.Add(one.Id, FilesOf(json_object_get(record, "json")));
    size_t row;
    json_t* cells;
    json_array_foreach(json_object_get(record, "rows"), row, cells)
    {
      table.Add(StringsFrom(cells));
    }
    cases.Add(json_incref(json_object_get(record, "json")));
    csv += json_string_value(json_object_get(record, "csv"));
    volumeRemark = json_string_value(json_object_get(record, "remark")); // the same for all cases of a model
    seconds.Add(json_object_get(record, "seconds"));
  };
  CaseLoop loop = LoopFor(arguments, terminal);
  loop.LeaveOut = list.Cases.size() > 1 || arguments.Has("--data");
  loop.Overlap = rcn_context_threads(workspace.Context()) > 1; // one thread is one thread
  const std::vector<LeftOutCase> leftOut = ForEachCaseInTwoSteps(list, loop, predict, collect);
  if (Processes::All().IsFirst())
  {
    folder.Finish();
  }
  if (arguments.Has("--csv") && Processes::All().IsFirst())
  {
    WriteText(arguments.Get("--csv"), csv);
  }
  const auto count = static_cast<int64_t>(json_array_size(cases.Get()));
  Print(arguments,
    table.Text() + (volumeRemark.empty() ? "" : volumeRemark + "\n") + Counted(count, "case") + " written to " +
      arguments.Get("-o", ".") + "\n");
  JsonObject results{ { "model", model.Path() }, { "raters", model.Info().Raters } };
  if (several)
  {
    results.Set("structures", StructuresJson(model.Info().Structures));
  }
  WriteResults(arguments, results.Set("cases", cases).Set("left_out", LeftOutJson(leftOut)).Set("seconds", seconds.Json()));
  return ExitCodeOf(leftOut);
}

} // namespace

Command PredictCommand()
{
  return { "predict", "apply a model to images: probabilities, levels of consensus, masks",
    { "--model MODEL --image FILE|DIR [-o DIR]", "--model MODEL --data LIST [-o DIR]" },
    "Writes <case>_prob (the readout), <case>_levels (the probabilities that 0, 1, ... K raters mark a voxel) and <case>_mask "
    "in the geometry of the image. An image of any size is covered with overlapping tiles. A volume is turned to the axes that "
    "the model was trained on, and the maps are turned back. A 2-D network goes through a volume slice by slice; for a 3-D "
    "network, a volume is resampled to the spacing of training and back. The correction stored in the model is applied. The "
    "volume that a rater would mark is given with intervals, which come from the validation cases of the model. "
    "predictions.json in the same folder lists the maps and how they were made; evaluate, recalibrate and report read it. "
    "What an earlier run wrote for a case is replaced. In a folder or a list, a case that fails does not stop the others. A "
    "model of several structures writes <case>_prob with a component for each, <case>_labels (the most probable label of each "
    "voxel, with the names of the structures) and, with --levels, <case>_<structure>_levels.",
    Join(
      { { "--model", "FILE", "model made by train, or a PyTorch state dict with metadata (.safetensors)", {}, false,
          FileUse::Read },
        { "--image", "FILE", "image, DICOM folder or folder of images; repeat it for one file per channel", {}, true,
          FileUse::Read },
        { "--data", "LIST", "predict all images of a data list (JSON)", {}, false, FileUse::ReadList },
        { "--split", "SPLIT", "with --data: use only these cases", { "training", "validation", "test" } },
        { "-o", "DIR", "folder for the maps (.)" },
        { "--readout", "WHICH", "majority, more-than-half, expected or at-least:T (that of the model)" }, StructureOption(),
        { "--threshold", "T", "probability from which a voxel belongs to the mask (0.5)" },
        { "--uncertainty", "", "also write <case>_uncertainty: the entropy of the levels, in bits" },
        { "--no-levels", "", "do not write <case>_levels: takes less memory" },
        { "--levels", "", "several structures: also write <case>_<structure>_levels" },
        { "--flips", "", "average over all flips of the image: 4 times the work, 8 times for a 3-D network" },
        { "--tile", "VOXELS", "size of a tile, N or X,Y,Z (as large as --memory allows)" },
        { "--overlap", "SHARE", "overlap of neighboring tiles (0.25)" },
        { "--memory", "MB", "approximate memory for a tile in the network (256)" },
        { "--recalibration", "FILE", "apply this correction, made by recalibrate, instead of the one stored in the model", {},
          false, FileUse::Read },
        { "--no-recalibration", "", "do not apply the correction stored in the model" },
        { "--format", "EXT", "file format (.nrrd)", { ".nrrd", ".nii.gz", ".mha", ".tif" } },
        { "--tolerance", "VOXELS", "largest distance between voxels of two channels that count as the same place (0.01)" },
        { "--csv", "FILE", "volumes with intervals: a row for each case and for each connected component; - is standard output",
          {}, false, FileUse::Written } },
      OutputOptions()),
    RunPredict, PredictOutputs };
}

} // namespace rcn
