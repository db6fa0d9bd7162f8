// SPDX-License-Identifier: Apache-2.0
#include "rcnSession.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "rcnFile.h"
#include "rcnImageIO.h"
#include "rcnJson.h"
#include "rcnOverwrite.h"
#include "rcnPredictionFolder.h"
#include "rcnStructureMaps.h"

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

// Of the file. A change that older programs would read wrongly needs a higher number; a new key that they may ignore does not.
constexpr int Version = 1;
const std::string Ending = ".rcn.json";

// ---- paths -----------------------------------------------------------------------------------------

fs::path Absolute(const std::string& path)
{
  std::error_code ignored;
  const fs::path whole = fs::absolute(path, ignored);
  return (whole.empty() ? fs::path(path) : whole).lexically_normal();
}

/// As it stands in the file: relative to the file's folder, so that both can move together.
std::string Relative(const std::string& path, const fs::path& folder)
{
  return path.empty() ? "" : Absolute(path).lexically_relative(folder).string();
}

std::string Resolve(const std::string& path, const fs::path& folder)
{
  return path.empty() ? "" : (folder / path).lexically_normal().string();
}

/// NAME.rcn of NAME.rcn.json
std::string FolderOf(const std::string& path)
{
  return path.substr(0, path.size() - std::string(".json").size());
}

/// Whether the viewer may treat the file as its own, and move it along with the workspace.
bool IsInside(const std::string& path, const std::string& folder)
{
  if (folder.empty() || path.empty())
  {
    return false;
  }
  const fs::path relative = Absolute(path).lexically_relative(Absolute(folder));
  return !relative.empty() && *relative.begin() != "..";
}

/// Names of cases and models become names of files below the workspace's folder, so they must not lead out of it.
bool IsFileName(const std::string& name)
{
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

/// A name that a file can have, whatever was given.
std::string NameFrom(std::string text)
{
  std::replace(text.begin(), text.end(), '/', '_');
  return IsFileName(text) ? text : "unnamed";
}

/// The name, or the name with the first number behind it that is free.
template <class TTaken> std::string Unique(const std::string& wanted, const TTaken& isTaken)
{
  std::string name = wanted;
  for (int number = 2; isTaken(name); ++number)
  {
    name = wanted + "-" + std::to_string(number);
  }
  return name;
}

// ---- writing ---------------------------------------------------------------------------------------

Json CaseJson(const Case& one, const fs::path& folder)
{
  JsonArray images, raters;
  for (const std::string& image : one.Images)
  {
    images.Add(Relative(image, folder));
  }
  for (const RaterFile& rater : one.Raters)
  {
    JsonObject file{ { "name", rater.Name }, { "file", Relative(rater.Path, folder) }, { "values", rater.Values },
      { "channel", rater.Channel } };
    if (!rater.Structures.empty())
    {
      JsonArray structures;
      for (const StructureFile& structure : rater.Structures)
      {
        structures.Add(JsonObject{
          { "file", Relative(structure.Path, folder) }, { "values", structure.Values }, { "channel", structure.Channel } });
      }
      file.Set("structures", structures);
    }
    raters.Add(file);
  }
  JsonObject object{ { "id", one.Id }, { "split", one.Split }, { "patient", one.Patient }, { "images", images },
    { "raters", raters } };
  if (one.Unanswered)
  {
    object.Set("unanswered", *one.Unanswered);
  }
  return object;
}

Json ViewJson(const SessionView& view)
{
  JsonObject object;
  if (view.HasCursor)
  {
    object.Set("cursor", Json(view.Cursor, 3));
  }
  if (view.HasWindow)
  {
    object.Set("window", view.Window).Set("level", view.Level);
  }
  if (!view.Structure.empty())
  {
    object.Set("structure", view.Structure);
  }
  if (!view.HiddenStructures.empty())
  {
    object.Set("hidden_structures", view.HiddenStructures);
  }
  return object.Set("hidden_raters", view.HiddenRaters)
    .Set("heat_map", view.HeatMap)
    .Set("contours", view.Contours)
    .Set("isolated_level", view.IsolatedLevel)
    .Set("palette", view.Palette)
    .Set("overlay", view.Overlay)
    .Set("readout", view.Readout)
    .Set("opacity", view.Opacity)
    .Set("threshold", view.Threshold)
    .Set("threshold_contour", view.ThresholdContour)
    .Set("level_contours", view.LevelContours)
    .Set("layout", view.Layout)
    .Set("panel", view.Panel);
}

/// The whole file. Maps in memory are not in it: WritePredictions() has made files of them before.
std::string SessionText(const Session& session, const fs::path& folder)
{
  JsonArray cases, models, predictions;
  for (const Case& one : session.Cases)
  {
    cases.Add(CaseJson(one, folder));
  }
  for (const SessionModel& model : session.Models)
  {
    models.Add(JsonObject{ { "name", model.Name }, { "file", Relative(model.Path, folder) } });
  }
  for (const SessionPrediction& prediction : session.Predictions)
  {
    JsonObject object{ { "case", prediction.Case }, { "model", prediction.Model }, { "readout", prediction.Readout },
      { "levels", Relative(prediction.Levels, folder) }, { "probability", Relative(prediction.Probability, folder) } };
    if (prediction.Raters)
    {
      JsonArray levels;
      for (const std::string& file : prediction.StructureLevels)
      {
        levels.Add(Relative(file, folder));
      }
      object.Set("raters", prediction.Raters).Set("structure_levels", levels);
    }
    predictions.Add(object);
  }
  const EvaluationChoice& judged = session.Evaluation;
  const JsonObject evaluation{ { "model", judged.Model }, { "split", judged.Split }, { "region", judged.Region },
    { "readout", judged.Readout }, { "bins", judged.Bins }, { "correction", Relative(judged.Correction, folder) } };
  JsonObject root{ { "rcn_workspace", Version }, { "raters", session.Raters } };
  if (!session.Structures.empty())
  {
    root.Set("structures", StructuresJson(session.Structures));
  }
  root.Set("cases", cases)
    .Set("current", session.Current)
    .Set("models", models)
    .Set("model", session.Model)
    .Set("predictions", predictions)
    .Set("fusions", session.Fusions)
    .Set("view", ViewJson(session.View))
    .Set("evaluation", evaluation);
  return DocumentText(root.Get());
}

// ---- reading ---------------------------------------------------------------------------------------

/// A workspace file may come from anybody: what it names is checked here, so that later code may rely on it. Whether files
/// exist is not asked, because one that is missing should cost its case only.
Case ReadCase(const JsonReader& reader, const Session& session, const fs::path& folder)
{
  Case one;
  one.Id = reader.Text("id", "");
  if (!IsFileName(one.Id) || session.FindCase(one.Id))
  {
    reader.Fail("the id \"" + one.Id + "\" of a case occurs twice or cannot be used as a file name.");
  }
  one.Split = reader.Text("split", "");
  if (!one.Split.empty() && one.Split != "training" && one.Split != "validation" && one.Split != "test")
  {
    reader.Fail("case " + one.Id + ": unknown split \"" + one.Split + "\".");
  }
  one.Patient = reader.Text("patient", "");
  one.Structures = session.Structures;
  if (reader.Has("unanswered"))
  {
    one.Unanswered = reader.WholeNumber("unanswered", -LargestLabel, LargestLabel, 0);
  }
  for (const std::string& image : reader.Texts("images"))
  {
    one.Images.push_back(Resolve(image, folder));
  }
  for (const JsonReader& file : reader.Objects("raters"))
  {
    RaterFile rater;
    rater.Name = file.Text("name", "");
    rater.Path = Resolve(file.Text("file", ""), folder);
    rater.Channel = static_cast<int>(file.WholeNumber("channel", -1, 1 << 20, -1));
    rater.Values = file.WholeNumbers("values", -LargestLabel, LargestLabel);
    for (const JsonReader& structure : file.Objects("structures"))
    {
      rater.Structures.push_back(
        { Resolve(structure.Text("file", ""), folder), structure.WholeNumbers("values", -LargestLabel, LargestLabel),
          static_cast<int>(structure.WholeNumber("channel", -1, 1 << 20, -1)) });
    }
    if (!rater.Structures.empty() && rater.Structures.size() != session.Structures.size())
    {
      reader.Fail("case " + one.Id + ": the rater \"" + rater.Name + "\" has files of other structures than \"structures\".");
    }
    const bool known = std::find(session.Raters.begin(), session.Raters.end(), rater.Name) != session.Raters.end();
    if (rater.Path.empty() || !known)
    {
      reader.Fail("case " + one.Id + ": the rater \"" + rater.Name + "\" has no file or is not among \"raters\".");
    }
    one.Raters.push_back(rater);
  }
  if (one.Images.empty() && one.Raters.empty())
  {
    reader.Fail("case " + one.Id + " has neither an image nor a rater.");
  }
  return one;
}

/// How it was looked at. All of it may be missing, as in a file of an older program: the defaults stand in.
SessionView ReadView(const JsonReader& reader)
{
  // Wide limits, which keep out only what would make later arithmetic overflow.
  constexpr double far = 1e9, bright = 1e30;
  SessionView view;
  const std::vector<double> cursor = reader.Numbers("cursor", -far, far);
  view.HasCursor = !cursor.empty();
  if (view.HasCursor && cursor.size() != 3)
  {
    reader.Fail("\"cursor\" must be three numbers.");
  }
  std::copy(cursor.begin(), cursor.end(), view.Cursor);
  view.HasWindow = reader.Has("window") && reader.Has("level");
  view.Window = reader.Number("window", 0, bright, view.Window);
  view.Level = reader.Number("level", -bright, bright, view.Level);
  view.HiddenRaters = reader.Texts("hidden_raters");
  view.Structure = reader.Text("structure", "");
  view.HiddenStructures = reader.Texts("hidden_structures");
  view.HeatMap = reader.Boolean("heat_map", view.HeatMap);
  view.Contours = reader.Boolean("contours", view.Contours);
  view.IsolatedLevel = static_cast<int>(reader.WholeNumber("isolated_level", -1, RCN_MAX_RATERS, view.IsolatedLevel));
  view.Palette = reader.Text("palette", "");
  view.Overlay = reader.Text("overlay", "");
  view.Readout = reader.Text("readout", view.Readout);
  view.Opacity = reader.Number("opacity", 0, 1, view.Opacity);
  view.Threshold = reader.Number("threshold", 0, 1, view.Threshold);
  view.ThresholdContour = reader.Boolean("threshold_contour", view.ThresholdContour);
  view.LevelContours = reader.Boolean("level_contours", view.LevelContours);
  view.Layout = reader.Text("layout", view.Layout);
  view.Panel = reader.Text("panel", "");
  return view;
}

EvaluationChoice ReadEvaluation(const JsonReader& reader, const fs::path& folder)
{
  EvaluationChoice choice;
  choice.Model = reader.Text("model", "");
  choice.Split = reader.Text("split", "");
  choice.Region = reader.Text("region", choice.Region);
  choice.Readout = reader.Text("readout", "");
  choice.Bins = static_cast<int>(reader.WholeNumber("bins", 1, 1000, choice.Bins));
  choice.Correction = Resolve(reader.Text("correction", ""), folder);
  return choice;
}

} // namespace

// ---- the session -----------------------------------------------------------------------------------

// The view remembers a name, because numbers change with the list of structures; one that is gone gives the first.
int Session::ShownStructure() const
{
  if (!this->HasStructures())
  {
    return 0;
  }
  const std::vector<std::string> names = NamesOf(this->Structures);
  const auto found = std::find(names.begin(), names.end(), this->View.Structure);
  return found == names.end() ? 1 : static_cast<int>(found - names.begin()) + 1;
}

std::string Session::StructureName(int structure) const
{
  return structure > 0 ? this->Structures.at(static_cast<size_t>(structure) - 1).Name : "";
}

const Case* Session::FindCase(const std::string& id) const
{
  const auto found = std::find_if(this->Cases.begin(), this->Cases.end(), [&](const Case& c) { return c.Id == id; });
  return found == this->Cases.end() ? nullptr : &*found;
}

const SessionModel* Session::FindModel(const std::string& name) const
{
  const auto found =
    std::find_if(this->Models.begin(), this->Models.end(), [&](const SessionModel& m) { return m.Name == name; });
  return found == this->Models.end() ? nullptr : &*found;
}

const SessionPrediction* Session::FindPrediction(const std::string& id, const std::string& model) const
{
  const auto found = std::find_if(this->Predictions.begin(), this->Predictions.end(),
    [&](const SessionPrediction& p) { return p.Case == id && p.Model == model; });
  return found == this->Predictions.end() ? nullptr : &*found;
}

void Session::SetPrediction(const SessionPrediction& prediction)
{
  if (const SessionPrediction* old = this->FindPrediction(prediction.Case, prediction.Model))
  {
    this->Predictions.erase(this->Predictions.begin() + (old - this->Predictions.data()));
  }
  this->Predictions.push_back(prediction);
}

// What was made with it goes, too: a prediction without its model could not be made again, or judged under its name.
void Session::RemoveModel(const std::string& name)
{
  this->Models.erase(
    std::remove_if(this->Models.begin(), this->Models.end(), [&](const SessionModel& m) { return m.Name == name; }),
    this->Models.end());
  this->Predictions.erase(std::remove_if(this->Predictions.begin(), this->Predictions.end(),
                            [&](const SessionPrediction& p) { return p.Model == name; }),
    this->Predictions.end());
  if (this->Model == name)
  {
    this->Model = this->Models.empty() ? "" : this->Models.back().Name;
  }
  if (this->Evaluation.Model == name)
  {
    this->Evaluation.Model.clear();
  }
}

void Session::RemoveCase(const std::string& id)
{
  this->Cases.erase(
    std::remove_if(this->Cases.begin(), this->Cases.end(), [&](const Case& one) { return one.Id == id; }), this->Cases.end());
  this->Predictions.erase(std::remove_if(this->Predictions.begin(), this->Predictions.end(),
                            [&](const SessionPrediction& p) { return p.Case == id; }),
    this->Predictions.end());
  if (this->Current == id)
  {
    this->Current.clear();
  }
}

// The model that was added last is the one in use.
std::string Session::AddModel(const std::string& path)
{
  const std::string name =
    Unique(NameFrom(StemOf(path)), [this](const std::string& n) { return this->FindModel(n) != nullptr; });
  this->Models.push_back({ name, path });
  this->Model = name;
  return name;
}

// Raters keep their order of first appearance: it is the order of their colors.
std::string Session::AddCase(Case one)
{
  one.Id = Unique(NameFrom(one.Id), [this](const std::string& id) { return this->FindCase(id) != nullptr; });
  for (const RaterFile& rater : one.Raters)
  {
    if (std::find(this->Raters.begin(), this->Raters.end(), rater.Name) == this->Raters.end())
    {
      this->Raters.push_back(rater.Name);
    }
  }
  one.Structures = this->Structures;
  this->Cases.push_back(one);
  return one.Id;
}

// What training and evaluating see: the cases with raters. One that belongs to no split is for training.
DataList Session::Data() const
{
  DataList list;
  list.Path = this->Path.empty() ? "The workspace" : this->Path;
  list.Raters = this->Raters;
  list.Structures = this->Structures;
  for (const Case& one : this->Cases)
  {
    if (!one.Raters.empty())
    {
      list.Cases.push_back(one);
      if (one.Split.empty())
      {
        list.Cases.back().Split = "training";
      }
    }
  }
  return list;
}

std::string Session::File(const std::string& kind, const std::string& name) const
{
  return (fs::path(this->Folder) / kind / name).string();
}

// ---- files -----------------------------------------------------------------------------------------

Session ParseSession(const std::string& text, const std::string& path)
{
  const JsonHandle root = ParseJson(text, path);
  const JsonReader reader(root.get(), path);
  if (!json_is_integer(reader.Get("rcn_workspace")))
  {
    reader.Fail("this is not a saved workspace.");
  }
  // Refused, not guessed at: saving it again would lose what this version does not know.
  if (json_integer_value(reader.Get("rcn_workspace")) > Version)
  {
    reader.Fail("a newer version of this program saved it; please update.");
  }
  const fs::path folder = Absolute(path).parent_path();
  Session session;
  session.Path = path;
  // NAME.rcn beside NAME.rcn.json: models that were trained and predictions live there.
  session.Folder = FolderOf(Absolute(path).string());
  session.Raters = reader.Texts("raters");
  if (session.Raters.size() > RCN_MAX_RATERS ||
    std::set<std::string>(session.Raters.begin(), session.Raters.end()).size() != session.Raters.size())
  {
    reader.Fail("\"raters\" must be at most " + std::to_string(RCN_MAX_RATERS) + " different names.");
  }
  session.Structures = StructuresFrom(reader);
  for (const JsonReader& entry : reader.Objects("cases"))
  {
    session.Cases.push_back(ReadCase(entry, session, folder));
  }
  session.Current = reader.Text("current", "");
  if (!session.Current.empty() && !session.FindCase(session.Current))
  {
    reader.Fail("the current case " + session.Current + " is not among the cases.");
  }
  for (const JsonReader& entry : reader.Objects("models"))
  {
    const SessionModel model = { entry.Text("name", ""), Resolve(entry.Text("file", ""), folder) };
    if (!IsFileName(model.Name) || model.Path.empty() || session.FindModel(model.Name))
    {
      reader.Fail("the model \"" + model.Name + "\" occurs twice or has no file or no usable name.");
    }
    session.Models.push_back(model);
  }
  session.Model = reader.Text("model", "");
  if (!session.Model.empty() && !session.FindModel(session.Model))
  {
    reader.Fail("the model in use, " + session.Model + ", is not among the models.");
  }
  for (const JsonReader& entry : reader.Objects("predictions"))
  {
    SessionPrediction prediction = { entry.Text("case", ""), entry.Text("model", ""), entry.Text("readout", ""),
      Resolve(entry.Text("levels", ""), folder), Resolve(entry.Text("probability", ""), folder) };
    prediction.Raters = static_cast<int>(entry.WholeNumber("raters", 0, RCN_MAX_RATERS, 0));
    for (const std::string& file : entry.Texts("structure_levels"))
    {
      prediction.StructureLevels.push_back(Resolve(file, folder));
    }
    if (!session.FindCase(prediction.Case) || !session.FindModel(prediction.Model) || prediction.Probability.empty())
    {
      reader.Fail("a prediction has no file, or its case or model is not in the workspace.");
    }
    session.SetPrediction(prediction);
  }
  session.Fusions = reader.Texts("fusions");
  session.View = ReadView(reader.Object("view"));
  // "judgement": how the first workspaces called it
  session.Evaluation = ReadEvaluation(reader.Object(reader.Has("evaluation") ? "evaluation" : "judgement"), folder);
  return session;
}

// Files may have been moved or deleted since. What is gone is left out and told; the rest opens.
Session ReadSession(const std::string& path, std::vector<std::string>* remarks)
{
  Session session = ParseSession(ReadText(path), path);
  std::vector<std::string> gone;
  std::error_code ignored;
  const auto missing = [&](const std::string& file) { return !file.empty() && !fs::exists(file, ignored); };
  // A copy: models are removed while looking at them.
  const std::vector<SessionModel> models = session.Models;
  for (const SessionModel& model : models)
  {
    if (missing(model.Path))
    {
      gone.push_back("The model " + model.Path + " no longer exists.");
      session.RemoveModel(model.Name);
    }
  }
  std::vector<SessionPrediction> kept;
  for (const SessionPrediction& prediction : session.Predictions)
  {
    const std::vector<std::string>& levels = prediction.StructureLevels;
    if (missing(prediction.Levels) || missing(prediction.Probability) || std::any_of(levels.begin(), levels.end(), missing))
    {
      gone.push_back("The prediction " + prediction.Probability + " no longer exists.");
      continue;
    }
    kept.push_back(prediction);
  }
  session.Predictions = kept;
  if (missing(session.Evaluation.Correction))
  {
    gone.push_back("The correction " + session.Evaluation.Correction + " no longer exists.");
    session.Evaluation.Correction.clear();
  }
  if (remarks)
  {
    *remarks = gone;
  }
  return session;
}

bool IsSessionPath(const std::string& path)
{
  return path.size() > Ending.size() && path.compare(path.size() - Ending.size(), Ending.size(), Ending) == 0;
}

std::string CheckSessionPath(const std::string& path)
{
  return IsSessionPath(path) ? CheckText(path) : path + " cannot be a workspace; its name must end in " + Ending + ".";
}

// Also through links and other names of the same file (rcnOverwrite).
void CheckExport(const Session& session, const std::string& path)
{
  std::vector<NamedFile> inputs;
  for (const Case& one : session.Cases)
  {
    const std::vector<NamedFile> files = FilesOf(one, "case " + one.Id);
    inputs.insert(inputs.end(), files.begin(), files.end());
  }
  for (const SessionModel& model : session.Models)
  {
    inputs.push_back({ "the model " + model.Name, model.Path });
  }
  for (const SessionPrediction& prediction : session.Predictions)
  {
    inputs.push_back({ "the prediction for " + prediction.Case, prediction.Levels });
    inputs.push_back({ "the prediction for " + prediction.Case, prediction.Probability });
    for (const std::string& file : prediction.StructureLevels)
    {
      inputs.push_back({ "the prediction for " + prediction.Case, file });
    }
  }
  const std::string sentence = CheckOverwrite({ { "The file", path } }, inputs);
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, sentence);
  }
}

size_t PredictionMaps::Bytes() const
{
  const auto bytes = [](const Volume& map) {
    return map.Data() ? sizeof(float) * static_cast<size_t>(rcn_geometry_voxels(&map.Geometry()) * map.ChannelCount()) : 0;
  };
  size_t sum = bytes(this->Levels) + bytes(this->Probability);
  if (this->Structures)
  {
    // Expected shares are the probability itself.
    sum += this->Structures->Shares.Data() == this->Probability.Data() ? 0 : bytes(this->Structures->Shares);
    for (const Volume& levels : this->Structures->Levels)
    {
      sum += bytes(levels);
    }
  }
  return sum;
}

namespace
{

/// Its maps go to files, with the manifest of their folder.
// The manifest first says that the case is being replaced, then the maps are written, then it names them: whoever reads the
// folder in between, or after a crash, finds no map of one run with the manifest of another.
void WritePrediction(SessionPrediction& prediction, const std::string& path)
{
  MakeFolder(path);
  PredictionFolder folder(path);
  folder.Begin(*prediction.Maps->Run, { prediction.Case });
  std::map<std::string, std::string> files;
  const auto write = [&](const std::string& kind, const Volume& map) {
    if (map.Data())
    {
      files[kind] = PredictionFolder::FileFor(path, prediction.Case, kind, ".nrrd");
      WriteImage(files[kind], map.View(), Content::Probability);
    }
  };
  write("prob", prediction.Maps->Probability);
  write("levels", prediction.Maps->Levels);
  prediction.StructureLevels.clear();
  for (size_t c = 0; prediction.Maps->Structures && c < prediction.Maps->Structures->Levels.size(); ++c)
  {
    const std::string kind = LevelsMap(prediction.Maps->Run->Structures[c].Name);
    write(kind, prediction.Maps->Structures->Levels[c]);
    prediction.StructureLevels.push_back(files[kind]);
  }
  prediction.Probability = files["prob"];
  prediction.Levels = prediction.Maps->Levels.Data() ? files["levels"] : "";
  folder.RemoveOlder(prediction.Case, files);
  folder.Add(prediction.Case, files);
  folder.Finish();
}

} // namespace

Session WritePredictions(const Session& session, const SessionProgress& progress)
{
  Session written = session;
  for (size_t i = 0; i < written.Predictions.size(); ++i)
  {
    SessionPrediction& prediction = written.Predictions[i];
    const double share = static_cast<double>(i) / static_cast<double>(written.Predictions.size());
    if (progress && progress(share, "writing predictions"))
    {
      throw Error(RCN_ECANCELLED, "Saving was canceled.");
    }
    if (prediction.Probability.empty())
    {
      WritePrediction(prediction, session.PredictionFolder(prediction.Model));
    }
  }
  return written;
}

// Oldest first, until what is left fits: the newest is the one that is looked at. What goes has been written before, so nothing
// is lost; maps that a view still shows stay alive through their own pointer.
void LimitPredictionMemory(Session& session, const std::function<void(const SessionPrediction&)>& changed)
{
  size_t bytes = 0;
  for (const SessionPrediction& prediction : session.Predictions)
  {
    bytes += prediction.Maps ? prediction.Maps->Bytes() : 0;
  }
  for (SessionPrediction& prediction : session.Predictions)
  {
    if (bytes > session.PredictionMemory && prediction.Maps)
    {
      bytes -= prediction.Maps->Bytes();
      if (prediction.Probability.empty())
      {
        WritePrediction(prediction, session.PredictionFolder(prediction.Model));
      }
      prediction.Maps.reset();
      changed(prediction);
    }
  }
}

Session SaveSession(const Session& session, const std::string& path, const SessionProgress& progress)
{
  const std::string sentence = CheckSessionPath(path);
  if (!sentence.empty())
  {
    throw Error(RCN_EIO, sentence);
  }
  CheckExport(session, path);
  Session saved = session;
  saved.Path = Absolute(path).string();
  saved.Folder = FolderOf(saved.Path);
  // What the viewer made moves along; a file of somebody else stays where it is.
  std::vector<std::string*> files;
  for (SessionModel& model : saved.Models)
  {
    files.push_back(&model.Path);
  }
  for (SessionPrediction& prediction : saved.Predictions)
  {
    files.push_back(&prediction.Levels);
    files.push_back(&prediction.Probability);
    for (std::string& file : prediction.StructureLevels)
    {
      files.push_back(&file);
    }
  }
  files.push_back(&saved.Evaluation.Correction);
  for (size_t i = 0; i < files.size(); ++i)
  {
    std::string& file = *files[i];
    if (progress && progress(static_cast<double>(i) / static_cast<double>(files.size()), "saving"))
    {
      throw Error(RCN_ECANCELLED, "Saving was canceled.");
    }
    // A file of somebody else, or nothing to move because the workspace stays where it is.
    if (!IsInside(file, session.Folder) || Absolute(session.Folder) == Absolute(saved.Folder))
    {
      continue;
    }
    const fs::path target = fs::path(saved.Folder) / Absolute(file).lexically_relative(Absolute(session.Folder));
    MakeFolder(target.parent_path().string());
    CopyFile(file, target.string());
    // Predictions go with their manifest.
    const fs::path manifest = PredictionFolder::ManifestOf(fs::path(file).parent_path().string());
    std::error_code ignored;
    if (fs::exists(manifest, ignored))
    {
      CopyFile(manifest.string(), (target.parent_path() / manifest.filename()).string());
    }
    file = target.string();
  }
  // After the copies, so that a manifest that was copied names these, too.
  saved = WritePredictions(saved, progress);
  WriteText(saved.Path, SessionText(saved, fs::path(saved.Path).parent_path()));
  return saved;
}

} // namespace rcn
