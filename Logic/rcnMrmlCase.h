// SPDX-License-Identifier: Apache-2.0
/// A case of a scene as the work sees it: voxels, names and options by value, without MRML. For the main thread.
#ifndef rcnMrmlCase_h
#define rcnMrmlCase_h

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <vtkType.h>

#include "rcnEvaluation.h"
#include "rcnWorkspace.h"

class vtkMRMLNode;
class vtkMRMLRaterConsensusNode;
class vtkMRMLScalarVolumeNode;
class vtkMRMLSegmentationNode;
class vtkMRMLVolumeNode;

namespace rcn
{
namespace mrml
{

using Node = vtkMRMLRaterConsensusNode;

struct Input
{
  std::string Id, ImageName;
  Volume Image;
  std::vector<RaterMask> Masks;
  std::vector<Structure> Structures; ///< that the raters tell apart; none: there is one
  int Chosen = 0;                    ///< the number of the one that is asked about; 0: there is one
  WorkspaceOptions Options;
};

/// Null when there is none.
vtkMRMLScalarVolumeNode* ImageOf(Node* node);
std::string NameOf(vtkMRMLNode* node);
/// What results are named after: the image, or the parameters of a training without one.
std::string TitleOf(Node* node);
/// Shares the node's voxels. Throws Error when there are none.
Volume VolumeOf(vtkMRMLVolumeNode* node);

/// Ids and names of the segments, in order.
std::vector<std::pair<std::string, std::string>> SegmentsOf(vtkMRMLSegmentationNode* segmentation);
/// The rater's segmentation, where all of it is the rater's; otherwise null.
vtkMRMLSegmentationNode* WholeSegmentation(Node* node, int n);
/// The structures that raters tell apart: names of the segments of their segmentations. One or none: there is one structure.
std::vector<std::string> StructuresOf(Node* node);

/// The sentence that says why a case cannot be gathered; empty when it looks fine. Looks at no voxel.
std::string CheckCase(Node* node, bool raters);
/// Segments are rasterised in the image's grid, and transforms above image and raters are taken into account. Throws Error.
Input Gather(Node* node, bool raters);
/// With the chosen structure selected. For any thread. Throws Error.
std::shared_ptr<Workspace> Open(const Input& input);

/// Throws Error when the image has voxels that a network cannot take.
void CheckFinite(const Volume& image, const std::string& name);

/// What a probability's node remembers of the prediction it came from, beyond the voxels.
struct Provenance
{
  std::string Readout;     ///< empty: no prediction, but a consensus map
  std::string Correction;  ///< the file it was corrected by, or the model's; empty: by none
  bool FittedHere = false; ///< the correction was fitted to this very case
};
void SetProvenance(vtkMRMLNode* map, const Provenance& provenance);
Provenance ProvenanceOf(vtkMRMLNode* map);

/// The map that is judged: the model's probability, otherwise the consensus map; null when there is neither.
vtkMRMLScalarVolumeNode* JudgedMap(Node* node);
/// The level volumes of the last prediction, as many as the raters ask for; empty when they do not fit or are not there.
std::vector<vtkMRMLScalarVolumeNode*> LevelNodes(Node* node);

/// The levels of a prediction as the model gave them, one voxel's beside each other, so that they need not be put together
/// from the scene's volumes to be judged. They are those of the scene as long as nobody touched these.
struct KeptLevels
{
  Volume Levels;
  std::vector<vtkMTimeType> Times; ///< TimeOf() the level nodes
};
/// When a level's voxels or their place in the world changed last.
vtkMTimeType TimeOf(vtkMRMLScalarVolumeNode* level);

/// The same as voxels, in float32.
struct Judged
{
  std::string Name;
  std::vector<Volume> Maps; ///< K + 1 levels one by one, or one map: of levels or of a probability
  Provenance Made;
};
Judged GatherJudged(Node* node, const KeptLevels& kept);

/// \name The node's choices; they throw Error with the sentence that says what is wrong with them
///@{
rcn_fusion_options FusionOptions(Node* node);
rcn_region RegionOf(Node* node);
/// Empty is fine: whoever reads has its own.
void CheckReadout(const std::string& readout);
/// Levels by the node's readout, otherwise by the prediction's.
EvaluationOptions JudgingOptions(Node* node);
rcn_recalib_method RecalibrationMethod(Node* node);
///@}

} // namespace mrml
} // namespace rcn

#endif
