// SPDX-License-Identifier: Apache-2.0
/// Rater Consensus for scenes: one method per action of a person. Each returns the sentence that says what went wrong, empty
/// when all is fine. Works without the module's panel, e.g. from the Python console:
///
///   logic = slicer.modules.raterconsensus.logic()
///   node = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLRaterConsensusNode")   # see there
///   error = logic.Agreement(node)                  # tables: raters, summary, disputed regions
///   node.SetMethod("staple"); error = logic.Fuse(node)
///   node.SetModelFile("model.safetensors"); error = logic.Predict(node)
///   error = logic.Evaluate(node)                   # tables and a chart: does "70 %" mean 70 %?
///   heatmap = node.GetNodeReference(node.GetHeatmapRole())
///
/// To try it without data of one's own: node = logic.AddExampleCase().
///
/// Results are ordinary nodes that the parameter node refers to; a second run fills them again. They have the image's
/// geometry and transform. For research, not for clinical use.
#ifndef vtkSlicerRaterConsensusLogic_h
#define vtkSlicerRaterConsensusLogic_h

#include <string>

#include "vtkSlicerModuleLogic.h"
#include "vtkSlicerRaterConsensusModuleLogicExport.h"

#ifndef __VTK_WRAP__
#include <functional>
#include <memory>

namespace rcn
{
struct AgreementReport;
struct EvaluationReport;
struct PredictedVolumes;
struct TrainingEpoch;
struct TrainingProgress;
struct TrainingResult;
} // namespace rcn
#endif

class vtkMRMLColorTableNode;
class vtkMRMLRaterConsensusNode;

class VTK_SLICER_RATERCONSENSUS_MODULE_LOGIC_EXPORT vtkSlicerRaterConsensusLogic : public vtkSlicerModuleLogic
{
public:
  static vtkSlicerRaterConsensusLogic* New();
  vtkTypeMacro(vtkSlicerRaterConsensusLogic, vtkSlicerModuleLogic);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  enum Action
  {
    AgreementAction,
    FuseAction,
    PredictAction,
    EvaluateAction,
    RecalibrateAction,
    TrainAction,
    ReportAction
  };

  /// What keeps an action from being done now, found out without looking at voxels; empty when nothing does. A panel
  /// enables its buttons by it and shows the sentence.
  std::string Check(int action, vtkMRMLRaterConsensusNode* node);

  /// \name Actions; they return when the work is done
  ///@{
  /// How far the raters agree, and where not.
  std::string Agreement(vtkMRMLRaterConsensusNode* node);
  /// One map out of all raters' masks, by the node's method.
  std::string Fuse(vtkMRMLRaterConsensusNode* node);
  /// What the node's model says about the image, corrected where the node says so: probability, levels, masks.
  std::string Predict(vtkMRMLRaterConsensusNode* node);
  /// Whether the prediction (its levels where they are there, otherwise its probability; without a prediction the consensus
  /// map) is calibrated to the raters.
  std::string Evaluate(vtkMRMLRaterConsensusNode* node);
  /// Fits a correction of the prediction to the raters and writes the node's recalibration file; the chart shows before and
  /// after. Predict() applies it when the node is Corrected.
  std::string Recalibrate(vtkMRMLRaterConsensusNode* node);
  /// Trains, from the node's model on where it has one: on a data list, on the node's training cases, or on all cases
  /// (parameter nodes) of the scene. The new model's file must not be there yet; Keep() or Discard() ends it, and closing the
  /// scene discards it.
  std::string Train(vtkMRMLRaterConsensusNode* node);
  /// The model of the last training becomes the node's model, and the next training's file gets another name.
  std::string Keep(vtkMRMLRaterConsensusNode* node);
  /// Removes what the last training wrote: model, checkpoint and log.
  std::string Discard(vtkMRMLRaterConsensusNode* node);
  /// A name for a model trained on from this one that no file has yet: "liver-2.safetensors".
  std::string NameNextModel(const std::string& modelFile);
  /// Writes a page about the image, whether or not raters outlined it, by the node's model: volumes, slices, where the model is
  /// unsure, and the model's record. `anonymous`: without names and paths. An error sentence; empty: written.
  std::string Report(vtkMRMLRaterConsensusNode* node, const std::string& path, bool anonymous = false);
  /// What a model file says about itself, one line for each thing; an error sentence when it cannot be read.
  std::string DescribeModel(const std::string& modelFile);
  /// The structures that a model tells apart, one name per line; empty: it has one, or cannot be read.
  std::string GetStructures(const std::string& modelFile);
  /// The structures that the case's raters tell apart, likewise; empty: there is one.
  std::string GetStructuresOfRaters(vtkMRMLRaterConsensusNode* node);
  /// Asks the action that runs, on whatever thread, to stop.
  void Cancel();
  ///@}

  /// A built-in case for people without data of their own: an image, a segmentation with a segment for each of five raters,
  /// and their parameter node. Each call adds another patient of the same raters.
  vtkMRMLRaterConsensusNode* AddExampleCase();

  /// Remarks of the last action that a person should see, one per line.
  std::string GetRemarks() const;

  /// The colors of shares of raters and of probabilities; made when the scene has none.
  vtkMRMLColorTableNode* GetColorNode();

  /// Shows maps and levels as the node wants it: where they are clear, and whether in 3-D. After such a setting was changed.
  void ShowResults(vtkMRMLRaterConsensusNode* node);

  /// Moves all slice views and the cross-hair to a disputed region, 0 the largest, and marks it with a box. False when there is
  /// no such region.
  bool ShowDispute(vtkMRMLRaterConsensusNode* node, int index);
  /// Takes box and cross-hair away again.
  void LeaveDispute(vtkMRMLRaterConsensusNode* node);
  int GetNumberOfDisputes(vtkMRMLRaterConsensusNode* node);

#ifndef __VTK_WRAP__
  /// \name The same in three steps, so that a panel stays alive
  /// Prepare() reads the scene, the work may run on any thread and touches none of it, and what it returns writes the
  /// results into the scene. The first and the last step belong to the main thread. All of them throw rcn::Error.
  ///@{
  struct Monitor
  {
    std::function<bool(double fraction, const char* stage)> Progress; ///< true: stop
    std::function<void(const rcn::TrainingProgress&)> Training;
    std::function<void(const rcn::TrainingEpoch&)> Epoch;
  };
  using Publish = std::function<void()>;
  using Work = std::function<Publish(const Monitor& monitor)>;
  /// `path` and `anonymous` are those of Report().
  Work Prepare(int action, vtkMRMLRaterConsensusNode* node, const std::string& path = "", bool anonymous = false);
  ///@}

  /// What was found out last about a node, for widgets that show more than tables; null when nothing was. Of a scene that was
  /// loaded: what its tables hold.
  struct Results
  {
    std::shared_ptr<const rcn::AgreementReport> Agreement;
    std::shared_ptr<const rcn::EvaluationReport> Evaluation;
    std::shared_ptr<const rcn::EvaluationReport> EvaluationBefore; ///< the correction that was fitted; null without one
    std::shared_ptr<const rcn::TrainingResult> Training;
    std::shared_ptr<const rcn::PredictedVolumes> Volumes; ///< of the prediction
  };
  const Results& GetResults(vtkMRMLRaterConsensusNode* node) const;
#endif

protected:
  vtkSlicerRaterConsensusLogic();
  ~vtkSlicerRaterConsensusLogic() override;
  vtkSlicerRaterConsensusLogic(const vtkSlicerRaterConsensusLogic&) = delete;
  void operator=(const vtkSlicerRaterConsensusLogic&) = delete;

  void SetMRMLSceneInternal(vtkMRMLScene* scene) override;
  void RegisterNodes() override;
  void OnMRMLSceneStartClose() override;
  void OnMRMLSceneNodeRemoved(vtkMRMLNode* node) override;

private:
  std::string Do(int action, vtkMRMLRaterConsensusNode* node, const std::string& path = "", bool anonymous = false);
#ifndef __VTK_WRAP__
  Work Begin(int action, vtkMRMLRaterConsensusNode* node, const std::string& path, bool anonymous);
#endif

  class Internals;
  std::unique_ptr<Internals> Private;
};

#endif
