#include "vtkSlicerRaterConsensusLogic.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include <vtkDoubleArray.h>
#include <vtkGeneralTransform.h>
#include <vtkImageData.h>
#include <vtkImageExtractComponents.h>
#include <vtkIntArray.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <vtkMRMLColorTableNode.h>
#include <vtkMRMLCrosshairNode.h>
#include <vtkMRMLLabelMapVolumeNode.h>
#include <vtkMRMLPlotChartNode.h>
#include <vtkMRMLPlotSeriesNode.h>
#include <vtkMRMLScalarVolumeDisplayNode.h>
#include <vtkMRMLScalarVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationDisplayNode.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLSliceNode.h>
#include <vtkMRMLSubjectHierarchyNode.h>
#include <vtkMRMLTableNode.h>
#include <vtkMRMLTransformNode.h>
#include <vtkOrientedImageData.h>
#include <vtkOrientedImageDataResample.h>
#include <vtkSegment.h>
#include <vtkSegmentation.h>
#include <vtkSegmentationConverter.h>
#include <vtkSlicerColorLogic.h>
#include <vtkSlicerSegmentationsModuleLogic.h>

#include "rcn/rcn_picture.h"
#include "rcnPhantom.h"
#include "rcnPrediction.h"
#include "rcnReport.h"
#include "rcnTraining.h"
#include "rcnVtkImage.h"
#include "vtkMRMLRaterConsensusNode.h"

namespace fs = std::filesystem;

namespace
{

const char* const PaletteAttribute = "RaterConsensus.Palette";
const char* const ExampleAttribute = "RaterConsensus.Example";
const char* const ModelEnding = ".safetensors";

using Node = vtkMRMLRaterConsensusNode;

/// A case as the work sees it: no MRML, only voxels and words.
struct Input
{
  std::string Id, ImageName;
  rcn::Volume Image;
  std::vector<rcn::RaterMask> Masks;
  rcn::WorkspaceOptions Options;
};

vtkMRMLScalarVolumeNode* ImageOf(Node* node)
{
  return vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNodeReference("image"));
}

std::string NameOf(vtkMRMLNode* node)
{
  return node && node->GetName() ? node->GetName() : "(no name)";
}

/// What results are named after: the image, or the parameters of a training without one.
std::string TitleOf(Node* node)
{
  return ImageOf(node) ? NameOf(ImageOf(node)) : NameOf(node);
}

rcn::Volume VolumeOf(vtkMRMLVolumeNode* node)
{
  vtkNew<vtkMatrix4x4> ijkToRas;
  node->GetIJKToRASMatrix(ijkToRas);
  return rcn::VolumeFromVtk(node->GetImageData(), ijkToRas, NameOf(node));
}

/// A mask in the image's grid, whatever transforms are above the two of them; nearest neighbour, 0 outside.
rcn::Volume InGridOf(vtkMRMLScalarVolumeNode* image, vtkOrientedImageData* mask, vtkMRMLTransformableNode* owner,
  const std::string& name)
{
  vtkNew<vtkOrientedImageData> reference, resampled;
  reference->SetExtent(image->GetImageData()->GetExtent());
  vtkNew<vtkMatrix4x4> ijkToRas;
  image->GetIJKToRASMatrix(ijkToRas);
  reference->SetImageToWorldMatrix(ijkToRas);
  vtkNew<vtkGeneralTransform> between;
  vtkMRMLTransformNode::GetTransformBetweenNodes(owner->GetParentTransformNode(), image->GetParentTransformNode(), between);
  if (!vtkOrientedImageDataResample::ResampleOrientedImageToReferenceOrientedImage(
        mask, reference, resampled, false, false, between))
  {
    throw rcn::Error(RCN_EDATA, name + " cannot be brought into the grid of " + NameOf(image) + ".");
  }
  return rcn::VolumeFromVtk(resampled, ijkToRas, name);
}

rcn::RaterMask SegmentMask(Node* node, int n, vtkMRMLSegmentationNode* segmentation)
{
  const std::string name = node->GetNthRaterName(n), id = node->GetNthRaterSegmentID(n);
  if (!segmentation->GetSegmentation() || !segmentation->GetSegmentation()->GetSegment(id))
  {
    throw rcn::Error(RCN_EDATA, "The segment of rater " + name + " is no longer in " + NameOf(segmentation) +
      "; choose the raters again.");
  }
  vtkNew<vtkOrientedImageData> mask;
  // Of several segments in one layer the node takes out the one; only what has no label map yet is converted, by itself.
  const bool there = segmentation->GetSegmentation()->ContainsRepresentation(
    vtkSegmentationConverter::GetSegmentationBinaryLabelmapRepresentationName());
  if (!(there ? segmentation->GetBinaryLabelmapRepresentation(id, mask)
              : vtkSlicerSegmentationsModuleLogic::GetSegmentBinaryLabelmapRepresentation(segmentation, id, mask, false)))
  {
    throw rcn::Error(RCN_EDATA, "The segment of rater " + name + " cannot be turned into voxels.");
  }
  rcn::RaterMask rater;
  rater.Name = name;
  if (mask->IsEmpty())
  {
    // A segment that nobody painted in: the rater answered, and marked nothing.
    const rcn::Volume image = VolumeOf(ImageOf(node));
    rater.Mask = rcn::Volume::Allocate(image.Geometry(), RCN_UINT8);
    std::fill_n(static_cast<uint8_t*>(rater.Mask.Data()), rcn_geometry_voxels(&image.Geometry()), uint8_t(0));
  }
  else
  {
    rater.Mask = InGridOf(ImageOf(node), mask, segmentation, name);
  }
  return rater;
}

rcn::RaterMask LabelMapMask(Node* node, int n, vtkMRMLScalarVolumeNode* labelMap)
{
  rcn::RaterMask rater;
  rater.Name = node->GetNthRaterName(n);
  if (const int value = node->GetNthRaterValue(n))
  {
    rater.Values = { value };
  }
  vtkMRMLScalarVolumeNode* const image = ImageOf(node);
  const bool moved = labelMap->GetParentTransformNode() != image->GetParentTransformNode();
  if (!moved && !node->GetResample())
  {
    rater.Mask = VolumeOf(labelMap); // shared; another geometry is refused where votes are packed
    return rater;
  }
  vtkNew<vtkOrientedImageData> oriented;
  if (!labelMap->GetImageData())
  {
    throw rcn::Error(RCN_EDATA, NameOf(labelMap) + " has no voxels.");
  }
  oriented->vtkImageData::ShallowCopy(labelMap->GetImageData());
  vtkNew<vtkMatrix4x4> ijkToRas;
  labelMap->GetIJKToRASMatrix(ijkToRas);
  oriented->SetImageToWorldMatrix(ijkToRas);
  rater.Mask = InGridOf(image, oriented, labelMap, rater.Name);
  return rater;
}

/// The sentence that says why a case cannot be gathered; empty when it looks fine.
std::string CheckCase(Node* node, bool raters)
{
  vtkMRMLScalarVolumeNode* const image = ImageOf(node);
  if (!image)
  {
    return "Choose the image that the raters looked at.";
  }
  if (!image->GetImageData())
  {
    return NameOf(image) + " has no voxels.";
  }
  if (!raters)
  {
    return "";
  }
  if (node->GetNumberOfRaters() < 1)
  {
    return "Choose at least one rater.";
  }
  if (node->GetNumberOfRaters() > RCN_MAX_RATERS)
  {
    return "There can be at most " + std::to_string(RCN_MAX_RATERS) + " raters.";
  }
  for (int n = 0; n < node->GetNumberOfRaters(); ++n)
  {
    const std::string name = node->GetNthRaterName(n);
    vtkMRMLNode* const source = node->GetNthRaterNode(n);
    const auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(source);
    if (!segmentation && !vtkMRMLScalarVolumeNode::SafeDownCast(source))
    {
      return "The segmentation of rater " + name + " is no longer in the scene; choose the raters again.";
    }
    for (int other = 0; other < n; ++other)
    {
      if (node->GetNthRaterName(other) == name)
      {
        return "Two raters have the name " + name + "; give each another one.";
      }
    }
  }
  return "";
}

Input Gather(Node* node, bool raters)
{
  const std::string sentence = CheckCase(node, raters);
  if (!sentence.empty())
  {
    throw rcn::Error(RCN_EINVALID, sentence);
  }
  Input input;
  input.Id = NameOf(node);
  input.ImageName = NameOf(ImageOf(node));
  input.Image = VolumeOf(ImageOf(node));
  input.Options.Resample = node->GetResample();
  input.Options.AbsentLabelIsError = false;
  for (int n = 0; raters && n < node->GetNumberOfRaters(); ++n)
  {
    vtkMRMLNode* const source = node->GetNthRaterNode(n);
    auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(source);
    input.Masks.push_back(segmentation
        ? SegmentMask(node, n, segmentation)
        : LabelMapMask(node, n, vtkMRMLScalarVolumeNode::SafeDownCast(source)));
  }
  return input;
}

std::shared_ptr<rcn::Workspace> Open(const Input& input)
{
  auto workspace = std::make_shared<rcn::Workspace>(input.Options);
  try
  {
    workspace->UseCase({ input.Image }, input.ImageName, input.Masks);
  }
  catch (const rcn::Error& error)
  {
    if (error.Status() != RCN_EGEOMETRY)
    {
      throw;
    }
    throw rcn::Error(error.Status(), std::string(error.what()) + " Switch on resampling, or draw on the image itself.");
  }
  return workspace;
}

/// masks[k - 1]: where at least k raters marked.
std::vector<rcn::Volume> AtLeastMasks(const rcn::Workspace& workspace)
{
  const rcn_votes* const votes = workspace.Votes();
  const rcn_pattern* const patterns = rcn_votes_patterns(votes);
  std::vector<rcn::Volume> masks;
  std::vector<uint8_t> table(static_cast<size_t>(rcn_votes_pattern_count(votes)));
  for (int k = 1; k <= rcn_votes_raters(votes); ++k)
  {
    for (size_t p = 0; p < table.size(); ++p)
    {
      int count = 0;
      for (uint64_t bits = patterns[p].marked; bits; bits &= bits - 1)
      {
        ++count;
      }
      table[p] = count >= k;
    }
    masks.push_back(rcn::Volume::Allocate(*rcn_votes_geometry(votes), RCN_UINT8));
    rcn::Check(rcn_votes_expand_u8(static_cast<uint8_t*>(masks.back().Data()), workspace.Context(), votes, table.data()),
      workspace.Context());
  }
  return masks;
}

/// One scalar image per component, as scenes want them.
std::vector<vtkSmartPointer<vtkImageData>> Components(const rcn::Volume& volume)
{
  const vtkSmartPointer<vtkImageData> all = rcn::VtkFromVolume(volume);
  std::vector<vtkSmartPointer<vtkImageData>> images;
  for (int c = 0; c < volume.View().components; ++c)
  {
    vtkNew<vtkImageExtractComponents> extract;
    extract->SetInputData(all);
    extract->SetComponents(c);
    extract->Update();
    images.push_back(extract->GetOutput());
  }
  return images;
}

/// Float32, as a prediction has to be.
rcn::Volume AsFloat(const rcn::Volume& volume)
{
  return volume.View().type == RCN_FLOAT32 ? volume : rcn::ResampleLinear(volume, volume.Geometry());
}

// ---- results as nodes -----------------------------------------------------------------------------------------------

/// Newer versions of Slicer have another name for it and warn about the old one.
template <class T> auto ShowColumnNames(T* table, int) -> decltype(table->SetUseColumnTitleAsColumnHeader(true))
{
  table->SetUseColumnTitleAsColumnHeader(true);
}
template <class T> void ShowColumnNames(T* table, long)
{
  table->SetUseColumnNameAsColumnHeader(true);
}

void AddSegment(vtkMRMLSegmentationNode* segmentation, const std::string& id, const std::string& name,
  const rcn::Volume& mask, const uint8_t rgb[3])
{
  vtkNew<vtkOrientedImageData> image;
  image->vtkImageData::DeepCopy(rcn::VtkFromVolume(mask));
  vtkNew<vtkMatrix4x4> ijkToRas;
  rcn::IjkToRas(ijkToRas, mask.Geometry());
  image->SetImageToWorldMatrix(ijkToRas);
  double color[3] = { rgb[0] / 255.0, rgb[1] / 255.0, rgb[2] / 255.0 };
  segmentation->AddSegmentFromBinaryLabelmapRepresentation(image, name, color, id);
  if (vtkSegment* const segment = segmentation->GetSegmentation()->GetSegment(id))
  {
    segment->SetTag(vtkSegment::GetTerminologyEntryTagName(),
      "Segmentation category and type - 3D Slicer General Anatomy list~SCT^85756007^Tissue~SCT^85756007^Tissue~^^~"
      "Anatomic codes - DICOM master list~^^~^^");
  }
}

/// Writes results into a scene: the nodes that are referred to, new ones where there are none.
class Publisher
{
public:
  Publisher(Node* node, vtkSlicerRaterConsensusLogic* logic) : Node_(node), Logic_(logic) {}

  template <class T> T* Result(const char* role, const char* className, const std::string& what, int n = 0)
  {
    T* result = T::SafeDownCast(this->Node_->GetNthNodeReference(role, n));
    if (!result)
    {
      result = T::SafeDownCast(this->Node_->GetScene()->AddNewNodeByClass(className));
      this->Node_->SetNthNodeReferenceID(role, n, result->GetID());
    }
    result->SetName((TitleOf(this->Node_) + ": " + what).c_str());
    return result;
  }

  vtkMRMLScalarVolumeNode* ShowMap(const char* role, const std::string& what, vtkImageData* image,
    const rcn_geometry& geometry, double most, int n = 0)
  {
    auto* const volume = this->Result<vtkMRMLScalarVolumeNode>(role, "vtkMRMLScalarVolumeNode", what, n);
    vtkNew<vtkMatrix4x4> ijkToRas;
    rcn::IjkToRas(ijkToRas, geometry);
    volume->SetIJKToRASMatrix(ijkToRas);
    volume->SetAndObserveImageData(image);
    this->Place(volume);
    volume->CreateDefaultDisplayNodes();
    if (auto* const display = vtkMRMLScalarVolumeDisplayNode::SafeDownCast(volume->GetDisplayNode()))
    {
      display->SetAndObserveColorNodeID(this->Logic_->GetColorNode()->GetID());
      display->SetAutoWindowLevel(0);
      display->SetWindowLevelMinMax(0, most);
      // What nobody marked lets the image through.
      display->SetThreshold(0.001 * most, most);
      display->SetApplyThreshold(1);
      // Without the Colors module there are no legends.
      if (vtkSmartPointer<vtkMRMLNode>::Take(volume->GetScene()->CreateNodeByClass("vtkMRMLColorLegendDisplayNode")))
      {
        vtkSlicerColorLogic::AddDefaultColorLegendDisplayNode(display);
      }
    }
    return volume;
  }

  /// A segment, replaced when there is one of that id.
  void ShowMask(const std::string& id, const std::string& what, const rcn::Volume& mask, const uint8_t rgb[3])
  {
    auto* const segmentation =
      this->Result<vtkMRMLSegmentationNode>(Node::GetMaskRole(), "vtkMRMLSegmentationNode", "consensus");
    segmentation->CreateDefaultDisplayNodes();
    segmentation->SetReferenceImageGeometryParameterFromVolumeNode(ImageOf(this->Node_));
    this->Place(segmentation);
    Drop(segmentation, id);
    AddSegment(segmentation, id, what, mask, rgb);
  }

  static void Drop(vtkMRMLSegmentationNode* segmentation, const std::string& id)
  {
    if (segmentation->GetSegmentation()->GetSegment(id)) // a warning otherwise
    {
      segmentation->GetSegmentation()->RemoveSegment(id);
    }
  }

  /// Segments of an earlier run that this one does not make.
  void DropMasks(const std::string& prefix, int from)
  {
    auto* const segmentation =
      vtkMRMLSegmentationNode::SafeDownCast(this->Node_->GetNodeReference(Node::GetMaskRole()));
    for (int n = from; segmentation && n <= RCN_MAX_RATERS; ++n)
    {
      Drop(segmentation, prefix + std::to_string(n));
    }
  }

  vtkMRMLTableNode* ShowTable(const char* role, const std::string& what, const std::vector<vtkSmartPointer<vtkAbstractArray>>& columns,
    int n = 0)
  {
    auto* const node = this->Result<vtkMRMLTableNode>(role, "vtkMRMLTableNode", what, n);
    vtkNew<vtkTable> table;
    for (const vtkSmartPointer<vtkAbstractArray>& column : columns)
    {
      table->AddColumn(column);
    }
    ShowColumnNames(node, 0);
    node->SetUseFirstColumnAsRowHeader(true);
    node->SetAndObserveTable(table);
    return node;
  }

  /// Results lie where the image lies.
  void Place(vtkMRMLTransformableNode* result)
  {
    result->SetAndObserveTransformNodeID(ImageOf(this->Node_)->GetTransformNodeID());
  }

  Node* GetNode() const { return this->Node_; }

private:
  Node* Node_;
  vtkSlicerRaterConsensusLogic* Logic_;
};

vtkSmartPointer<vtkStringArray> TextColumn(const std::string& name, const std::vector<std::string>& cells)
{
  auto column = vtkSmartPointer<vtkStringArray>::New();
  column->SetName(name.c_str());
  for (const std::string& cell : cells)
  {
    column->InsertNextValue(cell);
  }
  return column;
}

vtkSmartPointer<vtkDoubleArray> NumberColumn(const std::string& name, const std::vector<double>& cells)
{
  auto column = vtkSmartPointer<vtkDoubleArray>::New();
  column->SetName(name.c_str());
  for (const double cell : cells)
  {
    column->InsertNextValue(cell);
  }
  return column;
}

/// For people: "not defined" instead of NaN.
std::string Words(double value)
{
  return std::isnan(value) ? "not defined" : rcn::CsvNumber(value);
}

void PublishAgreement(Publisher& publisher, const rcn::AgreementReport& report, const std::vector<std::string>& raters,
  const rcn_geometry& geometry)
{
  const rcn_agreement& figures = *report.Figures;
  using Value = double rcn_rater_agreement::*;
  const std::pair<const char*, Value> perRater[] = { { "Volume (mL)", &rcn_rater_agreement::volume_ml },
    { "Dice with the others' majority", &rcn_rater_agreement::dice_to_others },
    { "Sensitivity to the others", &rcn_rater_agreement::sensitivity_to_others },
    { "Specificity to the others", &rcn_rater_agreement::specificity_to_others },
    { "STAPLE sensitivity", &rcn_rater_agreement::staple_sensitivity },
    { "STAPLE specificity", &rcn_rater_agreement::staple_specificity } };
  std::vector<vtkSmartPointer<vtkAbstractArray>> columns{ TextColumn("Rater", raters) };
  for (const auto& one : perRater)
  {
    std::vector<std::string> cells;
    for (int r = 0; r < figures.raters; ++r)
    {
      cells.push_back(Words(figures.rater[r].*one.second));
    }
    columns.push_back(TextColumn(one.first, cells));
  }
  for (const bool surface : { false, true })
  {
    for (int other = 0; other < figures.raters && (!surface || report.HasSurfaces); ++other)
    {
      std::vector<std::string> cells;
      for (int r = 0; r < figures.raters; ++r)
      {
        const rcn_pair_agreement& pair = figures.pair[r * figures.raters + other];
        cells.push_back(Words(surface ? pair.hausdorff95_mm : pair.dice));
      }
      columns.push_back(
        TextColumn((surface ? "Hausdorff 95 % (mm) with " : "Dice with ") + raters[static_cast<size_t>(other)], cells));
    }
  }
  publisher.ShowTable(Node::GetAgreementRole(), "agreement of raters", columns);

  const std::pair<std::string, double> summary[] = { { "Mean Dice of all pairs", figures.mean_dice },
    { "Fleiss kappa where anybody marked", figures.on_union.fleiss_kappa },
    { "Fleiss kappa, whole image", figures.whole.fleiss_kappa },
    { "Krippendorff alpha, whole image", figures.whole.krippendorff_alpha },
    { "Gwet AC1, whole image", figures.whole.gwet_ac1 },
    { "Marked by anybody (mL)", static_cast<double>(figures.union_voxels) * figures.voxel_ml },
    { "Marked by the majority (mL)", static_cast<double>(figures.majority_voxels) * figures.voxel_ml },
    { "Marked by all (mL)", static_cast<double>(figures.intersection_voxels) * figures.voxel_ml },
    { "Disputed (mL)", static_cast<double>(figures.disputed_voxels) * figures.voxel_ml } };
  std::vector<std::string> names, values;
  for (const auto& one : summary)
  {
    names.push_back(one.first);
    values.push_back(Words(one.second));
  }
  publisher.ShowTable(
    Node::GetAgreementRole(), "agreement in one page", { TextColumn("What", names), TextColumn("Value", values) }, 1);

  std::vector<double> volume, voxels, position[3];
  std::vector<std::string> by, number;
  for (const rcn_dispute& region : report.Regions)
  {
    const double at[3] = { static_cast<double>(region.at[0]), static_cast<double>(region.at[1]),
      static_cast<double>(region.at[2]) };
    double world[3];
    rcn_geometry_to_world(world, &geometry, at);
    rcn::ToRas(world, world);
    for (int a = 0; a < 3; ++a)
    {
      position[a].push_back(world[a]);
    }
    number.push_back(std::to_string(number.size() + 1));
    volume.push_back(region.volume_ml);
    voxels.push_back(static_cast<double>(region.voxels));
    std::string marked;
    for (const std::string& name : rcn::NamesOf(region.marked_by, raters))
    {
      marked += (marked.empty() ? "" : ", ") + name;
    }
    by.push_back(marked);
  }
  publisher.ShowTable(Node::GetDisputesRole(), "disputed regions, largest first",
    { TextColumn("Region", number), NumberColumn("Volume (mL)", volume), NumberColumn("Voxels", voxels),
      NumberColumn("R", position[0]), NumberColumn("A", position[1]), NumberColumn("S", position[2]),
      TextColumn("Marked by", by) });
}

/// Table, two series and their chart; `before` may be null.
void PublishReliability(Publisher& publisher, const rcn::EvaluationReport& report, const rcn::EvaluationReport* before)
{
  vtkMRMLScene* const scene = publisher.GetNode()->GetScene();
  const std::string title = TitleOf(publisher.GetNode());
  auto* const chart = publisher.Result<vtkMRMLPlotChartNode>(
    Node::GetChartRole(), "vtkMRMLPlotChartNode", "predicted and observed");
  chart->RemoveAllPlotSeriesNodeIDs();
  chart->SetTitle((title + ": of 100 marks it promises, how many do raters make?").c_str());
  chart->SetXAxisTitle("Probability that is shown");
  chart->SetYAxisTitle("Share of raters who marked");
  chart->SetXAxisRangeAuto(false);
  chart->SetXAxisRange(0, 1);
  chart->SetYAxisRangeAuto(false);
  chart->SetYAxisRange(0, 1);
  chart->SetLegendVisibility(true);
  int n = 0;
  const auto addSeries = [&](vtkMRMLTableNode* table, const char* y, const std::string& name, double r, double g, double b,
                           bool line) {
    auto* const series =
      publisher.Result<vtkMRMLPlotSeriesNode>(Node::GetSeriesRole(), "vtkMRMLPlotSeriesNode", name, n++);
    series->SetName(name.c_str());
    series->SetAndObserveTableNodeID(table->GetID());
    series->SetXColumnName("Predicted");
    series->SetYColumnName(y);
    series->SetPlotType(vtkMRMLPlotSeriesNode::PlotTypeScatter);
    series->SetMarkerStyle(line ? vtkMRMLPlotSeriesNode::MarkerStyleNone : vtkMRMLPlotSeriesNode::MarkerStyleCircle);
    series->SetLineStyle(line ? vtkMRMLPlotSeriesNode::LineStyleDash : vtkMRMLPlotSeriesNode::LineStyleSolid);
    series->SetColor(r, g, b);
    chart->AddAndObservePlotSeriesNodeID(series->GetID());
  };
  // The diagonal has a table of its own, from corner to corner.
  vtkMRMLTableNode* const ideal = publisher.ShowTable(Node::GetReliabilityRole(), "ideal reliability",
    { NumberColumn("Predicted", { 0, 1 }), NumberColumn("Observed", { 0, 1 }) });
  ideal->SetUseFirstColumnAsRowHeader(false);
  addSeries(ideal, "Observed", "Every promise kept", 0.5, 0.5, 0.5, true);
  const std::pair<const rcn::EvaluationReport*, const char*> curves[] = { { &report, before ? "After" : "Observed" },
    { before, "Before" } };
  for (const auto& curve : curves)
  {
    if (!curve.first)
    {
      continue;
    }
    std::vector<double> predicted, observed, lower, upper, pairs;
    for (const rcn_calib_bin& bin : curve.first->Bins)
    {
      if (bin.count > 0)
      {
        predicted.push_back(bin.confidence);
        observed.push_back(bin.frequency);
        lower.push_back(bin.lower);
        upper.push_back(bin.upper);
        pairs.push_back(static_cast<double>(bin.count));
      }
    }
    vtkMRMLTableNode* const table = publisher.ShowTable(Node::GetReliabilityRole(),
      std::string("reliability, ") + curve.second,
      { NumberColumn("Predicted", predicted), NumberColumn("Observed", observed), NumberColumn("From", lower),
        NumberColumn("To", upper), NumberColumn("Voxel-rater pairs", pairs) },
      curve.first == before ? 2 : 1);
    table->SetUseFirstColumnAsRowHeader(false);
    const bool old = curve.first == before;
    addSeries(table, "Observed", curve.second, old ? 0.6 : 0, old ? 0.6 : 0.45, old ? 0.6 : 0.7, false);
  }
  // A series of an earlier run that this one does not have leaves the scene with its table.
  if (!before)
  {
    for (const char* const role : { Node::GetSeriesRole(), Node::GetReliabilityRole() })
    {
      if (vtkMRMLNode* const left = publisher.GetNode()->GetNthNodeReference(role, 2))
      {
        scene->RemoveNode(left);
      }
    }
  }

  std::vector<std::string> names, values;
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    names.push_back(rcn_figure_name(static_cast<rcn_figure>(f)));
    values.push_back(Words(report.Figures[f]));
  }
  names.insert(names.end(), { "auc", "auc_pairs" });
  values.push_back(Words(report.Auc.reference));
  values.push_back(Words(report.Auc.pairs));
  publisher.ShowTable(
    Node::GetFiguresRole(), "calibration figures", { TextColumn("Figure", names), TextColumn("Value", values) });
}

// ---- options from the node ------------------------------------------------------------------------------------------

rcn_fusion_options FusionOptions(Node* node)
{
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  if (rcn_method_parse(&options.method, node->GetMethod().c_str()) != RCN_OK)
  {
    throw rcn::Error(RCN_EINVALID, "There is no method " + node->GetMethod() + ".");
  }
  options.sigma = node->GetSigma();
  options.tie = node->GetTieBackground() ? RCN_TIE_BACKGROUND : RCN_TIE_FOREGROUND;
  if (const char* const sentence = rcn_fusion_check(&options))
  {
    throw rcn::Error(RCN_EINVALID, sentence);
  }
  return options;
}

rcn::EvaluationOptions JudgingOptions(Node* node)
{
  rcn::EvaluationOptions options;
  options.Calib.bins = node->GetBins();
  options.Calib.threshold = node->GetThreshold();
  int region = 0;
  while (rcn_region_name(static_cast<rcn_region>(region)) &&
    node->GetRegion() != rcn_region_name(static_cast<rcn_region>(region)))
  {
    ++region;
  }
  if (!rcn_region_name(static_cast<rcn_region>(region)))
  {
    throw rcn::Error(RCN_EINVALID, "There is no region " + node->GetRegion() + ".");
  }
  options.Region.region = static_cast<rcn_region>(region);
  if (const char* const sentence = rcn_calib_check(&options.Calib, std::max(1, node->GetNumberOfRaters())))
  {
    throw rcn::Error(RCN_EINVALID, sentence);
  }
  return options;
}

rcn_recalib_method RecalibrationMethod(Node* node)
{
  int method = 0;
  while (const char* const name = rcn_recalib_name(static_cast<rcn_recalib_method>(method)))
  {
    if (node->GetRecalibrationMethod() == name)
    {
      return static_cast<rcn_recalib_method>(method);
    }
    ++method;
  }
  throw rcn::Error(RCN_EINVALID, "There is no recalibration " + node->GetRecalibrationMethod() + ".");
}

vtkMRMLScalarVolumeNode* JudgedMap(Node* node)
{
  auto* const probability = vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNodeReference(Node::GetProbabilityRole()));
  return probability ? probability
                     : vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNodeReference(Node::GetHeatmapRole()));
}

std::vector<Node*> CasesOfScene(vtkMRMLScene* scene)
{
  std::vector<vtkMRMLNode*> nodes;
  scene->GetNodesByClass("vtkMRMLRaterConsensusNode", nodes);
  std::vector<Node*> cases;
  for (vtkMRMLNode* const one : nodes)
  {
    Node* const node = Node::SafeDownCast(one);
    if (node && CheckCase(node, true).empty())
    {
      cases.push_back(node);
    }
  }
  return cases;
}

/// What training learns from: those the node names, or all that can be used.
std::vector<Node*> TrainingCases(Node* node)
{
  std::vector<Node*> cases;
  for (int n = 0; n < node->GetNumberOfTrainingCases(); ++n)
  {
    if (Node* const one = node->GetNthTrainingCase(n))
    {
      cases.push_back(one);
    }
  }
  return cases.empty() ? CasesOfScene(node->GetScene()) : cases;
}

/// What training writes: the model, where it stands, and its log.
std::vector<std::string> FilesOfTraining(const std::string& model)
{
  const std::string stem = model.substr(0, model.size() - std::min(model.size(), std::strlen(ModelEnding)));
  return { model, stem + ".checkpoint" + ModelEnding, stem + ".log.csv" };
}

bool IsThere(const std::string& path)
{
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// The first of NAME-2, NAME-3, ... that nothing lies at.
std::string NextModelFile(const std::string& model)
{
  std::string stem = model.substr(0, model.size() - std::strlen(ModelEnding));
  const size_t dash = stem.rfind('-');
  if (dash != std::string::npos && dash + 1 < stem.size() &&
    stem.find_first_not_of("0123456789", dash + 1) == std::string::npos)
  {
    stem.resize(dash);
  }
  for (int number = 2;; ++number)
  {
    const std::string path = stem + "-" + std::to_string(number) + ModelEnding;
    const std::vector<std::string> files = FilesOfTraining(path);
    if (std::none_of(files.begin(), files.end(), IsThere))
    {
      return path;
    }
  }
}

/// Nothing that is there already may be overwritten.
std::string CheckTrainedModelFile(const std::string& model)
{
  if (model.empty())
  {
    return "Choose the file to store the new model in.";
  }
  if (model.size() <= std::strlen(ModelEnding) ||
    model.compare(model.size() - std::strlen(ModelEnding), std::string::npos, ModelEnding) != 0)
  {
    return std::string("The name of a model's file ends with ") + ModelEnding + ".";
  }
  for (const std::string& file : FilesOfTraining(model))
  {
    if (IsThere(file))
    {
      return file + " is there already; choose another file for the new model.";
    }
  }
  return "";
}

/// A folder that goes with the object.
class TemporaryFolder
{
public:
  TemporaryFolder()
  {
    for (int i = 0; i < 10000; ++i)
    {
      this->Path_ = fs::temp_directory_path() / ("raterconsensus-" + std::to_string(std::rand()) + "-" + std::to_string(i));
      std::error_code error;
      if (fs::create_directory(this->Path_, error))
      {
        return;
      }
    }
    throw rcn::Error(RCN_EIO, "No folder for temporary files can be made in " + fs::temp_directory_path().string() + ".");
  }
  ~TemporaryFolder()
  {
    std::error_code ignored;
    fs::remove_all(this->Path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (this->Path_ / name).string(); }

private:
  fs::path Path_;
};

/// The scene's cases as files that training can read.
rcn::DataList WriteCases(const TemporaryFolder& folder, const std::vector<Input>& inputs)
{
  rcn::DataList list;
  for (size_t i = 0; i < inputs.size(); ++i)
  {
    const std::shared_ptr<rcn::Workspace> workspace = Open(inputs[i]);
    const rcn_votes* const votes = workspace->Votes();
    const rcn_pattern* const patterns = rcn_votes_patterns(votes);
    const std::string stem = "c" + std::to_string(i);
    rcn::Case one;
    one.Id = inputs[i].Id;
    one.Split = "training";
    one.Images = { folder / (stem + ".nrrd") };
    rcn::WriteImage(one.Images[0], AsFloat(inputs[i].Image).View(), rcn::Content::Probability);
    const rcn::Volume mask = rcn::Volume::Allocate(*rcn_votes_geometry(votes), RCN_UINT8);
    std::vector<uint8_t> table(static_cast<size_t>(rcn_votes_pattern_count(votes)));
    for (size_t r = 0; r < workspace->RaterNames().size(); ++r)
    {
      for (size_t p = 0; p < table.size(); ++p)
      {
        table[p] = patterns[p].marked >> r & 1;
      }
      rcn::Check(
        rcn_votes_expand_u8(static_cast<uint8_t*>(mask.Data()), workspace->Context(), votes, table.data()),
        workspace->Context());
      rcn::RaterFile file;
      file.Name = workspace->RaterNames()[r];
      file.Path = folder / (stem + "_" + std::to_string(r) + ".nrrd");
      rcn::WriteImage(file.Path, mask.View(), rcn::Content::Mask);
      one.Raters.push_back(file);
      if (std::find(list.Raters.begin(), list.Raters.end(), file.Name) == list.Raters.end())
      {
        list.Raters.push_back(file.Name);
      }
    }
    list.Cases.push_back(one);
  }
  return list;
}

/// Trains; files of a training that ends without a model go with it.
rcn::TrainingResult Trained(const rcn::TrainingOptions& options)
{
  try
  {
    rcn::TrainingResult result = rcn::TrainModel(options);
    if (!IsThere(result.Model))
    {
      throw rcn::Error(RCN_ECANCELLED, "Training was stopped before there was a model.");
    }
    return result;
  }
  catch (...)
  {
    for (const std::string& file : FilesOfTraining(options.Output))
    {
      std::error_code ignored;
      if (!IsThere(options.Output))
      {
        fs::remove(file, ignored);
      }
    }
    throw;
  }
}

} // namespace

// ---- the logic ------------------------------------------------------------------------------------------------------

class vtkSlicerRaterConsensusLogic::Internals
{
public:
  /// Held by works too, which may outlive the logic.
  struct State
  {
    std::atomic<bool> Cancel{ false };
    std::atomic<int> Scene{ 0 }; ///< counts scenes: node ids come back in the next one
  };
  std::shared_ptr<State> Shared = std::make_shared<State>();
  std::string Remarks;
  std::map<std::string, Results> ByNode;
};

vtkStandardNewMacro(vtkSlicerRaterConsensusLogic);

vtkSlicerRaterConsensusLogic::vtkSlicerRaterConsensusLogic() : Private(new Internals) {}

vtkSlicerRaterConsensusLogic::~vtkSlicerRaterConsensusLogic()
{
  this->Cancel();
  ++this->Private->Shared->Scene;
}

void vtkSlicerRaterConsensusLogic::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Remarks: " << this->Private->Remarks << "\n";
}

void vtkSlicerRaterConsensusLogic::SetMRMLSceneInternal(vtkMRMLScene* scene)
{
  vtkNew<vtkIntArray> events;
  events->InsertNextValue(vtkMRMLScene::NodeRemovedEvent);
  events->InsertNextValue(vtkMRMLScene::StartCloseEvent);
  this->SetAndObserveMRMLSceneEventsInternal(scene, events);
}

void vtkSlicerRaterConsensusLogic::RegisterNodes()
{
  if (this->GetMRMLScene())
  {
    this->GetMRMLScene()->RegisterNodeClass(vtkSmartPointer<vtkMRMLRaterConsensusNode>::New());
  }
}

void vtkSlicerRaterConsensusLogic::OnMRMLSceneStartClose()
{
  this->Cancel();
  ++this->Private->Shared->Scene;
  this->Private->ByNode.clear();
}

void vtkSlicerRaterConsensusLogic::OnMRMLSceneNodeRemoved(vtkMRMLNode* node)
{
  if (Node::SafeDownCast(node) && node->GetID())
  {
    this->Private->ByNode.erase(node->GetID());
  }
}

void vtkSlicerRaterConsensusLogic::Cancel()
{
  this->Private->Shared->Cancel = true;
}

std::string vtkSlicerRaterConsensusLogic::GetRemarks() const
{
  return this->Private->Remarks;
}

const vtkSlicerRaterConsensusLogic::Results& vtkSlicerRaterConsensusLogic::GetResults(Node* node) const
{
  static const Results none;
  const auto found = node && node->GetID() ? this->Private->ByNode.find(node->GetID()) : this->Private->ByNode.end();
  return found == this->Private->ByNode.end() ? none : found->second;
}

vtkMRMLColorTableNode* vtkSlicerRaterConsensusLogic::GetColorNode()
{
  vtkMRMLScene* const scene = this->GetMRMLScene();
  std::vector<vtkMRMLNode*> nodes;
  scene->GetNodesByClass("vtkMRMLColorTableNode", nodes);
  for (vtkMRMLNode* const one : nodes)
  {
    const char* const palette = one->GetAttribute(PaletteAttribute);
    if (palette && !std::strcmp(palette, rcn_palette_name(RCN_PALETTE_GREEN)))
    {
      return vtkMRMLColorTableNode::SafeDownCast(one);
    }
  }
  auto* const colors = vtkMRMLColorTableNode::SafeDownCast(
    scene->AddNewNodeByClass("vtkMRMLColorTableNode", "Rater Consensus"));
  colors->SetTypeToUser();
  colors->SetAttribute(PaletteAttribute, rcn_palette_name(RCN_PALETTE_GREEN));
  colors->SetDescription("Share of raters, or probability: dark green is few, yellow is all");
  constexpr int count = 256;
  colors->SetNumberOfColors(count);
  for (int c = 0; c < count; ++c)
  {
    uint8_t rgb[3];
    const double share = c / (count - 1.0);
    rcn_color_palette(rgb, RCN_PALETTE_GREEN, share);
    colors->SetColor(c, (std::to_string(static_cast<int>(std::lround(100 * share))) + " %").c_str(), rgb[0] / 255.0,
      rgb[1] / 255.0, rgb[2] / 255.0, 1.0);
  }
  return colors;
}

std::string vtkSlicerRaterConsensusLogic::Check(int action, Node* node)
{
  if (!node || !node->GetScene())
  {
    return "Choose or create a set of parameters.";
  }
  const bool raters = action != PredictAction && !(action == TrainAction && !node->GetDataListFile().empty());
  std::string sentence =
    action == TrainAction && !node->GetDataListFile().empty() ? std::string() : CheckCase(node, raters);
  if (!sentence.empty())
  {
    return sentence;
  }
  try
  {
    switch (action)
    {
      case FuseAction:
        FusionOptions(node);
        break;
      case PredictAction:
        if (node->GetModelFile().empty())
        {
          return "Choose a model file.";
        }
        if (!fs::exists(node->GetModelFile()))
        {
          return "The model file " + node->GetModelFile() + " is not there.";
        }
        break;
      case EvaluateAction:
      case RecalibrateAction:
        if (!JudgedMap(node) || !JudgedMap(node)->GetImageData())
        {
          return "There is no probability to judge yet: make a consensus or apply a model first.";
        }
        JudgingOptions(node);
        if (action == RecalibrateAction)
        {
          RecalibrationMethod(node);
          if (node->GetRecalibrationFile().empty())
          {
            return "Choose the file to store the correction in.";
          }
        }
        break;
      case TrainAction:
        if (this->GetResults(node).Training)
        {
          return "Keep or discard the trained model first.";
        }
        sentence = CheckTrainedModelFile(node->GetTrainedModelFile());
        if (!sentence.empty())
        {
          return sentence;
        }
        if (node->GetDataListFile().empty() && TrainingCases(node).size() < 2)
        {
          return "Training needs at least two cases: one to learn from and one to judge by. Choose a data list, or set up "
                 "a second case in this scene.";
        }
        break;
      default: break;
    }
  }
  catch (const rcn::Error& error)
  {
    return error.what();
  }
  return "";
}

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Prepare(int action, Node* node)
{
  const std::string sentence = this->Check(action, node);
  if (!sentence.empty())
  {
    throw rcn::Error(RCN_EINVALID, sentence);
  }
  const std::shared_ptr<Internals::State> state = this->Private->Shared;
  state->Cancel = false;
  this->Private->Remarks.clear();

  // What every work needs, by value: it may run when the node is long gone.
  const int sceneNumber = state->Scene;
  const std::string id = node->GetID();
  const bool fromList = action == TrainAction && !node->GetDataListFile().empty();
  auto inputs = std::make_shared<std::vector<Input>>();
  if (action == TrainAction && !fromList)
  {
    for (Node* const one : TrainingCases(node))
    {
      inputs->push_back(Gather(one, true));
    }
  }
  else if (!fromList)
  {
    inputs->push_back(Gather(node, action != PredictAction));
  }
  const auto progress = [state](const Monitor& monitor) {
    return [state, report = monitor.Progress](double fraction, const char* stage) {
      return (report && report(fraction, stage)) || state->Cancel;
    };
  };
  /// The node to publish to; throws when it has gone.
  const std::string trained = action == TrainAction ? node->GetTrainedModelFile() : "";
  const auto target = [this, state, sceneNumber, id, trained]() {
    const std::string kept = trained.empty() ? "" : " The new model is in " + trained + ".";
    if (state->Scene != sceneNumber)
    {
      throw rcn::Error(RCN_ECANCELLED, "The scene was closed." + kept);
    }
    Node* const found = Node::SafeDownCast(this->GetMRMLScene()->GetNodeByID(id));
    if (!found || (trained.empty() && !ImageOf(found)))
    {
      throw rcn::Error(RCN_EDATA,
        "The image or the parameters left the scene while this was computed; nothing was changed." + kept);
    }
    return found;
  };
  const auto remember = [this](const std::vector<std::string>& remarks) {
    for (const std::string& remark : remarks)
    {
      this->Private->Remarks += (this->Private->Remarks.empty() ? "" : "\n") + remark;
    }
  };
  const auto open = [inputs, progress](const Monitor& monitor) {
    const std::shared_ptr<rcn::Workspace> workspace = Open(inputs->front());
    workspace->SetProgress(progress(monitor));
    return workspace;
  };

  switch (action)
  {
    case AgreementAction:
      return [=, surfaces = node->GetSurfaces()](const Monitor& monitor) -> Publish {
        struct Held
        {
          std::shared_ptr<rcn::Workspace> Workspace; // owns what the report's figures came from
          rcn::AgreementReport Report;
        };
        auto held = std::make_shared<Held>();
        held->Workspace = open(monitor);
        held->Report = held->Workspace->Agree(surfaces);
        held->Workspace->SetProgress({});
        return [=] {
          Publisher publisher(target(), this);
          remember(held->Workspace->Remarks());
          PublishAgreement(publisher, held->Report, held->Workspace->RaterNames(),
            *rcn_votes_geometry(held->Workspace->Votes()));
          this->Private->ByNode[id].Agreement = { held, &held->Report };
        };
      };

    case FuseAction:
      return [=, options = FusionOptions(node)](const Monitor& monitor) -> Publish {
        const std::shared_ptr<rcn::Workspace> workspace = open(monitor);
        const rcn::FusionReport report = workspace->Fuse(options);
        const std::vector<rcn::Volume> masks =
          options.method == RCN_ORC ? AtLeastMasks(*workspace) : std::vector<rcn::Volume>();
        const std::vector<std::string> raters = workspace->RaterNames();
        const std::vector<std::string> remarks = workspace->Remarks();
        return [=] {
          Publisher publisher(target(), this);
          remember(remarks);
          const std::string method = rcn_method_name(options.method);
          publisher.ShowMap(Node::GetHeatmapRole(), "consensus (" + method + ")", rcn::VtkFromVolume(report.Map),
            report.Map.Geometry(),
            report.MapContent == rcn::Content::Levels ? static_cast<double>(raters.size()) : 1.0);
          for (size_t k = 1; k <= masks.size(); ++k)
          {
            uint8_t rgb[3];
            rcn_color_share(rgb, static_cast<double>(k) / static_cast<double>(masks.size()));
            publisher.ShowMask("RaterConsensus_level_" + std::to_string(k),
              "At least " + std::to_string(k) + " of " + std::to_string(masks.size()), masks[k - 1], rgb);
          }
          if (!masks.empty())
          {
            publisher.DropMasks("RaterConsensus_level_", static_cast<int>(masks.size()) + 1);
          }
        };
      };

    case PredictAction:
      return [=, path = node->GetModelFile(), readout = node->GetReadout(), threshold = node->GetThreshold()](
               const Monitor& monitor) -> Publish {
        rcn::Workspace workspace(inputs->front().Options); // for its context
        workspace.SetProgress(progress(monitor));
        const rcn::Model model(workspace.Context(), path);
        rcn::PredictionOptions options;
        options.Readout = readout;
        options.Threshold = threshold;
        const std::string unfit = rcn::CheckPrediction(model, options);
        if (!unfit.empty())
        {
          throw rcn::Error(RCN_EINVALID, unfit);
        }
        const rcn_image& view = inputs->front().Image.View();
        if (rcn_image_find_nonfinite(&view) >= 0)
        {
          throw rcn::Error(RCN_EDATA, inputs->front().ImageName + " has voxels that are not a number.");
        }
        const rcn::Prediction prediction =
          rcn::Predict(model, workspace.Context(), { inputs->front().Image }, inputs->front().ImageName, options);
        const std::vector<vtkSmartPointer<vtkImageData>> levels = prediction.Levels.Data()
          ? Components(prediction.Levels)
          : std::vector<vtkSmartPointer<vtkImageData>>();
        return [=] {
          Node* const owner = target();
          Publisher publisher(owner, this);
          remember(prediction.Remarks);
          const rcn_geometry& geometry = prediction.Probability.Geometry();
          publisher.ShowMap(Node::GetProbabilityRole(), "probability (" + prediction.Readout + ")",
            rcn::VtkFromVolume(prediction.Probability), geometry, 1);
          vtkMRMLSubjectHierarchyNode* const hierarchy =
            vtkMRMLSubjectHierarchyNode::GetSubjectHierarchyNode(owner->GetScene());
          vtkIdType folder = 0;
          for (size_t k = 0; k < levels.size(); ++k)
          {
            vtkMRMLScalarVolumeNode* const volume = publisher.ShowMap(Node::GetLevelRole(),
              "exactly " + std::to_string(k) + " of " + std::to_string(levels.size() - 1) + " raters", levels[k], geometry,
              1, static_cast<int>(k));
            if (!hierarchy)
            {
              continue;
            }
            vtkIdType item = hierarchy->GetItemByDataNode(volume);
            if (!item) // outside the application nobody makes items
            {
              item = hierarchy->CreateItem(hierarchy->GetSceneItemID(), volume);
            }
            if (!folder)
            {
              // The folder of an earlier run, or a new one.
              const std::string name = NameOf(owner) + ": levels";
              const vtkIdType parent = hierarchy->GetItemParent(item);
              folder = parent != hierarchy->GetSceneItemID() && hierarchy->GetItemName(parent) == name
                ? parent
                : hierarchy->CreateFolderItem(hierarchy->GetSceneItemID(), name);
            }
            hierarchy->SetItemParent(item, folder);
          }
          uint8_t rgb[3];
          rcn_color_share(rgb, 1);
          publisher.ShowMask("RaterConsensus_prediction", "Model: " + prediction.Readout, prediction.Mask, rgb);
        };
      };

    case EvaluateAction:
    case RecalibrateAction: {
      vtkMRMLScalarVolumeNode* const judged = JudgedMap(node);
      const rcn::Volume map = VolumeOf(judged);
      const std::string name = NameOf(judged);
      const std::string file = node->GetRecalibrationFile();
      const bool fit = action == RecalibrateAction;
      const rcn_recalib_method method = fit ? RecalibrationMethod(node) : RCN_RECALIB_PLATT;
      return [=, options = JudgingOptions(node)](const Monitor& monitor) -> Publish {
        const std::shared_ptr<rcn::Workspace> workspace = open(monitor);
        rcn::Evaluation evaluation(workspace->Context(), workspace->RaterNames(), options);
        if (!evaluation.PrepareCase(workspace->Votes(), inputs->front().Id, AsFloat(map), name))
        {
          throw rcn::Error(RCN_EDATA, "The region has no voxels in this case; choose another one.");
        }
        evaluation.CommitCase();
        if (fit)
        {
          rcn::WriteRecalibration(file, evaluation.Fit(method));
        }
        const auto report = std::make_shared<const rcn::EvaluationReport>(evaluation.Report());
        const std::vector<std::string> remarks = workspace->Remarks();
        return [=] {
          Publisher publisher(target(), this);
          remember(remarks);
          const std::string words = rcn::WorstBinInWords(*report);
          if (!words.empty())
          {
            remember({ words });
          }
          PublishReliability(publisher, *report, nullptr);
          this->Private->ByNode[id].Evaluation = report;
        };
      };
    }

    default: {
      rcn::TrainingOptions options;
      options.Data = node->GetDataListFile();
      options.Output = node->GetTrainedModelFile();
      options.Init = node->GetModelFile();
      options.Minutes = node->GetTrainingMinutes();
      const std::string unfit = fromList ? rcn::CheckTraining(options) : std::string();
      if (!unfit.empty())
      {
        throw rcn::Error(RCN_EINVALID, unfit);
      }
      return [=](const Monitor& monitor) -> Publish {
        rcn::TrainingOptions mine = options;
        std::unique_ptr<TemporaryFolder> folder;
        rcn::DataList list;
        if (!fromList)
        {
          folder.reset(new TemporaryFolder);
          list = WriteCases(*folder, *inputs);
          mine.List = &list;
        }
        auto remarks = std::make_shared<std::vector<std::string>>();
        const auto report = progress(monitor);
        mine.Progress = [&](const rcn::TrainingProgress& now) {
          if (monitor.Training)
          {
            monitor.Training(now);
          }
          return report(now.Fraction, now.Stage);
        };
        mine.EpochDone = monitor.Epoch;
        mine.Remark = [&](const std::string& remark) { remarks->push_back(remark); };
        const auto result = std::make_shared<const rcn::TrainingResult>(Trained(mine));
        return [=] {
          Publisher publisher(target(), this);
          remember(*remarks);
          if (result->After.Cases > 0)
          {
            PublishReliability(publisher, result->After, result->HasBefore ? &result->Before : nullptr);
          }
          else
          {
            remember({ "Training ended before the model could be judged." });
          }
          this->Private->ByNode[id].Training = result;
        };
      };
    }
  }
}

std::string vtkSlicerRaterConsensusLogic::Do(int action, Node* node)
{
  try
  {
    this->Prepare(action, node)(Monitor())();
    return "";
  }
  catch (const std::bad_alloc&)
  {
    return "There is not enough memory for this.";
  }
  catch (const std::exception& error)
  {
    return rcn::OneLine(error.what());
  }
}

std::string vtkSlicerRaterConsensusLogic::Agreement(Node* node)
{
  return this->Do(AgreementAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Fuse(Node* node)
{
  return this->Do(FuseAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Predict(Node* node)
{
  return this->Do(PredictAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Evaluate(Node* node)
{
  return this->Do(EvaluateAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Recalibrate(Node* node)
{
  return this->Do(RecalibrateAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Train(Node* node)
{
  return this->Do(TrainAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Keep(Node* node)
{
  const std::shared_ptr<const rcn::TrainingResult> trained = this->GetResults(node).Training;
  if (!trained)
  {
    return "There is no trained model to keep.";
  }
  if (!IsThere(trained->Model))
  {
    return trained->Model + " is no longer there.";
  }
  this->Private->ByNode[node->GetID()].Training = nullptr;
  const MRMLNodeModifyBlocker blocker(node);
  node->SetModelFile(trained->Model);
  node->SetTrainedModelFile(NextModelFile(trained->Model));
  node->Modified();
  return "";
}

std::string vtkSlicerRaterConsensusLogic::Discard(Node* node)
{
  const std::shared_ptr<const rcn::TrainingResult> trained = this->GetResults(node).Training;
  if (!trained)
  {
    return "There is no trained model to discard.";
  }
  for (const std::string& file : FilesOfTraining(trained->Model))
  {
    std::error_code error;
    fs::remove(file, error);
    if (error)
    {
      return file + " cannot be removed: " + error.message() + ".";
    }
  }
  this->Private->ByNode[node->GetID()].Training = nullptr;
  node->Modified();
  return "";
}

Node* vtkSlicerRaterConsensusLogic::AddExampleCase()
{
  vtkMRMLScene* const scene = this->GetMRMLScene();
  if (!scene)
  {
    return nullptr;
  }
  std::vector<vtkMRMLNode*> nodes;
  scene->GetNodesByClass("vtkMRMLRaterConsensusNode", nodes);
  const auto number = static_cast<int>(std::count_if(
    nodes.begin(), nodes.end(), [](vtkMRMLNode* one) { return one->GetAttribute(ExampleAttribute) != nullptr; }));
  const rcn::Workspace workspace; // for its context
  const rcn::Phantom example = rcn::MakeExample(workspace.Context(), number);
  const std::string name = "Example " + std::to_string(number + 1);
  vtkNew<vtkMatrix4x4> ijkToRas;
  rcn::IjkToRas(ijkToRas, example.Image.Geometry());

  auto* const image = vtkMRMLScalarVolumeNode::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLScalarVolumeNode", name));
  image->SetIJKToRASMatrix(ijkToRas);
  image->SetAndObserveImageData(rcn::VtkFromVolume(example.Image));
  image->CreateDefaultDisplayNodes();
  auto* const raters =
    vtkMRMLSegmentationNode::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLSegmentationNode", name + ": raters"));
  raters->CreateDefaultDisplayNodes();
  raters->SetReferenceImageGeometryParameterFromVolumeNode(image);
  auto* const node =
    Node::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLRaterConsensusNode", name + ": rater consensus"));
  node->SetAttribute(ExampleAttribute, std::to_string(number).c_str());
  const MRMLNodeModifyBlocker blocker(node);
  node->SetImageNodeID(image->GetID());
  for (size_t r = 0; r < example.Raters.size(); ++r)
  {
    const rcn::RaterMask& rater = example.Raters[r];
    uint8_t rgb[3];
    rcn_color_rater(rgb, static_cast<int>(r));
    AddSegment(raters, rater.Name, rater.Name, rater.Mask, rgb);
    node->AddSegment(rater.Name, raters->GetID(), rater.Name);
  }
  return node;
}

int vtkSlicerRaterConsensusLogic::GetNumberOfDisputes(Node* node)
{
  auto* const table =
    node ? vtkMRMLTableNode::SafeDownCast(node->GetNodeReference(Node::GetDisputesRole())) : nullptr;
  return table && table->GetTable() ? static_cast<int>(table->GetTable()->GetNumberOfRows()) : 0;
}

bool vtkSlicerRaterConsensusLogic::ShowDispute(Node* node, int index)
{
  if (index < 0 || index >= this->GetNumberOfDisputes(node))
  {
    return false;
  }
  auto* const table = vtkMRMLTableNode::SafeDownCast(node->GetNodeReference(Node::GetDisputesRole()))->GetTable();
  double position[3];
  const char* const axes[3] = { "R", "A", "S" };
  for (int a = 0; a < 3; ++a)
  {
    vtkAbstractArray* const column = table->GetColumnByName(axes[a]);
    if (!column)
    {
      return false; // not a table of ours any more
    }
    position[a] = table->GetValueByName(index, axes[a]).ToDouble();
  }
  // The table holds places in the image's own coordinates; its transform leads into the world.
  if (vtkMRMLScalarVolumeNode* const image = ImageOf(node))
  {
    vtkNew<vtkGeneralTransform> toWorld;
    vtkMRMLTransformNode::GetTransformBetweenNodes(image->GetParentTransformNode(), nullptr, toWorld);
    toWorld->TransformPoint(position, position);
  }
  std::vector<vtkMRMLNode*> slices;
  this->GetMRMLScene()->GetNodesByClass("vtkMRMLSliceNode", slices);
  for (vtkMRMLNode* const one : slices)
  {
    vtkMRMLSliceNode::SafeDownCast(one)->JumpSliceByCentering(position[0], position[1], position[2]);
  }
  if (auto* const crosshair = vtkMRMLCrosshairNode::SafeDownCast(
        this->GetMRMLScene()->GetFirstNodeByClass("vtkMRMLCrosshairNode")))
  {
    crosshair->SetCrosshairRAS(position);
  }
  return true;
}
