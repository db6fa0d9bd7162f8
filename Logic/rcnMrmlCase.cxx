// SPDX-License-Identifier: Apache-2.0
#include "rcnMrmlCase.h"

#include <algorithm>

#include <vtkGeneralTransform.h>
#include <vtkImageData.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>

#include <vtkMRMLColorNode.h>
#include <vtkMRMLDisplayNode.h>
#include <vtkMRMLScalarVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLStorageNode.h>
#include <vtkMRMLTransformNode.h>
#include <vtkOrientedImageData.h>
#include <vtkOrientedImageDataResample.h>
#include <vtkSegment.h>
#include <vtkSegmentation.h>
#include <vtkSegmentationConverter.h>
#include <vtkSlicerSegmentationsModuleLogic.h>

#include "rcnMrmlText.h"
#include "rcnResample.h"
#include "rcnVtkImage.h"
#include "vtkMRMLRaterConsensusNode.h"

namespace rcn
{
namespace mrml
{

// From nodes to what the bridge works on. Everything here runs on the main thread and reads the scene; what it returns holds
// the voxels, so that a worker needs no node.
vtkMRMLScalarVolumeNode* ImageOf(Node* node)
{
  return vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNodeReference("image"));
}

std::string NameOf(vtkMRMLNode* node)
{
  return node && node->GetName() ? node->GetName() : "(no name)";
}

// Results are named after the image, which is what a person looks for in a list.
std::string TitleOf(Node* node)
{
  return ImageOf(node) ? NameOf(ImageOf(node)) : NameOf(node);
}

Volume VolumeOf(vtkMRMLVolumeNode* node)
{
  vtkNew<vtkMatrix4x4> ijkToRas;
  node->GetIJKToRASMatrix(ijkToRas);
  const Volume volume = VolumeFromVtk(node->GetImageData(), ijkToRas, NameOf(node));
  // A volume that was loaded from a picture has the spacing 1 until somebody gives it a real one.
  vtkMRMLStorageNode* const storage = node->GetStorageNode();
  const double* const spacing = volume.Geometry().spacing;
  if (!storage || !storage->GetFileName() || !IsPictureName(storage->GetFileName()) || spacing[0] != 1 || spacing[1] != 1)
  {
    return volume;
  }
  // Volumes in milliliters of a picture would be made up, so its unit is the pixel.
  rcn_image picture = volume.View();
  picture.geometry.unit = RCN_PIXELS;
  return Volume::Share(picture, std::make_shared<Volume>(volume));
}

namespace
{

/// A mask in the image's grid, whatever transforms are above the two of them; nearest neighbor, 0 outside.
Volume InGridOf(
  vtkMRMLScalarVolumeNode* image, vtkOrientedImageData* mask, vtkMRMLTransformableNode* owner, const std::string& name)
{
  vtkNew<vtkOrientedImageData> reference, resampled;
  // The image's grid as the one to sample into; it needs no voxels.
  reference->SetExtent(image->GetImageData()->GetExtent());
  vtkNew<vtkMatrix4x4> ijkToRas;
  image->GetIJKToRASMatrix(ijkToRas);
  reference->SetImageToWorldMatrix(ijkToRas);
  vtkNew<vtkGeneralTransform> between;
  vtkMRMLTransformNode::GetTransformBetweenNodes(owner->GetParentTransformNode(), image->GetParentTransformNode(), between);
  if (!vtkOrientedImageDataResample::ResampleOrientedImageToReferenceOrientedImage(
        mask, reference, resampled, false, false, between))
  {
    throw Error(RCN_EDATA, name + " cannot be resampled to the grid of " + NameOf(image) + ".");
  }
  return VolumeFromVtk(resampled, ijkToRas, name);
}

/// A segment that nobody painted in: the rater answered, and marked nothing.
Volume NothingIn(Node* node)
{
  const Volume image = VolumeOf(ImageOf(node));
  const Volume nothing = Volume::Allocate(image.Geometry(), RCN_UINT8);
  std::fill_n(static_cast<uint8_t*>(nothing.Data()), rcn_geometry_voxels(&image.Geometry()), uint8_t(0));
  return nothing;
}

/// `rater` stands in sentences.
Volume SegmentMask(Node* node, vtkMRMLSegmentationNode* segmentation, const std::string& id, const std::string& rater)
{
  if (!segmentation->GetSegmentation() || !segmentation->GetSegmentation()->GetSegment(id))
  {
    throw Error(RCN_EDATA,
      Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The segment of rater %1 is no longer in %2; choose the raters again."),
        rater, NameOf(segmentation)));
  }
  vtkNew<vtkOrientedImageData> mask;
  // Of several segments in one layer the node takes out the one; only what has no label map yet is converted, by itself.
  const bool there = segmentation->GetSegmentation()->ContainsRepresentation(
    vtkSegmentationConverter::GetSegmentationBinaryLabelmapRepresentationName());
  if (!(there ? segmentation->GetBinaryLabelmapRepresentation(id, mask)
              : vtkSlicerSegmentationsModuleLogic::GetSegmentBinaryLabelmapRepresentation(segmentation, id, mask, false)))
  {
    throw Error(RCN_EDATA,
      Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The segment of rater %1 cannot be turned into voxels."), rater));
  }
  // An empty label map has no extent that could be resampled.
  return mask->IsEmpty() ? NothingIn(node) : InGridOf(ImageOf(node), mask, segmentation, rater);
}

/// A rater who tells structures apart; `several`: there are others than the one that is marked here.
RaterMask SegmentationMask(Node* node, int n, bool several)
{
  RaterMask rater;
  rater.Name = node->GetNthRaterName(n);
  vtkMRMLSegmentationNode* const segmentation = WholeSegmentation(node, n);
  for (const auto& segment : SegmentsOf(segmentation))
  {
    const Volume mask = SegmentMask(node, segmentation, segment.first, rater.Name);
    if (several)
    {
      rater.Structures.push_back({ segment.second, mask, {} });
    }
    else
    {
      rater.Mask = mask;
    }
  }
  // A rater without segments has seen nothing anywhere, which is an answer.
  if (several && rater.Structures.empty())
  {
    rater.Structures.push_back({ StructuresOf(node).front(), NothingIn(node), {} });
  }
  else if (!several && !rater.Mask.Data())
  {
    rater.Mask = NothingIn(node);
  }
  return rater;
}

RaterMask LabelMapMask(Node* node, int n, vtkMRMLScalarVolumeNode* labelMap)
{
  RaterMask rater;
  rater.Name = node->GetNthRaterName(n);
  // 0: every label counts.
  if (const int value = node->GetNthRaterValue(n))
  {
    rater.Values = { value };
  }
  vtkMRMLScalarVolumeNode* const image = ImageOf(node);
  // Only what lies under the same transform as the image may be taken as it is.
  const bool moved = labelMap->GetParentTransformNode() != image->GetParentTransformNode();
  if (!moved && !node->GetResample())
  {
    rater.Mask = VolumeOf(labelMap); // shared; another geometry is refused where votes are packed
    return rater;
  }
  vtkNew<vtkOrientedImageData> oriented;
  if (!labelMap->GetImageData())
  {
    throw Error(RCN_EDATA, NameOf(labelMap) + " has no voxels.");
  }
  oriented->vtkImageData::ShallowCopy(labelMap->GetImageData());
  vtkNew<vtkMatrix4x4> ijkToRas;
  labelMap->GetIJKToRASMatrix(ijkToRas);
  oriented->SetImageToWorldMatrix(ijkToRas);
  rater.Mask = InGridOf(image, oriented, labelMap, rater.Name);
  return rater;
}

/// The label map of a rater in a case of several structures: its labels are those that its colors name.
void TellStructuresApart(RaterMask& rater, vtkMRMLScalarVolumeNode* labelMap, const std::vector<std::string>& structures)
{
  vtkMRMLDisplayNode* const display = labelMap->GetDisplayNode();
  vtkMRMLColorNode* const colors = display ? display->GetColorNode() : nullptr;
  for (const std::string& name : structures)
  {
    const int value = colors ? colors->GetColorIndexByName(name.c_str()) : -1;
    if (value > 0)
    {
      rater.Structures.push_back({ name, rater.Mask, { value } });
    }
  }
  if (rater.Structures.empty())
  {
    throw Error(RCN_EDATA,
      Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The colors of %1 have no name of a structure."), NameOf(labelMap)));
  }
}

} // namespace

std::vector<std::pair<std::string, std::string>> SegmentsOf(vtkMRMLSegmentationNode* segmentation)
{
  std::vector<std::pair<std::string, std::string>> segments;
  vtkSegmentation* const all = segmentation->GetSegmentation();
  for (int i = 0; all && i < all->GetNumberOfSegments(); ++i)
  {
    const char* const name = all->GetNthSegment(i)->GetName();
    const std::string id = all->GetNthSegmentID(i);
    segments.emplace_back(id, name && *name ? name : id);
  }
  return segments;
}

vtkMRMLSegmentationNode* WholeSegmentation(Node* node, int n)
{
  return node->GetNthRaterSegmentID(n).empty() ? vtkMRMLSegmentationNode::SafeDownCast(node->GetNthRaterNode(n)) : nullptr;
}

// By name, in the order in which raters have them: two raters mean the same structure when they call it the same.
std::vector<std::string> StructuresOf(Node* node)
{
  std::vector<std::string> names;
  for (int n = 0; n < node->GetNumberOfRaters(); ++n)
  {
    vtkMRMLSegmentationNode* const segmentation = WholeSegmentation(node, n);
    for (const auto& segment : segmentation ? SegmentsOf(segmentation) : std::vector<std::pair<std::string, std::string>>())
    {
      if (std::find(names.begin(), names.end(), segment.second) == names.end())
      {
        names.push_back(segment.second);
      }
    }
  }
  return names;
}

// The first thing that is missing, in the order in which a person would go about it. The panel shows it beside the button.
std::string CheckCase(Node* node, bool raters)
{
  vtkMRMLScalarVolumeNode* const image = ImageOf(node);
  if (!image)
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Choose the image that the raters looked at.");
  }
  if (!image->GetImageData())
  {
    return Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "%1 has no voxels."), NameOf(image));
  }
  if (!raters)
  {
    return "";
  }
  if (node->GetNumberOfRaters() < 1)
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Choose at least one rater.");
  }
  if (node->GetNumberOfRaters() > RCN_MAX_RATERS)
  {
    return Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "There can be at most %1 raters."), std::to_string(RCN_MAX_RATERS));
  }
  const bool several = StructuresOf(node).size() > 1;
  for (int n = 0; n < node->GetNumberOfRaters(); ++n)
  {
    const std::string name = node->GetNthRaterName(n);
    vtkMRMLNode* const source = node->GetNthRaterNode(n);
    const auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(source);
    if (!segmentation && !vtkMRMLScalarVolumeNode::SafeDownCast(source))
    {
      return Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic",
                      "The segmentation of rater %1 is no longer in the scene; choose the raters again."),
        name);
    }
    // One segment or one label of a rater, where others give several.
    const bool oneMask = segmentation ? !node->GetNthRaterSegmentID(n).empty() : node->GetNthRaterValue(n) != 0;
    if (several && oneMask)
    {
      return Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic",
                      "Other raters have several structures, but rater %1 has one mask; add a segmentation of this rater."),
        name);
    }
    for (int other = 0; other < n; ++other)
    {
      if (node->GetNthRaterName(other) == name)
      {
        return Filled(
          vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Two raters have the name %1; give each a different one."), name);
      }
    }
  }
  return "";
}

// Copies nothing that can be shared: voxels belong to VTK images, which are kept alive by the volumes.
Input Gather(Node* node, bool raters)
{
  const std::string sentence = CheckCase(node, raters);
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, sentence);
  }
  Input input;
  input.Id = NameOf(node);
  input.ImageName = NameOf(ImageOf(node));
  input.Image = VolumeOf(ImageOf(node));
  input.Options.Resample = node->GetResample();
  // A label that does not occur means that the rater saw nothing, not that the file is the wrong one.
  input.Options.AbsentLabelIsError = false;
  const std::vector<std::string> names = raters ? StructuresOf(node) : std::vector<std::string>();
  const bool several = names.size() > 1;
  for (size_t c = 0; several && c < names.size(); ++c)
  {
    input.Structures.push_back({ names[c], { static_cast<int64_t>(c) + 1 } });
  }
  if (several)
  {
    input.Chosen = node->GetStructure().empty() ? 1 : FindStructure(input.Structures, node->GetStructure());
  }
  for (int n = 0; raters && n < node->GetNumberOfRaters(); ++n)
  {
    vtkMRMLNode* const source = node->GetNthRaterNode(n);
    auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(source);
    if (!segmentation)
    {
      auto* const labelMap = vtkMRMLScalarVolumeNode::SafeDownCast(source);
      input.Masks.push_back(LabelMapMask(node, n, labelMap));
      if (several)
      {
        TellStructuresApart(input.Masks.back(), labelMap, names);
      }
    }
    else if (WholeSegmentation(node, n))
    {
      input.Masks.push_back(SegmentationMask(node, n, several));
    }
    else
    {
      input.Masks.emplace_back();
      input.Masks.back().Name = node->GetNthRaterName(n);
      input.Masks.back().Mask = SegmentMask(node, segmentation, node->GetNthRaterSegmentID(n), input.Masks.back().Name);
    }
  }
  return input;
}

// On the worker's thread: packing votes takes a moment.
std::shared_ptr<Workspace> Open(const Input& input)
{
  auto workspace = std::make_shared<Workspace>(input.Options);
  workspace->LoadCase(CaseOf(input.Id, { input.Image }, input.ImageName, input.Masks, input.Structures));
  if (input.Chosen)
  {
    workspace->SelectStructure(input.Chosen);
  }
  return workspace;
}

void CheckFinite(const Volume& image, const std::string& name)
{
  if (rcn_image_find_nonfinite(&image.View()) >= 0)
  {
    throw Error(RCN_EDATA, name + " has voxels that are not a number.");
  }
}

// ---- what is judged -------------------------------------------------------------------------------------------------

namespace
{

/// As a prediction has to be.
Volume AsFloat(const Volume& volume)
{
  return volume.View().type == RCN_FLOAT32 ? volume : ResampleLinear(volume, volume.Geometry());
}

// How a map was made, as attributes of its node: they are saved with the scene and lost with the map.
const char* const ReadoutAttribute = "RaterConsensus.Readout";
const char* const CorrectionAttribute = "RaterConsensus.Correction";
const char* const FittedHereAttribute = "RaterConsensus.FittedHere";

} // namespace

void SetProvenance(vtkMRMLNode* map, const Provenance& provenance)
{
  const auto set = [map](const char* name, const std::string& value) {
    map->SetAttribute(name, value.empty() ? nullptr : value.c_str());
  };
  set(ReadoutAttribute, provenance.Readout);
  set(CorrectionAttribute, provenance.Correction);
  set(FittedHereAttribute, provenance.FittedHere ? "1" : "");
}

Provenance ProvenanceOf(vtkMRMLNode* map)
{
  const auto get = [map](const char* name) {
    const char* const value = map ? map->GetAttribute(name) : nullptr;
    return std::string(value ? value : "");
  };
  return { get(ReadoutAttribute), get(CorrectionAttribute), !get(FittedHereAttribute).empty() };
}

// The model's probability; without one, the consensus, which can be compared with its raters in the same way.
vtkMRMLScalarVolumeNode* JudgedMap(Node* node)
{
  auto* const probability = vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNodeReference(Node::GetProbabilityRole()));
  return probability ? probability : vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNodeReference(Node::GetHeatmapRole()));
}

// All of them or none: levels for another number of raters cannot be judged by these.
std::vector<vtkMRMLScalarVolumeNode*> LevelNodes(Node* node)
{
  std::vector<vtkMRMLScalarVolumeNode*> levels;
  const int count = node->GetNumberOfNodeReferences(Node::GetLevelRole());
  for (int k = 0; k < count && count == node->GetNumberOfRaters() + 1; ++k)
  {
    auto* const one = vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNthNodeReference(Node::GetLevelRole(), k));
    if (!one || !one->GetImageData())
    {
      return {};
    }
    levels.push_back(one);
  }
  return node->GetNodeReference(Node::GetProbabilityRole()) ? levels : std::vector<vtkMRMLScalarVolumeNode*>();
}

// Of the node or its voxels, whichever changed last.
vtkMTimeType TimeOf(vtkMRMLScalarVolumeNode* level)
{
  return std::max(level->GetMTime(), level->GetImageData()->GetMTime());
}

Judged GatherJudged(Node* node, const KeptLevels& kept)
{
  vtkMRMLScalarVolumeNode* const map = JudgedMap(node);
  Judged judged;
  judged.Name = NameOf(map);
  judged.Made = ProvenanceOf(map);
  const std::vector<vtkMRMLScalarVolumeNode*> levels = LevelNodes(node);
  // Untouched since they were published: the levels in memory save a conversion of every voxel.
  const bool same = !levels.empty() &&
    std::equal(levels.begin(), levels.end(), kept.Times.begin(), kept.Times.end(),
      [](vtkMRMLScalarVolumeNode* level, vtkMTimeType time) { return TimeOf(level) == time; });
  for (size_t k = 0; k < levels.size() && !same; ++k)
  {
    judged.Maps.push_back(AsFloat(VolumeOf(levels[k]))); // after a scene was loaded, or a volume changed
  }
  if (judged.Maps.empty())
  {
    judged.Maps.push_back(same ? kept.Levels : AsFloat(VolumeOf(map)));
  }
  return judged;
}

// ---- choices --------------------------------------------------------------------------------------------------------

rcn_fusion_options FusionOptions(Node* node)
{
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  if (!Parse(options.method, node->GetMethod()))
  {
    throw Error(RCN_EINVALID, Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Unknown method %1."), node->GetMethod()));
  }
  options.sigma = node->GetSigma();
  options.tie = node->GetTieBackground() ? RCN_TIE_BACKGROUND : RCN_TIE_FOREGROUND;
  if (const char* const sentence = rcn_fusion_check(&options))
  {
    throw Error(RCN_EINVALID, sentence);
  }
  return options;
}

void CheckReadout(const std::string& readout)
{
  rcn_readout kind{};
  int atLeast = 0;
  if (!readout.empty() && !ParseReadout(kind, atLeast, readout))
  {
    throw Error(RCN_EINVALID, Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Unknown readout %1."), readout));
  }
}

rcn_region RegionOf(Node* node)
{
  rcn_region region{};
  if (!Parse(region, node->GetRegion()))
  {
    throw Error(RCN_EINVALID, Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Unknown region %1."), node->GetRegion()));
  }
  return region;
}

EvaluationOptions JudgingOptions(Node* node)
{
  EvaluationOptions options;
  options.Calib.bins = node->GetBins();
  options.Calib.threshold = node->GetThreshold();
  options.Region.region = RegionOf(node);
  // Levels can be read as one likes; one probability is what it was made as.
  if (!LevelNodes(node).empty())
  {
    const std::string made = ProvenanceOf(JudgedMap(node)).Readout;
    CheckReadout(node->GetReadout());
    ChooseReadout(options, node->GetReadout(), made, made == rcn_readout_name(RCN_READOUT_MORE_THAN_HALF));
  }
  if (const char* const sentence = rcn_calib_check(&options.Calib, std::max(1, node->GetNumberOfRaters())))
  {
    throw Error(RCN_EINVALID, sentence);
  }
  return options;
}

rcn_recalib_method RecalibrationMethod(Node* node)
{
  rcn_recalib_method method{};
  if (!Parse(method, node->GetRecalibrationMethod()))
  {
    throw Error(RCN_EINVALID,
      Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Unknown recalibration %1."), node->GetRecalibrationMethod()));
  }
  return method;
}

} // namespace mrml
} // namespace rcn
