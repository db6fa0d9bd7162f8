/// A case of a scene as the work sees it: voxels, names and options by value, without MRML. For the main thread.
#ifndef rcnMrmlCase_h
#define rcnMrmlCase_h

#include <memory>
#include <string>
#include <vector>

#include "rcnEvaluation.h"
#include "rcnWorkspace.h"

class vtkMRMLNode;
class vtkMRMLRaterConsensusNode;
class vtkMRMLScalarVolumeNode;
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
  WorkspaceOptions Options;
};

/// Null when there is none.
vtkMRMLScalarVolumeNode* ImageOf(Node* node);
std::string NameOf(vtkMRMLNode* node);
/// What results are named after: the image, or the parameters of a training without one.
std::string TitleOf(Node* node);
/// Shares the node's voxels. Throws Error when there are none.
Volume VolumeOf(vtkMRMLVolumeNode* node);

/// The sentence that says why a case cannot be gathered; empty when it looks fine. Looks at no voxel.
std::string CheckCase(Node* node, bool raters);
/// Segments are rasterised in the image's grid, and transforms above image and raters are taken into account. Throws Error.
Input Gather(Node* node, bool raters);
/// For any thread. Throws Error.
std::shared_ptr<Workspace> Open(const Input& input);

/// Float32, as a prediction has to be.
Volume AsFloat(const Volume& volume);

/// \name The node's choices; they throw Error with the sentence that says what is wrong with them
///@{
rcn_fusion_options FusionOptions(Node* node);
EvaluationOptions JudgingOptions(Node* node);
rcn_recalib_method RecalibrationMethod(Node* node);
///@}

/// The model's probability, otherwise the consensus map; null when there is neither.
vtkMRMLScalarVolumeNode* JudgedMap(Node* node);

} // namespace mrml
} // namespace rcn

#endif
