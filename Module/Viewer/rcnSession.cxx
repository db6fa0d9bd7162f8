// SPDX-License-Identifier: Apache-2.0
#include "rcnSession.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "rcnFile.h"
#include "rcnImageIO.h"
#include "rcnJson.h"
#include "rcnOverwrite.h"
#include "rcnPredictionFolder.h"

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

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

bool IsInside(const std::string& path, const std::string& folder)
{
  if (folder.empty() || path.empty())
  {
    return false;
  }
  const fs::path relative = Absolute(path).lexically_relative(Absolute(folder));
  return !relative.empty() && *relative.begin() != "..";
}

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

void Set(json_t* object, const char* key, const std::string& value)
{
  json_object_set_new(object, key, JsonString(value));
}

json_t* CaseJson(const Case& one, const fs::path& folder)
{
  json_t* entry = json_object();
  Set(entry, "id", one.Id);
  Set(entry, "split", one.Split);
  Set(entry, "patient", one.Patient);
  json_t* images = json_array();
  for (const std::string& image : one.Images)
  {
    json_array_append_new(images, JsonString(Relative(image, folder)));
  }
  json_object_set_new(entry, "images", images);
  json_t* raters = json_array();
  for (const RaterFile& rater : one.Raters)
  {
    json_t* file = json_object();
    Set(file, "name", rater.Name);
    Set(file, "file", Relative(rater.Path, folder));
    json_t* values = json_array();
    for (const int64_t value : rater.Values)
    {
      json_array_append_new(values, json_integer(value));
    }
    json_object_set_new(file, "values", values);
    json_object_set_new(file, "channel", json_integer(rater.Channel));
    json_array_append_new(raters, file);
  }
  json_object_set_new(entry, "raters", raters);
  return entry;
}

json_t* ViewJson(const SessionView& view)
{
  json_t* object = json_object();
  if (view.HasCursor)
  {
    json_object_set_new(object, "cursor", json_pack("[fff]", view.Cursor[0], view.Cursor[1], view.Cursor[2]));
  }
  if (view.HasWindow)
  {
    json_object_set_new(object, "window", JsonNumber(view.Window));
    json_object_set_new(object, "level", JsonNumber(view.Level));
  }
  json_object_set_new(object, "hidden_raters", JsonStrings(view.HiddenRaters));
  json_object_set_new(object, "heat_map", json_boolean(view.HeatMap));
  json_object_set_new(object, "contours", json_boolean(view.Contours));
  json_object_set_new(object, "isolated_level", json_integer(view.IsolatedLevel));
  Set(object, "palette", view.Palette);
  Set(object, "overlay", view.Overlay);
  Set(object, "readout", view.Readout);
  json_object_set_new(object, "opacity", JsonNumber(view.Opacity));
  json_object_set_new(object, "threshold", JsonNumber(view.Threshold));
  json_object_set_new(object, "threshold_contour", json_boolean(view.ThresholdContour));
  json_object_set_new(object, "level_contours", json_boolean(view.LevelContours));
  Set(object, "layout", view.Layout);
  Set(object, "panel", view.Panel);
  return object;
}

std::string SessionText(const Session& session, const fs::path& folder)
{
  const JsonHandle root(json_object());
  json_object_set_new(root.get(), "rcn_workspace", json_integer(Version));
  json_object_set_new(root.get(), "raters", JsonStrings(session.Raters));
  json_t* cases = json_array();
  for (const Case& one : session.Cases)
  {
    json_array_append_new(cases, CaseJson(one, folder));
  }
  json_object_set_new(root.get(), "cases", cases);
  Set(root.get(), "current", session.Current);
  json_t* models = json_array();
  for (const SessionModel& model : session.Models)
  {
    json_t* entry = json_object();
    Set(entry, "name", model.Name);
    Set(entry, "file", Relative(model.Path, folder));
    json_array_append_new(models, entry);
  }
  json_object_set_new(root.get(), "models", models);
  Set(root.get(), "model", session.Model);
  json_t* predictions = json_array();
  for (const SessionPrediction& prediction : session.Predictions)
  {
    json_t* entry = json_object();
    Set(entry, "case", prediction.Case);
    Set(entry, "model", prediction.Model);
    Set(entry, "readout", prediction.Readout);
    Set(entry, "levels", Relative(prediction.Levels, folder));
    Set(entry, "probability", Relative(prediction.Probability, folder));
    json_array_append_new(predictions, entry);
  }
  json_object_set_new(root.get(), "predictions", predictions);
  json_object_set_new(root.get(), "fusions", JsonStrings(session.Fusions));
  json_object_set_new(root.get(), "view", ViewJson(session.View));
  const SessionJudgement& judged = session.Judgement;
  json_t* judgement = json_object();
  Set(judgement, "model", judged.Model);
  Set(judgement, "split", judged.Split);
  Set(judgement, "region", judged.Region);
  Set(judgement, "readout", judged.Readout);
  json_object_set_new(judgement, "bins", json_integer(judged.Bins));
  Set(judgement, "correction", Relative(judged.Correction, folder));
  json_object_set_new(root.get(), "judgement", judgement);
  return DocumentText(root.get());
}

// ---- reading ---------------------------------------------------------------------------------------

/// Reads values of a file that may hold anything: another type than expected is an error with the key's name.
class Reader
{
public:
  explicit Reader(const std::string& path) : Path_(path), Folder_(Absolute(path).parent_path()) {}

  [[noreturn]] void Fail(const std::string& what) const { throw Error(RCN_EFORMAT, this->Path_ + ": " + what); }

  std::string Text(const json_t* object, const char* key, const std::string& fallback = "") const
  {
    const json_t* value = json_object_get(object, key);
    if (!value)
    {
      return fallback;
    }
    if (!json_is_string(value) || json_string_length(value) != std::string(json_string_value(value)).size())
    {
      this->Fail(std::string("\"") + key + "\" must be a text.");
    }
    return json_string_value(value);
  }

  std::string File(const json_t* object, const char* key) const { return Resolve(this->Text(object, key), this->Folder_); }

  bool Boolean(const json_t* object, const char* key, bool fallback) const
  {
    const json_t* value = json_object_get(object, key);
    if (value && !json_is_boolean(value))
    {
      this->Fail(std::string("\"") + key + "\" must be true or false.");
    }
    return value ? json_is_true(value) : fallback;
  }

  double Number(const json_t* value, const std::string& key, double low, double high) const
  {
    const double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= low) || !(number <= high))
    {
      this->Fail("\"" + key + "\" must be a number that makes sense there.");
    }
    return number;
  }

  double Number(const json_t* object, const char* key, double fallback, double low, double high) const
  {
    const json_t* value = json_object_get(object, key);
    return value ? this->Number(value, key, low, high) : fallback;
  }

  int Integer(const json_t* object, const char* key, int fallback, int low, int high) const
  {
    const json_t* value = json_object_get(object, key);
    if (value && !json_is_integer(value))
    {
      this->Fail(std::string("\"") + key + "\" must be a whole number.");
    }
    return static_cast<int>(this->Number(object, key, fallback, low, high));
  }

  /// The elements of an array; none when the key is not there.
  std::vector<const json_t*> Array(const json_t* object, const char* key) const
  {
    const json_t* array = json_object_get(object, key);
    if (array && !json_is_array(array))
    {
      this->Fail(std::string("\"") + key + "\" must be an array.");
    }
    std::vector<const json_t*> elements;
    for (size_t i = 0; i < json_array_size(array); ++i)
    {
      elements.push_back(json_array_get(array, i));
    }
    return elements;
  }

  std::vector<const json_t*> Objects(const json_t* object, const char* key) const
  {
    const std::vector<const json_t*> elements = this->Array(object, key);
    for (const json_t* element : elements)
    {
      if (!json_is_object(element))
      {
        this->Fail(std::string("\"") + key + "\" must be an array of objects.");
      }
    }
    return elements;
  }

  std::vector<std::string> Texts(const json_t* object, const char* key) const
  {
    std::vector<std::string> texts;
    for (const json_t* element : this->Array(object, key))
    {
      if (!json_is_string(element))
      {
        this->Fail(std::string("\"") + key + "\" must be an array of texts.");
      }
      texts.push_back(json_string_value(element));
    }
    return texts;
  }

  const std::string& Path() const { return this->Path_; }
  const fs::path& Folder() const { return this->Folder_; }

private:
  std::string Path_;
  fs::path Folder_;
};

Case ReadCase(const Reader& reader, const json_t* entry, const Session& session)
{
  Case one;
  one.Id = reader.Text(entry, "id");
  if (!IsFileName(one.Id) || session.FindCase(one.Id))
  {
    reader.Fail("the id \"" + one.Id + "\" of a case stands there twice or is not usable as a file name.");
  }
  one.Split = reader.Text(entry, "split");
  if (!one.Split.empty() && one.Split != "training" && one.Split != "validation" && one.Split != "test")
  {
    reader.Fail("case " + one.Id + ": there is no split \"" + one.Split + "\".");
  }
  one.Patient = reader.Text(entry, "patient");
  for (const std::string& image : reader.Texts(entry, "images"))
  {
    one.Images.push_back(Resolve(image, reader.Folder()));
  }
  for (const json_t* file : reader.Objects(entry, "raters"))
  {
    RaterFile rater;
    rater.Name = reader.Text(file, "name");
    rater.Path = reader.File(file, "file");
    rater.Channel = reader.Integer(file, "channel", -1, -1, 1 << 20);
    for (const json_t* value : reader.Array(file, "values"))
    {
      if (!json_is_integer(value) || std::llabs(json_integer_value(value)) > LargestLabel)
      {
        reader.Fail("case " + one.Id + ": a label value must be a whole number.");
      }
      rater.Values.push_back(json_integer_value(value));
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

SessionView ReadView(const Reader& reader, const json_t* object)
{
  constexpr double far = 1e9;
  SessionView view;
  const std::vector<const json_t*> cursor = reader.Array(object, "cursor");
  view.HasCursor = !cursor.empty();
  if (view.HasCursor && cursor.size() != 3)
  {
    reader.Fail("\"cursor\" must be three numbers.");
  }
  for (size_t a = 0; a < cursor.size(); ++a)
  {
    view.Cursor[a] = reader.Number(cursor[a], "cursor", -far, far);
  }
  view.HasWindow = json_object_get(object, "window") && json_object_get(object, "level");
  view.Window = reader.Number(object, "window", view.Window, 0, 1e30);
  view.Level = reader.Number(object, "level", view.Level, -1e30, 1e30);
  view.HiddenRaters = reader.Texts(object, "hidden_raters");
  view.HeatMap = reader.Boolean(object, "heat_map", view.HeatMap);
  view.Contours = reader.Boolean(object, "contours", view.Contours);
  view.IsolatedLevel = reader.Integer(object, "isolated_level", view.IsolatedLevel, -1, RCN_MAX_RATERS);
  view.Palette = reader.Text(object, "palette");
  view.Overlay = reader.Text(object, "overlay");
  view.Readout = reader.Text(object, "readout", view.Readout);
  view.Opacity = reader.Number(object, "opacity", view.Opacity, 0, 1);
  view.Threshold = reader.Number(object, "threshold", view.Threshold, 0, 1);
  view.ThresholdContour = reader.Boolean(object, "threshold_contour", view.ThresholdContour);
  view.LevelContours = reader.Boolean(object, "level_contours", view.LevelContours);
  view.Layout = reader.Text(object, "layout", view.Layout);
  view.Panel = reader.Text(object, "panel");
  return view;
}

} // namespace

// ---- the session -----------------------------------------------------------------------------------

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
    this->Predictions[static_cast<size_t>(old - this->Predictions.data())] = prediction;
    return;
  }
  this->Predictions.push_back(prediction);
}

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
  if (this->Judgement.Model == name)
  {
    this->Judgement.Model.clear();
  }
}

std::string Session::AddModel(const std::string& path)
{
  const std::string name =
    Unique(NameFrom(StemOf(path)), [this](const std::string& n) { return this->FindModel(n) != nullptr; });
  this->Models.push_back({ name, path });
  this->Model = name;
  return name;
}

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
  this->Cases.push_back(one);
  return one.Id;
}

DataList Session::Data() const
{
  DataList list;
  list.Path = this->Path.empty() ? "The workspace" : this->Path;
  list.Raters = this->Raters;
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
  const Reader reader(path);
  json_error_t error;
  const JsonHandle root(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error));
  if (!root)
  {
    throw Error(RCN_EFORMAT, path + " is no valid JSON: " + error.text + " (line " + std::to_string(error.line) + ").");
  }
  const json_t* version = json_object_get(root.get(), "rcn_workspace");
  if (!json_is_integer(version))
  {
    reader.Fail("this is no saved workspace.");
  }
  if (json_integer_value(version) > Version)
  {
    reader.Fail("a newer version of this program saved it; please update.");
  }
  Session session;
  session.Path = path;
  session.Folder = FolderOf(Absolute(path).string());
  session.Raters = reader.Texts(root.get(), "raters");
  if (session.Raters.size() > RCN_MAX_RATERS ||
    std::set<std::string>(session.Raters.begin(), session.Raters.end()).size() != session.Raters.size())
  {
    reader.Fail("\"raters\" must be at most " + std::to_string(RCN_MAX_RATERS) + " different names.");
  }
  for (const json_t* entry : reader.Objects(root.get(), "cases"))
  {
    session.Cases.push_back(ReadCase(reader, entry, session));
  }
  session.Current = reader.Text(root.get(), "current");
  if (!session.Current.empty() && !session.FindCase(session.Current))
  {
    reader.Fail("the current case " + session.Current + " is not among the cases.");
  }
  for (const json_t* entry : reader.Objects(root.get(), "models"))
  {
    const SessionModel model = { reader.Text(entry, "name"), reader.File(entry, "file") };
    if (!IsFileName(model.Name) || model.Path.empty() || session.FindModel(model.Name))
    {
      reader.Fail("the model \"" + model.Name + "\" stands there twice or has no file or no usable name.");
    }
    session.Models.push_back(model);
  }
  session.Model = reader.Text(root.get(), "model");
  if (!session.Model.empty() && !session.FindModel(session.Model))
  {
    reader.Fail("the model in use, " + session.Model + ", is not among the models.");
  }
  for (const json_t* entry : reader.Objects(root.get(), "predictions"))
  {
    SessionPrediction prediction;
    prediction.Case = reader.Text(entry, "case");
    prediction.Model = reader.Text(entry, "model");
    prediction.Readout = reader.Text(entry, "readout");
    prediction.Levels = reader.File(entry, "levels");
    prediction.Probability = reader.File(entry, "probability");
    if (!session.FindCase(prediction.Case) || !session.FindModel(prediction.Model) || prediction.Probability.empty())
    {
      reader.Fail("a prediction is of no case or no model of the workspace, or has no file.");
    }
    session.SetPrediction(prediction);
  }
  session.Fusions = reader.Texts(root.get(), "fusions");
  const auto object = [&](const char* key) {
    const json_t* value = json_object_get(root.get(), key);
    if (value && !json_is_object(value))
    {
      reader.Fail(std::string("\"") + key + "\" must be an object.");
    }
    return value;
  };
  session.View = ReadView(reader, object("view"));
  const json_t* judgement = object("judgement");
  session.Judgement.Model = reader.Text(judgement, "model");
  session.Judgement.Split = reader.Text(judgement, "split");
  session.Judgement.Region = reader.Text(judgement, "region", session.Judgement.Region);
  session.Judgement.Readout = reader.Text(judgement, "readout");
  session.Judgement.Bins = reader.Integer(judgement, "bins", session.Judgement.Bins, 1, 1000);
  session.Judgement.Correction = reader.File(judgement, "correction");
  return session;
}

Session ReadSession(const std::string& path, std::vector<std::string>* remarks)
{
  Session session = ParseSession(ReadText(path), path);
  std::vector<std::string> gone;
  std::error_code ignored;
  const auto missing = [&](const std::string& file) { return !file.empty() && !fs::exists(file, ignored); };
  const std::vector<SessionModel> models = session.Models;
  for (const SessionModel& model : models)
  {
    if (missing(model.Path))
    {
      gone.push_back("The model " + model.Path + " is not there any more.");
      session.RemoveModel(model.Name);
    }
  }
  std::vector<SessionPrediction> kept;
  for (const SessionPrediction& prediction : session.Predictions)
  {
    if (missing(prediction.Levels) || missing(prediction.Probability))
    {
      gone.push_back("The prediction " + prediction.Probability + " is not there any more.");
      continue;
    }
    kept.push_back(prediction);
  }
  session.Predictions = kept;
  if (missing(session.Judgement.Correction))
  {
    gone.push_back("The correction " + session.Judgement.Correction + " is not there any more.");
    session.Judgement.Correction.clear();
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
  return IsSessionPath(path) ? CheckText(path) : path + " cannot be a workspace: its name must end in " + Ending + ".";
}

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
  }
  const std::string sentence = CheckOverwrite({ { "The file", path } }, inputs);
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, sentence);
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
  }
  files.push_back(&saved.Judgement.Correction);
  for (size_t i = 0; i < files.size(); ++i)
  {
    std::string& file = *files[i];
    if (progress && progress(static_cast<double>(i) / static_cast<double>(files.size()), "saving"))
    {
      throw Error(RCN_ECANCELLED, "Saving was cancelled.");
    }
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
  WriteText(saved.Path, SessionText(saved, fs::path(saved.Path).parent_path()));
  return saved;
}

} // namespace rcn
