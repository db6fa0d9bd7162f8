// SPDX-License-Identifier: Apache-2.0
/// What a person has before them in the viewer: cases, models, predictions, what was judged, and how it is shown. Saved
/// as NAME.rcn.json, with the files that the viewer itself made (models it trained, predictions, corrections) in the
/// folder NAME.rcn beside it. Knows no window.
#ifndef rcnSession_h
#define rcnSession_h

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rcnDataList.h"
#include "rcnVolume.h"

namespace rcn
{

struct PredictionRun;
struct StructureMaps;

struct SessionModel
{
  std::string Name; ///< on screen, and of its folder of predictions; unique
  std::string Path;
};

/// The maps of a prediction in memory.
struct PredictionMaps
{
  Volume Levels;                            ///< K + 1 components; without voxels when the correction allows none
  Volume Probability;                       ///< its readout
  std::shared_ptr<const PredictionRun> Run; ///< how it was made; never null
  std::shared_ptr<const StructureMaps> Structures = nullptr; ///< of a model of several, in the order of Run->Structures; there
                                                             ///< are no Levels then, and Probability has a component for each

  size_t Bytes() const;
  /// The one to judge by.
  const Volume& Map() const { return this->Levels.Data() ? this->Levels : this->Probability; }
};

/// A model's prediction of a case: in memory, in files, or both. It is made in memory; files are written when the workspace is
/// saved, or when there are more predictions than memory for them.
struct SessionPrediction
{
  std::string Case, Model;
  std::string Readout;     ///< of Probability, as rcn::ReadoutText() writes it
  std::string Levels;      ///< file with K + 1 probabilities per voxel; empty when the correction allows none
  std::string Probability; ///< file; empty: in memory only
  std::shared_ptr<const PredictionMaps> Maps = nullptr; ///< null: in files only
  int Raters = 0; ///< of a model of several structures, how many raters their levels are about; 0: one structure
  std::vector<std::string> StructureLevels = {}; ///< files of their levels, where probabilities do not tell them
};

/// How it is shown.
struct SessionView
{
  bool HasCursor = false;
  double Cursor[3] = { 0, 0, 0 }; ///< RAS, mm
  bool HasWindow = false;
  double Window = 1, Level = 0;
  std::vector<std::string> HiddenRaters;
  bool HeatMap = true, Contours = true;
  std::string Structure;                     ///< of several structures, the one that is shown; empty: the first
  std::vector<std::string> HiddenStructures; ///< not outlined beside it
  int IsolatedLevel = -1;                    ///< -1: all of them
  std::string Palette;                       ///< by name; empty: the first
  std::string Overlay;                       ///< the model or fusion method that is shown; empty: none
  std::string Readout = "expected";          ///< or majority, at-least:T, level:K
  double Opacity = 0.5, Threshold = 0.5;
  bool ThresholdContour = false, LevelContours = false;
  std::string Layout = "slices"; ///< or "compare"
  std::string Panel;             ///< the side panel in front, by name
};

/// What is evaluated: the choice made last; its figures are computed anew from the files.
struct EvaluationChoice
{
  std::string Model; ///< empty: nothing was evaluated
  std::string Split; ///< "training", "validation", "test", or empty: all cases that have a prediction
  std::string Region = "box";
  std::string Readout; ///< empty: the model's own
  int Bins = 15;
  std::string Correction; ///< file of a recalibration to show beside it; empty: none
};

class Session
{
public:
  std::string Path;   ///< NAME.rcn.json; empty: never saved
  std::string Folder; ///< where the viewer's own files are
  std::vector<std::string> Raters;
  std::vector<Structure> Structures; ///< what raters tell apart, in all cases; none or one: any mark means the same
  std::vector<Case> Cases;           ///< a case without raters is an image to predict on
  std::string Current;               ///< id of the case shown; empty: none
  std::vector<SessionModel> Models;
  std::string Model;                          ///< name of the model in use; empty: none
  std::vector<SessionPrediction> Predictions; ///< oldest first
  /// Bytes of maps that may stay in memory; beyond it the oldest are written to Folder. Two gigabytes are the levels of thirty
  /// volumes of four million voxels with three raters, and leave a laptop's memory to its owner.
  size_t PredictionMemory = size_t(2) << 30;
  std::vector<std::string> Fusions; ///< methods by name, shown beside the models
  SessionView View;
  EvaluationChoice Evaluation;

  bool HasStructures() const { return this->Structures.size() > 1; }
  /// The number of the structure that is shown, from 1; 0: there is one, and it has no number.
  int ShownStructure() const;
  /// The name of one structure; empty for 0.
  std::string StructureName(int structure) const;

  const Case* FindCase(const std::string& id) const;
  const SessionModel* FindModel(const std::string& name) const;
  const SessionPrediction* FindPrediction(const std::string& id, const std::string& model) const;
  /// In place of the one that the case has from this model.
  void SetPrediction(const SessionPrediction& prediction);
  /// The model with its predictions; its files stay.
  void RemoveModel(const std::string& name);
  /// The case with its predictions; its files stay. No case is the current one then, if it was this.
  void RemoveCase(const std::string& id);

  /// Adds a model under a name that no other has, made from its file's; returns the name.
  std::string AddModel(const std::string& path);
  /// Adds a case under an id that no other has; raters who are new become raters of the session.
  std::string AddCase(Case one);

  /// The cases that raters answered, as a data list; those of no split are for training.
  DataList Data() const;

  /// A file in Folder, e.g. File("models", "a.safetensors").
  std::string File(const std::string& kind, const std::string& name) const;
  std::string PredictionFolder(const std::string& model) const { return this->File("predictions", model); }
};

/// True: stop.
using SessionProgress = std::function<bool(double fraction, const char* stage)>;

/// Reads and checks a workspace; throws Error with the file's name. Predictions and models whose files are not there any more
/// are left out, a sentence for each in `remarks`.
Session ReadSession(const std::string& path, std::vector<std::string>* remarks = nullptr);

/// The same from text; relative paths start at the file's folder. Looks at no other file.
Session ParseSession(const std::string& text, const std::string& path);

/// Writes the maps that are only in memory into the session's folder; returns the session that knows their files.
Session WritePredictions(const Session& session, const SessionProgress& progress = {});

/// Where the maps in memory take more than PredictionMemory, the oldest go to files, and `changed` is told of each.
void LimitPredictionMemory(Session& session, const std::function<void(const SessionPrediction&)>& changed);

/// Writes the workspace to NAME.rcn.json, with the predictions that are only in memory, and copies the viewer's own files into
/// NAME.rcn unless they are there; returns the session as it is now. Throws Error; then NAME.rcn.json is as it was.
Session SaveSession(const Session& session, const std::string& path, const SessionProgress& progress = {});

/// The sentence SaveSession() would fail with because of the path alone; empty when it looks fine.
std::string CheckSessionPath(const std::string& path);

/// Throws Error (RCN_EINVALID) when the file is one that the session reads: an image, a mask, a model or a prediction.
void CheckExport(const Session& session, const std::string& path);

/// Whether a file's name is that of a workspace.
bool IsSessionPath(const std::string& path);

} // namespace rcn

#endif
