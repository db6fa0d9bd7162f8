// SPDX-License-Identifier: Apache-2.0
/// Results as ordinary nodes of a scene: those the parameter node refers to, new ones where there are none. For the main
/// thread.
#ifndef rcnMrmlResults_h
#define rcnMrmlResults_h

#include <string>
#include <vector>

#include <vtkSmartPointer.h>

#include "rcnMrmlCase.h"
#include "rcnPrediction.h"

class vtkImageData;
class vtkMRMLColorTableNode;
class vtkMRMLScene;
class vtkMRMLSegmentationNode;

namespace rcn
{
namespace mrml
{

/// masks[k - 1]: where at least k raters marked. For any thread.
std::vector<Volume> AtLeastMasks(const Workspace& workspace);

/// The colors of shares of raters and of probabilities; made when the scene has none.
vtkMRMLColorTableNode* ConsensusColors(vtkMRMLScene* scene);

void AddSegment(vtkMRMLSegmentationNode* segmentation, const std::string& id, const std::string& name, const Volume& mask,
  const uint8_t rgb[3]);

/// Display nodes where there are none: masks that lie over each other are told apart by outlines.
void ShowOutlines(vtkMRMLSegmentationNode* segmentation);

/// Tables: raters, summary, disputed regions; and what they hold, null when there are none.
void PublishAgreement(Node* node, const AgreementReport& report, const std::vector<std::string>& raters);
std::shared_ptr<const AgreementReport> StoredAgreement(Node* node);

/// The consensus map; of levels also a segment for each "at least k" (masks, otherwise empty).
void PublishFusion(Node* node, const FusionReport& report, rcn_method method, int raters, const std::vector<Volume>& masks);

/// \name How results are shown, as the node wants it
///@{
/// Maps are clear below the node's share.
void ShowFromThreshold(Node* node);
/// Surfaces of "at least k raters" in 3-D views, of the map that is over the image; none where the node wants none.
void ShowLevelsIn3D(Node* node);
/// Everything of a case in one folder of the subject hierarchy with the name of the case; what a person has put elsewhere
/// stays there.
void PutIntoFolder(Node* node);
/// A box around voxels of the image, in slices and in 3-D, until it is taken away; it is not saved. In a scene that knows no
/// markups nothing happens.
void MarkBox(Node* node, const double first[3], const double size[3]);
void UnmarkBox(Node* node);
///@}

/// A prediction ready for the scene.
struct PredictionNodes
{
  Prediction Maps;
  std::vector<vtkSmartPointer<vtkImageData>> Levels; ///< ComponentsOf() the maps' levels; may be empty
  std::vector<Volume> LevelMasks;                    ///< K of them, or none
  std::string Structure;                             ///< of a model of several, the one that this is about
  Provenance Made;
};
/// Probability, its mask, its volumes, the level volumes in a folder and a segment for each "at least k"; those of an earlier
/// prediction that this one does not have leave the scene. Returns the levels to judge by.
KeptLevels PublishPrediction(Node* node, const PredictionNodes& prediction);
std::shared_ptr<const PredictedVolumes> StoredVolumes(Node* node);

/// Tables, series and their chart; `before` may be null. Raters are those of the reports.
void PublishReliability(
  Node* node, const EvaluationReport& report, const EvaluationReport* before, const std::vector<std::string>& raters);
std::shared_ptr<const EvaluationReport> StoredEvaluation(Node* node, bool before);

} // namespace mrml
} // namespace rcn

#endif
