// SPDX-License-Identifier: Apache-2.0
#include "rcnActions.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "rcnFile.h"
#include "rcnJson.h"
#include "rcnRecalibration.h"
#include "rcnReport.h"
#include "rcnReportPage.h"
#include "rcnReportPatient.h"
#include "rcnViewerWayOut.h"
#ifdef RCN_HAVE_NETWORKS
#include "rcnModelRecord.h"
#include "rcnPrediction.h"
#endif

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

/// The progress of one piece of many, in the words of all.
SessionProgress PartOf(const SessionProgress& whole, size_t index, size_t count, const std::string& name)
{
  return [=](double fraction, const char* stage) {
    const std::string words = name + ": " + stage;
    return whole && whole((static_cast<double>(index) + fraction) / static_cast<double>(count), words.c_str());
  };
}

/// Between steps that report nothing themselves.
void ThrowIfStopped(const SessionProgress& progress, double fraction, const char* stage)
{
  if (progress && progress(fraction, stage))
  {
    throw Error(RCN_ECANCELLED, "Canceled.");
  }
}

const Case& CaseOf(const Session& session, const std::string& id)
{
  const Case* one = session.FindCase(id);
  if (!one)
  {
    throw Error(RCN_EINVALID, "Case " + id + " does not exist.");
  }
  return *one;
}

/// A workspace tells how far it is while one of these lives.
class Watched
{
public:
  Watched(Workspace& work, const SessionProgress& progress) : Work_(work) { work.SetProgress(progress); }
  ~Watched() { this->Work_.SetProgress({}); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

private:
  Workspace& Work_;
};

/// For what makes no sense without raters. The menus ask the same before.
void RequireRaters(const OpenCase& one)
{
  if (!one.Work.Votes())
  {
    throw Error(RCN_EINVALID, "No raters' masks are open for " + one.Id + ", so there is nothing to compare or fuse.");
  }
}

} // namespace

// ---- cases -----------------------------------------------------------------------------------------

OpenCasePointer LoadCase(const Session& session, const std::string& id, const SessionProgress& progress)
{
  const Case& one = CaseOf(session, id);
  const OpenCasePointer open = std::make_shared<OpenCase>();
  open->Id = id;
  ThrowIfStopped(progress, 0, "reading");
  open->Work.SetProgress(
    // Reading is most of it; the rest is for comparing raters, predictions and fusions below.
    [progress](double fraction, const char* stage) { return progress && progress(0.7 * fraction, stage); });
  if (one.Raters.empty())
  {
    open->Images = ImagesOf(open->Work.Context(), one);
  }
  else
  {
    open->Work.LoadCase(one, session.Raters);
    open->Images = open->Work.Images();
    open->Remarks = open->Work.Remarks();
  }
  static_cast<CaseStructure&>(*open) = LoadStructure(session, *open, session.ShownStructure(), progress);
  return open;
}

// Everything that depends on which structure is shown, so that another one costs this and not the files again.
CaseStructure LoadStructure(const Session& session, OpenCase& one, int structure, const SessionProgress& progress)
{
  CaseStructure found;
  found.Structure = structure;
  const int before = one.Structure; // not what a stopped call may have left selected
  const bool several = one.Work.HasStructures();
  const Watched watched(
    one.Work, [progress](double fraction, const char* stage) { return progress && progress(0.7 + 0.1 * fraction, stage); });
  try
  {
    if (several)
    {
      one.Work.SelectStructure(structure);
    }
    if (one.Work.Votes())
    {
      ThrowIfStopped(progress, 0.7, "comparing raters");
      found.Agreement = one.Work.Agree(false);
    }
    for (const SessionModel& model : session.Models)
    {
      if (const SessionPrediction* prediction = session.FindPrediction(one.Id, model.Name))
      {
        ThrowIfStopped(progress, 0.8, "reading predictions");
        found.Layers.push_back(LoadLayer(session, *prediction, structure));
      }
    }
    for (const std::string& method : session.Fusions)
    {
      if (one.Work.Votes())
      {
        ThrowIfStopped(progress, 0.9, "fusing");
        found.Layers.push_back(FuseCase(one, method, progress));
      }
    }
  }
  // A step failed or was stopped: the case stays with the structure that is still on the screen.
  catch (...)
  {
    if (several)
    {
      one.Work.SelectStructure(before);
    }
    throw;
  }
  return found;
}

// The pointer keeps the whole case alive: votes lie in its workspace's memory.
std::shared_ptr<const rcn_votes> VotesOf(const OpenCasePointer& one)
{
  const rcn_votes* labels = one->Work.LabeledVotes();
  if (!labels)
  {
    return std::shared_ptr<const rcn_votes>(one, one->Work.Votes());
  }
  // The workspace's own go when it is about another structure, and somebody may still look at these.
  rcn_votes* selected = nullptr;
  Check(rcn_votes_select(&selected, one->Work.Context(), labels, one->Structure), one->Work.Context());
  return std::shared_ptr<const rcn_votes>(selected, [one](rcn_votes* votes) { rcn_votes_destroy(votes); });
}

// By vote pattern, 1 where the label of most raters is this structure: a table as rcn_votes_expand() takes it.
std::vector<float> PluralityOf(rcn_context* context, const OpenCase& one, int structure)
{
  const rcn_votes* votes = one.Work.LabeledVotes();
  if (!votes)
  {
    return {};
  }
  std::vector<uint8_t> labels(static_cast<size_t>(rcn_votes_pattern_count(votes)));
  Check(rcn_plurality_patterns(labels.data(), context, votes), context);
  std::vector<float> inside(labels.size());
  std::transform(
    labels.begin(), labels.end(), inside.begin(), [structure](uint8_t label) { return label == structure ? 1.0f : 0.0f; });
  return inside;
}

namespace
{

/// By structure of the session: its place among those of the model. Throws Error unless they are the same ones.
std::vector<int> PlacesOf(const Session& session, const SessionPrediction& prediction, const std::vector<Structure>& predicted)
{
  std::vector<int> places;
  const std::vector<std::string> names = NamesOf(predicted);
  for (const Structure& structure : session.Structures)
  {
    const auto found = std::find(names.begin(), names.end(), structure.Name);
    if (found == names.end() || !session.HasStructures())
    {
      throw Error(RCN_EINVALID,
        "The prediction of " + prediction.Model + " for " + prediction.Case +
          " has other structures than the cases; predict it with a model of these.");
    }
    places.push_back(static_cast<int>(found - names.begin()));
  }
  return places;
}

/// The maps of a model of several structures, in the order of the session.
std::shared_ptr<const StructureMaps> StructuresOf(const Session& session, const SessionPrediction& prediction)
{
  if (!prediction.Maps)
  {
    // In files: read with their manifest, which knows the names of structures and puts them in order.
    const std::string folder = fs::path(prediction.Probability).parent_path().string();
    const std::shared_ptr<const StructureMaps> read =
      PredictionsOfFolder(folder, 0, session.Structures).Read(CaseOf(session, prediction.Case), 0).Structures;
    if (!read)
    {
      PlacesOf(session, prediction, {});
    }
    return read;
  }
  const StructureMaps& made = *prediction.Maps->Structures;
  const std::vector<int> places = PlacesOf(session, prediction, prediction.Maps->Run->Structures);
  bool same = static_cast<int>(places.size()) == made.Count();
  for (size_t c = 0; c < places.size(); ++c)
  {
    same = same && places[c] == static_cast<int>(c);
  }
  // The usual case, without a copy.
  if (same)
  {
    return prediction.Maps->Structures;
  }
  const auto ordered = std::make_shared<StructureMaps>();
  ordered->Correlation = made.Correlation;
  const int count = static_cast<int>(places.size());
  ordered->Shares = made.Levels.empty() ? Volume::Allocate(made.Geometry(), RCN_FLOAT32, count) : Volume();
  for (int c = 0; c < count; ++c)
  {
    const int place = places[static_cast<size_t>(c)];
    if (made.Levels.empty())
    {
      rcn_image_copy_component(static_cast<float*>(ordered->Shares.Data()) + c, count, &made.Shares.View(), place);
    }
    else
    {
      ordered->Levels.push_back(made.Levels[static_cast<size_t>(place)]);
    }
  }
  return ordered;
}

/// The layer of one of several structures.
void LoadStructureLayer(CaseLayer& layer, const Session& session, const SessionPrediction& prediction, int structure)
{
  const Workspace work;
  const std::string name = "The prediction of " + prediction.Model + " for " + prediction.Case;
  layer.Structures = StructuresOf(session, prediction);
  const Volume map = layer.Structures->Of(work.Context(), structure, prediction.Raters, name);
  layer.Probability = map;
  const std::shared_ptr<const PredictionRun> run =
    prediction.Maps ? prediction.Maps->Run : PredictionFolder::RunOf(prediction.Probability);
  const auto number = static_cast<size_t>(structure);
  const std::string shown = number > 0 && number <= session.Structures.size() ? session.Structures[number - 1].Name : "";
  layer.Volumes = run ? ScoresOf(run->ScoresOfVolumes(), shown) : nullptr;
  // Levels: the probability is read out of them, as the prediction was meant.
  if (map.View().components > 1)
  {
    rcn_readout readout = RCN_READOUT_EXPECTED;
    int atLeast = 0;
    ParseReadout(readout, atLeast, prediction.Readout);
    layer.Levels = map;
    layer.Probability = Volume::Allocate(map.Geometry(), RCN_FLOAT32);
    Check(rcn_readout_apply(static_cast<float*>(layer.Probability.Data()), work.Context(), &map.View(), readout, atLeast),
      work.Context(), name);
  }
  if (layer.Structures->Levels.empty())
  {
    layer.Means = CompleteShares(work.Context(), layer.Structures->Shares, name);
  }
}

} // namespace

CaseLayer LoadLayer(const Session& session, const SessionPrediction& prediction, int structure)
{
  CaseLayer layer;
  layer.Name = prediction.Model;
  layer.Readout = prediction.Readout;
  if (prediction.Raters)
  {
    LoadStructureLayer(layer, session, prediction, structure);
    return layer;
  }
  // A prediction without structures cannot be shown for one of several: throws with the sentence about that.
  if (structure)
  {
    PlacesOf(session, prediction, {});
  }
  if (prediction.Maps)
  {
    layer.Levels = prediction.Maps->Levels;
    layer.Probability = prediction.Maps->Probability;
    layer.Volumes = prediction.Maps->Run->ScoresOfVolumes();
    return layer;
  }
  if (!prediction.Levels.empty())
  {
    layer.Levels = ReadPrediction(prediction.Levels);
  }
  layer.Probability = ReadPrediction(prediction.Probability);
  const std::shared_ptr<const PredictionRun> run = PredictionFolder::RunOf(prediction.Probability);
  layer.Volumes = run ? run->ScoresOfVolumes() : nullptr;
  return layer;
}

AgreementReport CompareCase(OpenCase& one, const SessionProgress& progress)
{
  RequireRaters(one);
  ThrowIfStopped(progress, 0, "measuring surfaces");
  const Watched watched(one.Work, progress);
  return one.Work.Agree(true);
}

namespace
{

/// Loads the raters of all cases but one, one after another; a case that cannot be used is told as a problem.
void ForEachRatedCase(const Session& session, const std::string& but, const SessionProgress& progress,
  const std::function<void(const Case& one, Workspace& work)>& compare,
  const std::function<void(const std::string& id, const std::string& problem)>& problem)
{
  const std::vector<std::string> ids = CasesOf(session, "", true);
  Workspace work;
  for (size_t i = 0; i < ids.size(); ++i)
  {
    ThrowIfStopped(progress, static_cast<double>(i + 1) / static_cast<double>(ids.size() + 1), ids[i].c_str());
    if (ids[i] == but)
    {
      continue;
    }
    Case masks = CaseOf(session, ids[i]);
    masks.Images.clear(); // only the raters are needed
    try
    {
      work.LoadCase(masks, session.Raters);
      if (work.HasStructures())
      {
        work.SelectStructure(session.ShownStructure());
      }
      compare(masks, work);
    }
    catch (const Error& error)
    {
      problem(ids[i], ViewerSentenceOf(error));
    }
  }
}

} // namespace

// Without surface distances, which take most of the time: the list shows Dice only.
void CompareOtherCases(const Session& session, const std::string& but, const SessionProgress& progress,
  const std::function<void(const std::string& id, double meanDice, const std::string& problem)>& done)
{
  ForEachRatedCase(
    session, but, progress, [&](const Case& one, Workspace& work) { done(one.Id, work.Agree(false).Figures->mean_dice, ""); },
    [&](const std::string& id, const std::string& problem) { done(id, NAN, problem); });
}

// The records are those that the command line writes, and the summary is made of them in the same way, so that both show the
// same numbers.
std::shared_ptr<const AgreementOfCases> CompareAllCases(const Session& session, const SessionProgress& progress,
  const std::function<void(const std::string& id, const std::string& problem)>& problem)
{
  AgreementSet set(session.Raters, session.StructureName(session.ShownStructure()));
  std::string csv = set.LongHeader();
  set.WriteLongRows([&csv](const std::string& row) { csv += row; });
  ForEachRatedCase(
    session, "", progress,
    [&](const Case& one, Workspace& work) { set.Add(one, JsonHandle(AgreementJson(work.Agree(true), work, 0)).get()); },
    problem);
  if (!set.Count())
  {
    throw Error(RCN_EDATA, "No case has raters that can be compared.");
  }
  const Workspace context;
  return std::make_shared<AgreementOfCases>(AgreementOfCases{ set.Summarize(context.Context()),
    set.Summarize(context.Context(), SetCases::Marked), set.EmptyInWords(), csv, set.UndefinedInWords() });
}

CaseLayer FuseCase(OpenCase& one, const std::string& method, const SessionProgress& progress)
{
  RequireRaters(one);
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  if (!Parse(options.method, method))
  {
    throw Error(RCN_EINVALID, "Unknown method '" + method + "'. Use " + ChoicesText(Methods()) + ".");
  }
  // The share of raters is the level divided by K.
  options.method = options.method == RCN_ORC ? RCN_SOFT : options.method;
  ThrowIfStopped(progress, 0, "fusing");
  const Watched watched(one.Work, progress);
  CaseLayer layer;
  layer.Name = method;
  layer.IsFusion = true;
  layer.Probability = one.Work.Fuse(options).Map;
  return layer;
}

std::vector<std::string> CasesOf(const Session& session, const std::string& split, bool withRaters)
{
  std::vector<std::string> ids;
  for (const Case& one : session.Cases)
  {
    if ((split.empty() || one.Split == split) && (!withRaters || !one.Raters.empty()))
    {
      ids.push_back(one.Id);
    }
  }
  return ids;
}

// ---- files that are opened or dropped --------------------------------------------------------------

Session SessionOf(const DataList& list)
{
  Session session;
  session.Raters = list.Raters;
  session.Structures = list.Structures;
  session.Cases = list.Cases;
  session.Current = list.Cases.empty() ? "" : list.Cases.front().Id;
  return session;
}

namespace
{

/// Files come without a word about what they are: images, masks, or both in one drop.
struct Dropped
{
  std::string Path;
  bool IsMask;
};

/// Whether all labels of a file are those of the structures: then it is a rater's label map, not an image.
bool IsLabelMap(const rcn_image& image, const std::vector<Structure>& structures)
{
  std::set<int64_t> values;
  for (const Structure& structure : structures)
  {
    values.insert(structure.Values.begin(), structure.Values.end());
  }
  const int most = static_cast<int>(values.size()) + 1; // one more is one too many
  std::vector<double> labels(values.size() + 1);
  labels.resize(static_cast<size_t>(rcn_image_labels(labels.data(), most, &image, 0, nullptr)));
  return structures.size() > 1 && image.components == 1 && !labels.empty() &&
    std::all_of(labels.begin(), labels.end(), [&](double label) { return values.count(static_cast<int64_t>(label)) > 0; });
}

/// Headers first: only a file that could be a mask is read. Floating-point numbers, colors and folders (DICOM) are images.
Dropped LookAt(const std::string& path, const std::vector<Structure>& structures)
{
  const Volume header = ReadMaskHeader(path);
  if (!header.Segments().empty())
  {
    return { path, true };
  }
  const bool whole = header.View().type != RCN_FLOAT32 && header.View().type != RCN_FLOAT64;
  if (header.IsColor() || !whole || fs::is_directory(path))
  {
    return { path, false };
  }
  const Volume mask = ReadMask(path);
  return { path, rcn_image_is_mask(&mask.View()) != 0 || IsLabelMap(mask.View(), structures) };
}

/// "Ada" of "c01_Ada" for the case c01; the whole name otherwise.
std::string RaterNameOf(const std::string& mask, const std::string& id)
{
  if (mask.size() > id.size() + 1 && mask.compare(0, id.size(), id) == 0 &&
    std::string("_-. ").find(mask[id.size()]) != std::string::npos)
  {
    return mask.substr(id.size() + 1);
  }
  return mask;
}

/// A file may hold several raters (a channel or a segment each). Never twice the same name: which of them would count?
void AddRater(Session& session, Case& one, const std::string& path)
{
  RaterFile file;
  file.Path = path;
  std::vector<RaterFile> found = RatersIn(file, one.Structures);
  if (found.size() == 1 && found.front().Name == StemOf(path))
  {
    found.front().Name = RaterNameOf(StemOf(path), one.Id);
  }
  for (const RaterFile& rater : found)
  {
    const auto same =
      std::find_if(one.Raters.begin(), one.Raters.end(), [&](const RaterFile& r) { return r.Name == rater.Name; });
    if (same != one.Raters.end())
    {
      throw Error(
        RCN_EINVALID, path + ": the case " + one.Id + " already has a mask of " + rater.Name + " (" + same->Path + ").");
    }
    one.Raters.push_back(rater);
    if (std::find(session.Raters.begin(), session.Raters.end(), rater.Name) == session.Raters.end())
    {
      session.Raters.push_back(rater.Name);
    }
  }
  if (session.Raters.size() > RCN_MAX_RATERS)
  {
    throw Error(RCN_EINVALID, "There can be at most " + std::to_string(RCN_MAX_RATERS) + " raters.");
  }
}

/// Images become cases, masks find theirs.
void AddImages(Session& session, const std::vector<Dropped>& files)
{
  std::vector<std::string> added;
  for (const Dropped& file : files)
  {
    if (!file.IsMask)
    {
      Case one;
      one.Id = StemOf(file.Path);
      one.Images = { file.Path };
      added.push_back(session.AddCase(one));
    }
  }
  for (const Dropped& file : files)
  {
    if (!file.IsMask)
    {
      continue;
    }
    const std::string name = StemOf(file.Path);
    // Of the only image that came with it, otherwise of the case that is open; but a name that begins with that of a case
    // decides, the longest such name if there are several.
    std::string target = added.size() == 1 ? added.front() : added.empty() ? session.Current : "";
    size_t longest = 0;
    for (const Case& one : session.Cases)
    {
      if (one.Id.size() > longest && RaterNameOf(name, one.Id) != name)
      {
        longest = one.Id.size();
        target = one.Id;
      }
    }
    if (target.empty() && added.empty())
    {
      // Masks alone are a case, too: of nothing but raters.
      Case one;
      one.Id = fs::path(file.Path).parent_path().filename().string();
      target = session.AddCase(one);
      session.Current = target;
    }
    if (target.empty())
    {
      throw Error(RCN_EINVALID,
        file.Path + " is a mask of an unknown image. Begin its name with that of the image, or open the image first.");
    }
    const auto found = std::find_if(session.Cases.begin(), session.Cases.end(), [&](const Case& c) { return c.Id == target; });
    AddRater(session, *found, file.Path);
    session.Current = target;
  }
  if (!added.empty())
  {
    session.Current = added.front();
  }
}

} // namespace

Session OpenFiles(const Session& base, const std::vector<std::string>& paths, std::vector<std::string>* remarks)
{
  Session session = base;
  std::vector<Dropped> images;
  for (std::string path : paths)
  {
    std::error_code ignored;
    if (fs::is_directory(path, ignored) && fs::exists(fs::path(path) / "dataset.json", ignored))
    {
      path = (fs::path(path) / "dataset.json").string();
    }
    if (HasExtension(path, ".json"))
    {
      // A list replaces the session, so nothing else can come with it.
      if (paths.size() > 1)
      {
        throw Error(RCN_EINVALID, path + " replaces what is open; open it alone.");
      }
      return IsSessionPath(path) ? ReadSession(path, remarks) : SessionOf(ReadDataList(path));
    }
    if (HasExtension(path, ".safetensors"))
    {
      TakeModel(session, path);
      continue;
    }
    const std::vector<std::string> found = fs::is_directory(path, ignored) ? ImagesIn(path) : std::vector<std::string>{ path };
    for (const std::string& image : found.empty() ? std::vector<std::string>{ path } : found)
    {
      images.push_back(LookAt(image, session.Structures));
    }
  }
  AddImages(session, images);
  return session;
}

// ---- models ----------------------------------------------------------------------------------------

std::string TakeModel(Session& session, const std::string& path)
{
#ifdef RCN_HAVE_NETWORKS
  const Workspace work;
  const Model model(work.Context(), path);
  // Images without raters know no structures: those of the model are shown then.
  if (!session.HasStructures() && model.HasSeveralStructures() && CasesOf(session, "", true).empty())
  {
    session.Structures = model.Info().Structures;
    for (Case& one : session.Cases)
    {
      one.Structures = session.Structures;
    }
  }
  return session.AddModel(path);
#else
  (void)session;
  throw Error(RCN_EUNSUPPORTED, path + " is a model, but this program was built without networks.");
#endif
}

namespace
{

const SessionModel& ModelOf(const Session& session, const std::string& name)
{
  const SessionModel* model = session.FindModel(name);
  if (!model)
  {
    throw Error(RCN_EINVALID, name.empty() ? "There is no model yet; open one or train one." : "Unknown model " + name + ".");
  }
  return *model;
}

/// A prediction of the model, of any case; null: none.
const SessionPrediction* AnyPrediction(const Session& session, const std::string& model)
{
  const auto found = std::find_if(session.Predictions.begin(), session.Predictions.end(),
    [&](const SessionPrediction& prediction) { return prediction.Model == model; });
  return found == session.Predictions.end() ? nullptr : &*found;
}

/// How the model's predictions were made; null: not known.
std::shared_ptr<const PredictionRun> RunOfModel(const Session& session, const std::string& model)
{
  const SessionPrediction* any = AnyPrediction(session, model);
  return !any ? nullptr : any->Maps ? any->Maps->Run : PredictionFolder::RunOf(any->Probability);
}

} // namespace

// Before anything was judged, the best choice that there are cases for: test, then validation, then all.
EvaluationChoice NextEvaluation(const Session& session)
{
  EvaluationChoice choice = session.Evaluation;
  for (const char* split : { "", "validation", "test" })
  {
    const bool nothing = CasesOf(session, split, true).empty();
    choice.Split = session.Evaluation.Model.empty() && !nothing ? split : choice.Split;
  }
  return choice;
}

// In the order in which a person would mend it: first a model, then cases, then raters, then the split.
std::string CheckEvaluation(const Session& session, const EvaluationChoice& choice)
{
  if (choice.Model.empty())
  {
    return "There is no model yet; open one or train one.";
  }
  if (session.Cases.empty())
  {
    return "There are no cases to evaluate " + choice.Model + " on; open images with raters' masks, or a data list.";
  }
  if (CasesOf(session, "", true).empty())
  {
    return "No case has raters' masks to evaluate a model with; open masks, or a data list with labels.";
  }
  if (CasesOf(session, choice.Split, true).empty())
  {
    return "There are no " + choice.Split + " cases with raters' masks; choose others to evaluate on.";
  }
  return "";
}

void PredictCases(const Session& session, const std::string& name, const std::vector<std::string>& ids,
  const SessionProgress& progress, const std::function<void(const SessionPrediction&)>& done, std::vector<std::string>* remarks)
{
#ifdef RCN_HAVE_NETWORKS
  const SessionModel& entry = ModelOf(session, name);
  Workspace work;
  ThrowIfStopped(progress, 0, "reading the model");
  const Model model(work.Context(), entry.Path);
  model.CheckStructures(session.Structures, session.Data().Path);
  PredictionOptions options;
  // Expected shares tell the levels of each structure, and so any readout.
  options.Readout = model.HasSeveralStructures() ? "expected" : "";
  const auto run = std::make_shared<const PredictionRun>(RunOf(model, options));
  const std::shared_ptr<const PredictionRun> before = RunOfModel(session, name);
  if (remarks && before && !IsSameRun(*before, *run))
  {
    remarks->push_back(
      "The file of the model " + name + " has changed since cases were predicted with it; predict all cases again.");
  }
  Session known = session;
  std::set<std::string> said;
  for (size_t i = 0; i < ids.size(); ++i)
  {
    const Case& one = CaseOf(session, ids[i]);
    const SessionProgress part = PartOf(progress, i, ids.size(), one.Id);
    ThrowIfStopped(part, 0, "reading");
    if (one.Images.empty())
    {
      throw Error(RCN_EDATA, "The case " + one.Id + " has no image to predict on.");
    }
    work.SetProgress(part);
    const std::vector<Volume> images = ImagesOf(work.Context(), one);
    const Prediction prediction = Predict(model, work.Context(), images, one.Images.front(), options);
    SessionPrediction made = { one.Id, name, prediction.Readout, "", "" };
    made.Maps = std::make_shared<const PredictionMaps>(
      PredictionMaps{ prediction.Levels, prediction.Probability, run, prediction.Structures });
    if (prediction.Structures)
    {
      made.Raters = model.RaterCount();
      made.Readout = ReadoutText(model.Info().Readout, model.Info().AtLeast);
    }
    for (const std::string& remark : prediction.Remarks)
    {
      // What is the same for many cases is said once, of the first.
      const bool fresh =
        said.insert(remark.substr(remark.find(one.Images.front()) == 0 ? one.Images.front().size() : 0)).second;
      if (remarks && fresh)
      {
        remarks->push_back(remark);
      }
    }
    known.SetPrediction(made);
    done(made);
    LimitPredictionMemory(known, done);
  }
#else
  (void)ids;
  (void)progress;
  (void)done;
  (void)remarks;
  ModelOf(session, name);
  throw Error(RCN_EUNSUPPORTED, "This program was built without networks and cannot predict.");
#endif
}

namespace
{

/// Judged as a person asked for, otherwise as the predictions were made.
EvaluationOptions OptionsOf(const Session& session, const EvaluationChoice& choice)
{
  EvaluationOptions options;
  options.Calib.bins = choice.Bins;
  const SessionPrediction* any = AnyPrediction(session, choice.Model);
  const std::shared_ptr<const PredictionRun> run = RunOfModel(session, choice.Model);
  ChooseReadout(options, choice.Readout, any ? any->Readout : "", run && run->TieBackground);
  Parse(options.Region.region, choice.Region);
  return options;
}

/// The cases of the split that have a prediction, with these predictions. `done` counts the cases that were begun, of `passes`
/// times as many; all are borrowed.
JudgeInput InputOf(Judged& out, Workspace& work, const Session& session, const EvaluationChoice& choice,
  const SessionProgress& progress, size_t& done, size_t passes)
{
  JudgeInput input;
  input.List = session.Data();
  input.List.Raters = session.Raters;
  input.List.Cases.clear();
  for (const std::string& id : CasesOf(session, choice.Split, true))
  {
    if (session.FindPrediction(id, choice.Model))
    {
      input.List.Cases.push_back(CaseOf(session, id));
    }
  }
  if (input.List.Cases.empty())
  {
    throw Error(RCN_EDATA, "There is no prediction of " + choice.Model + " for a case with raters' masks; predict first.");
  }
  input.Loop.LeaveOut = false;
  input.Loop.Begin = [&, passes](const std::string& id, size_t, size_t count) {
    const SessionProgress part = PartOf(progress, done++, passes * count, id);
    ThrowIfStopped(part, 0, "evaluating");
    work.SetProgress(part);
  };
  input.Loop.Remark = [&out](const std::string& remark) { out.Remarks.push_back(remark); };
  PredictionSource source;
  source.Name = choice.Model;
  source.Run = RunOfModel(session, choice.Model);
  source.Read = [&](const Case& one, size_t) {
    const SessionPrediction& prediction = *session.FindPrediction(one.Id, choice.Model);
    if (prediction.Raters)
    {
      return CasePrediction{ Volume(), "The prediction of " + choice.Model + " for " + one.Id,
        StructuresOf(session, prediction) };
    }
    if (session.HasStructures())
    {
      PlacesOf(session, prediction, {});
    }
    if (prediction.Maps)
    {
      return CasePrediction{ prediction.Maps->Map(), "The prediction of " + choice.Model + " for " + one.Id };
    }
    const std::string& file = prediction.Levels.empty() ? prediction.Probability : prediction.Levels;
    return CasePrediction{ ReadPrediction(file), file };
  };
  input.Predictions = { source };
  return input;
}

/// By structure; the reports of task number `task` of `tasks` for each of them.
std::vector<StructureReport> ReportsOf(const JudgeResult& judged, const Session& session, size_t task, size_t tasks)
{
  std::vector<StructureReport> reports;
  for (const Structure& structure : session.Structures)
  {
    const Evaluation& one = *judged.Evaluations[reports.size() * tasks + task];
    reports.push_back({ structure.Name, one.CaseIds().empty() ? EvaluationReport() : one.Report() });
  }
  return reports;
}

} // namespace

Judged Judge(const Session& session, const EvaluationChoice& choice, const SessionProgress& progress)
{
  const std::string missing = CheckEvaluation(session, choice);
  if (!missing.empty())
  {
    throw Error(RCN_EDATA, missing);
  }
  ModelOf(session, choice.Model);
  Judged out;
  const EvaluationOptions plain = OptionsOf(session, choice);
  EvaluationOptions options = plain;
  out.Readout = ReadoutText(options.Calib.readout, options.Calib.at_least);
  Recalibration correction;
  if (!choice.Correction.empty())
  {
    correction = ReadRecalibration(choice.Correction);
    options.Correction = &correction;
    options.AllowFittedCases = true; // the window says on which cases it was fitted
    out.HasBefore = true;
  }
  const std::shared_ptr<const PredictionRun> run = RunOfModel(session, choice.Model);
  if (out.HasBefore)
  {
    RefuseCorrected(run.get(), choice.Model);
  }
  const Recalibration* fitted = out.HasBefore ? &correction : run ? run->Correction.get() : nullptr;
  const std::string elsewhere = fitted ? FittedElsewhere(*fitted, options) : "";
  if (!elsewhere.empty())
  {
    out.Remarks.push_back(elsewhere);
  }
  Workspace work;
  std::vector<JudgeTask> tasks;
  const int structures = session.HasStructures() ? static_cast<int>(session.Structures.size()) : 0;
  for (int structure = structures ? 1 : 0; structure <= structures; ++structure)
  {
    tasks.push_back({ 0, options, structure });
    if (out.HasBefore)
    {
      tasks.push_back({ 0, plain, structure });
    }
  }
  size_t done = 0;
  const JudgeResult judged = JudgeCases(work, InputOf(out, work, session, choice, progress, done, 1), tasks);
  work.SetProgress({});
  ThrowIfStopped(progress, 1, "intervals");
  out.Raters = judged.Raters;
  for (const auto& evaluation : judged.Evaluations)
  {
    // A structure may have nothing to be judged on in some of them.
    out.Cases = evaluation->CaseIds().size() > out.Cases.size() ? evaluation->CaseIds() : out.Cases;
  }
  if (fitted && !out.HasBefore) // otherwise the window says it beside the figures
  {
    const auto here = std::count_if(out.Cases.begin(), out.Cases.end(),
      [&](const std::string& id) { return std::find(fitted->Cases.begin(), fitted->Cases.end(), id) != fitted->Cases.end(); });
    if (here > 0)
    {
      const bool all = here == static_cast<std::ptrdiff_t>(out.Cases.size());
      out.Remarks.push_back("The correction in " + choice.Model + " was fitted to " +
        (all ? "these cases" : std::to_string(here) + " of these cases") + ", where the figures are too good.");
    }
  }
  const size_t each = out.HasBefore ? 2 : 1;
  if (structures)
  {
    out.Structures = ReportsOf(judged, session, 0, each);
    out.Report = MeanOverStructures(out.Structures);
    out.StructuresBefore = out.HasBefore ? ReportsOf(judged, session, 1, each) : std::vector<StructureReport>();
    out.Before = out.HasBefore ? MeanOverStructures(out.StructuresBefore) : EvaluationReport();
    return out;
  }
  out.Report = judged.Evaluations.front()->Report();
  if (out.HasBefore)
  {
    out.Before = judged.Evaluations.back()->Report();
  }
  return out;
}

std::string CheckStoring(const EvaluationChoice& choice)
{
  return choice.Split != "test"  ? "A model's record is about test cases, besides the validation cases of its training."
    : !choice.Correction.empty() ? "The figures are of a correction that is not stored in the model."
                                 : "";
}

std::string StoreJudged(const Session& session, const EvaluationChoice& choice, const Judged& judged)
{
  const std::string refused = CheckStoring(choice);
  if (!refused.empty())
  {
    throw Error(RCN_EINVALID, refused);
  }
  const SessionModel& entry = ModelOf(session, choice.Model);
#ifdef RCN_HAVE_NETWORKS
  const Workspace work;
  CheckMadeBy(Model(work.Context(), entry.Path), RunOfModel(session, choice.Model).get(), "The predictions of " + choice.Model);
  RecordCalibration(work.Context(), entry.Path, choice.Split, judged.Report, OptionsOf(session, choice), judged.Cases);
  return RecordOf(work.Context(), Model(work.Context(), entry.Path)).Find(choice.Split)->InWords();
#else
  (void)judged;
  throw Error(RCN_EUNSUPPORTED, entry.Path + ": this program was built without networks and cannot change a model.");
#endif
}

void CheckRecalibration(const Session& session, const std::string& model)
{
  const SessionModel& entry = ModelOf(session, model);
#ifdef RCN_HAVE_NETWORKS
  const Workspace work;
  const PredictionRun run = RunOf(Model(work.Context(), entry.Path), {});
  RefuseCorrected(&run, model);
#else
  (void)entry;
#endif
}

Recalibrated RecalibrateModel(const Session& session, const std::string& model, const std::string& split,
  rcn_recalib_method method, const EvaluationChoice& how, const SessionProgress& progress)
{
#ifdef RCN_HAVE_NETWORKS
  const SessionModel& entry = ModelOf(session, model);
  EvaluationChoice choice = how;
  choice.Model = model;
  choice.Split = split;
  CheckSplits(session.Data());
  CheckRecalibration(session, model);
  Workspace work;
  Recalibrated out;
  size_t done = 0;
  const RecalibrationResult result =
    Recalibrate(work, InputOf(out.OnFittedCases, work, session, choice, progress, done, 2), OptionsOf(session, choice), method);
  work.SetProgress({});
  out.OnFittedCases.Raters = result.Raters;
  out.OnFittedCases.Cases = result.Cases;
  out.OnFittedCases.Readout = ReadoutText(result.Options.Calib.readout, result.Options.Calib.at_least);
  out.OnFittedCases.HasBefore = true;
  out.OnFittedCases.Before = result.Before;
  out.OnFittedCases.Report = result.After;
  out.OnFittedCases.StructuresBefore = result.StructuresBefore;
  out.OnFittedCases.Structures = result.StructuresAfter;
  out.Correction = result.Correction;
  out.Sentence = result.Sentence;
  // A correction that does not help is shown, but not stored.
  if (!result.Helps)
  {
    return out;
  }
  const std::string name = model + "-" + rcn_recalib_name(method);
  const std::string file = session.File("corrections", name + ".json");
  MakeFolder(fs::path(file).parent_path().string());
  WriteRecalibration(file, out.Correction);
  out.Correction.Path = file;
  out.Model = session.File("models", name + ".safetensors");
  MakeFolder(fs::path(out.Model).parent_path().string());
  // Beside its place first, so that a model there never lacks its correction.
  AtomicFile beside(out.Model);
  CopyFile(entry.Path, beside.Path());
  StoreCorrection(work.Context(), beside.Path(), result, split);
  beside.Commit();
  return out;
#else
  (void)split;
  (void)method;
  (void)how;
  (void)progress;
  ModelOf(session, model);
  throw Error(RCN_EUNSUPPORTED, "This program was built without networks and cannot change a model.");
#endif
}

// ---- the report ------------------------------------------------------------------------------------

namespace
{

/// A page tells the session how far it is; `progress` outlives it, `remarks` may be null.
template <typename PageOptions>
void TellSession(PageOptions& options, const SessionProgress& progress, std::vector<std::string>* remarks)
{
  options.Command = "the viewer, Export, Report";
  options.Progress = [&progress](
                       double fraction, const std::string& stage) { return progress && progress(fraction, stage.c_str()); };
  options.Remark = [remarks](const std::string& sentence) {
    if (remarks)
    {
      remarks->push_back(sentence);
    }
  };
}

} // namespace

void ReportOn(const Session& open, const std::vector<std::string>& ids, const std::string& path,
  const SessionProgress& progress, std::vector<std::string>* remarks, bool anonymous)
{
  CheckExport(open, path);
  // The report reads folders of predictions.
  const Session session = WritePredictions(open, progress);
  DataList list = session.Data();
  list.Cases.erase(std::remove_if(list.Cases.begin(), list.Cases.end(),
                     [&](const Case& one) { return std::find(ids.begin(), ids.end(), one.Id) == ids.end(); }),
    list.Cases.end());
  ReportOptions options;
  options.Output = path;
  options.Data = list.Path;
  options.Anonymous = anonymous;
  options.Title =
    session.Path.empty() || anonymous ? "Agreement of the raters" : "Agreement of the raters of " + StemOf(session.Path);
  options.List = &list;
  for (const SessionModel& model : session.Models)
  {
    // Models that have predicted every case of the report: others could not be compared with them.
    const bool all = std::all_of(list.Cases.begin(), list.Cases.end(),
      [&](const Case& one) { return session.FindPrediction(one.Id, model.Name) != nullptr; });
    if (all && !list.Cases.empty())
    {
      const SessionPrediction& any = *session.FindPrediction(list.Cases.front().Id, model.Name);
      ReportModel entry;
      entry.Name = model.Name;
      entry.Predictions = fs::path(any.Probability).parent_path().string();
#ifdef RCN_HAVE_NETWORKS
      entry.Model = model.Path;
#endif
      options.Models.push_back(entry);
    }
  }
  TellSession(options, progress, remarks);
  WriteReport(options);
}

void ReportOnImage(const Session& session, const std::string& id, const std::string& path, const SessionProgress& progress,
  std::vector<std::string>* remarks, bool anonymous)
{
  CheckExport(session, path);
  PatientPageOptions options;
  options.Anonymous = anonymous;
  options.Output = path;
  options.One = CaseOf(session, id);
  options.Model = ModelOf(session, session.Model).Path;
  options.Structure = session.StructureName(session.ShownStructure());
  TellSession(options, progress, remarks);
  WritePatientPage(options);
}

ModelWords DescribeModel(const SessionModel& model)
{
  ModelWords words;
#ifdef RCN_HAVE_NETWORKS
  const Workspace work;
  const ModelRecord record = RecordOf(work.Context(), Model(work.Context(), model.Path));
  words.Summary = RecordInWords(record);
  words.Lines = RecordRows(record);
#else
  (void)model;
#endif
  return words;
}

} // namespace rcn
