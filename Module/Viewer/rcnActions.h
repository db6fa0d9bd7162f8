// SPDX-License-Identifier: Apache-2.0
/// What a person can ask of the viewer, without a window: each is one call that may take its time, for any thread. A
/// session goes in and comes out changed, so that a failure leaves everything as it was. All throw Error.
#ifndef rcnActions_h
#define rcnActions_h

#include <memory>
#include <string>
#include <vector>

#include "rcnAgreementSet.h"
#include "rcnEvaluation.h"
#include "rcnSession.h"
#include "rcnStructureMaps.h"
#include "rcnWorkspace.h"

namespace rcn
{

/// A map over the image: what a model says, or a fusion.
struct CaseLayer
{
  std::string Name;
  bool IsFusion = false;
  std::string Readout; ///< of Probability; empty for a fusion
  Volume Levels;       ///< K + 1 components; without voxels where there are none
  Volume Probability;
  std::shared_ptr<const VolumeScores> Volumes; ///< for intervals of a model's volumes; null: not known
  /// Of a model of several structures, in the order of the session: all of them, while the maps above are of the shown one.
  std::shared_ptr<const StructureMaps> Structures;
  Volume Means; ///< the share of each label, background first, where Structures holds no levels
};

/// What is known about one structure of a case, which is all there is to show where a case has one.
struct CaseStructure
{
  int Structure = 0;         ///< 1, 2, ... of several structures; 0: there is one
  AgreementReport Agreement; ///< Figures is null without raters
  std::vector<CaseLayer> Layers;
};

/// A case in memory. One thread at a time may ask its workspace, which is about the shown structure where there are several.
struct OpenCase : CaseStructure
{
  Workspace Work; ///< its votes are null for an image that nobody outlined
  std::string Id;
  std::vector<Volume> Images;
  std::vector<std::string> Remarks;
};
using OpenCasePointer = std::shared_ptr<OpenCase>;

/// Reads a case with its predictions and fusions, of the structure that the session shows.
OpenCasePointer LoadCase(const Session& session, const std::string& id, const SessionProgress& progress = {});

/// Another structure (1, 2, ...) of a case that was read: its workspace is about this one then. What is found comes back, and
/// the caller puts it into the case. On failure and where it is stopped, the workspace is about the structure it was about.
CaseStructure LoadStructure(const Session& session, OpenCase& one, int structure, const SessionProgress& progress = {});

/// The votes on the structure that the case is about; null without raters. They live on when the case is about another one.
std::shared_ptr<const rcn_votes> VotesOf(const OpenCasePointer& one);

/// For each pattern of the votes, 1 where most raters gave the label of this structure, otherwise 0; a tie goes to a structure
/// before the background. Empty without several structures. The context need not be the case's own, which may be at work.
std::vector<float> PluralityOf(rcn_context* context, const OpenCase& one, int structure);

/// A layer out of a prediction, from memory or from its files; `structure`: of several, the one it is to be about.
CaseLayer LoadLayer(const Session& session, const SessionPrediction& prediction, int structure = 0);

/// Fuses the case's raters; the name of the method is the layer's. A map of levels becomes the share of raters.
CaseLayer FuseCase(OpenCase& one, const std::string& method, const SessionProgress& progress = {});

/// How far the case's raters agree, with surface distances.
AgreementReport CompareCase(OpenCase& one, const SessionProgress& progress = {});

/// The mean Dice of all cases with raters but one, each told with its id; `problem` is a sentence where a case cannot be read.
void CompareOtherCases(const Session& session, const std::string& but, const SessionProgress& progress,
  const std::function<void(const std::string& id, double meanDice, const std::string& problem)>& done);

/// How far the raters of all cases agree, with surface distances; `problem` is told about a case that cannot be used.
std::shared_ptr<const AgreementOfCases> CompareAllCases(const Session& session, const SessionProgress& progress,
  const std::function<void(const std::string& id, const std::string& problem)>& problem);

/// What opening or dropping these files makes of a session; `base` is what is open now (its View, Folder and models are
/// kept where cases are only added).
///   a workspace, a data list, or a folder with dataset.json: takes the place of what is open; must come alone
///   a model (.safetensors): is added
///   images, masks, DICOM folders, folders of images: cases are added. A mask belongs to the image whose name begins its
///   own (c01.nii.gz, c01_Ada.nii.gz), to the only image that comes along, or to the case that is open
/// Current is the case to show. `remarks`: sentences a person should see.
Session OpenFiles(const Session& base, const std::vector<std::string>& paths, std::vector<std::string>* remarks = nullptr);

/// A session of one data list.
Session SessionOf(const DataList& list);

/// Adds a model to a session, whose structures are the model's where raters have told nothing else yet; returns its name.
std::string TakeModel(Session& session, const std::string& path);

/// Which cases: of a split ("" or "all": of any), that raters answered or not.
std::vector<std::string> CasesOf(const Session& session, const std::string& split, bool withRaters);

/// Predicts cases with a model of the session. `done` is told about each case as soon as it is predicted, because a person may
/// stop after any; and about older predictions that went to files to make room (Session::PredictionMemory).
void PredictCases(const Session& session, const std::string& model, const std::vector<std::string>& ids,
  const SessionProgress& progress, const std::function<void(const SessionPrediction&)>& done,
  std::vector<std::string>* remarks = nullptr);

/// What judging found.
struct Judged
{
  EvaluationReport Report; ///< of several structures the mean
  bool HasBefore = false;
  EvaluationReport Before;                                   ///< without the correction
  std::vector<StructureReport> Structures, StructuresBefore; ///< each of several, otherwise empty
  std::vector<std::string> Raters;
  std::vector<std::string> Cases;
  std::string Readout;
  std::vector<std::string> Remarks;

  /// What was found about one of several structures (1, 2, ...), which may have no case; 0: about all.
  const EvaluationReport& Of(int structure) const { return Choose(this->Report, this->Structures, structure); }
  const EvaluationReport& BeforeOf(int structure) const { return Choose(this->Before, this->StructuresBefore, structure); }

private:
  static const EvaluationReport& Choose(const EvaluationReport& all, const std::vector<StructureReport>& each, int structure)
  {
    const auto number = static_cast<size_t>(structure);
    return structure > 0 && number <= each.size() ? each[number - 1].Report : all;
  }
};

/// What to judge next: what was judged last, otherwise cases that the model did not learn from, where there are any.
EvaluationChoice NextEvaluation(const Session& session);

/// What is missing before a model can be judged so, as a sentence; empty: nothing, but for predictions.
std::string CheckEvaluation(const Session& session, const EvaluationChoice& choice);

/// Judges a model on cases that have predictions of it (and raters). With a correction: after it, and before.
Judged Judge(const Session& session, const EvaluationChoice& choice, const SessionProgress& progress = {});

/// Why what was found cannot be stored in the model's own record, as a sentence; empty: it can.
std::string CheckStoring(const EvaluationChoice& choice);

/// Stores it there (rcnModelRecord.h), for pages and windows to tell; returns what is told. Throws Error, also where the
/// predictions are not of the model as it is now.
std::string StoreJudged(const Session& session, const EvaluationChoice& choice, const Judged& judged);

/// A correction fitted on cases of a split.
struct Recalibrated
{
  Recalibration Correction;
  Judged OnFittedCases; ///< before and after
  std::string Model;    ///< a copy of the model that carries the correction; empty when the correction does not help
  std::string Sentence; ///< whether it helps, with the figures
};

/// Throws Error where the model has a correction already, which says what to do.
void CheckRecalibration(const Session& session, const std::string& model);

/// Fits a correction to the model's predictions on a split. Where it helps (rcnRecalibration.h), writes it and a copy of the
/// model with it (models/NAME-METHOD).
Recalibrated RecalibrateModel(const Session& session, const std::string& model, const std::string& split,
  rcn_recalib_method method, const EvaluationChoice& how, const SessionProgress& progress = {});

/// `anonymous`, here and below: without paths and the names of files, cases and raters.
/// Writes the report (rcnReportPage.h) on these cases, with every model that has predictions of all of them; of several
/// structures it has all.
void ReportOn(const Session& session, const std::vector<std::string>& ids, const std::string& path,
  const SessionProgress& progress = {}, std::vector<std::string>* remarks = nullptr, bool anonymous = false);

/// Writes the page of an image that nobody outlined (rcnReportPatient.h), by the session's model in use; of several
/// structures it is about the one that is shown.
void ReportOnImage(const Session& session, const std::string& id, const std::string& path, const SessionProgress& progress = {},
  std::vector<std::string>* remarks = nullptr, bool anonymous = false);

/// What a model of the session says about itself (rcnModelRecord.h).
struct ModelWords
{
  std::string Summary;                                    ///< a sentence or two
  std::vector<std::pair<std::string, std::string>> Lines; ///< all of it: what, and value
};
ModelWords DescribeModel(const SessionModel& model);

} // namespace rcn

#endif
