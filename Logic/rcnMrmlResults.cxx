// SPDX-License-Identifier: Apache-2.0
#include "rcnMrmlResults.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <vtkDoubleArray.h>
#include <vtkImageData.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <vtkMRMLColorLegendDisplayNode.h>
#include <vtkMRMLColorTableNode.h>
#include <vtkMRMLPlotChartNode.h>
#include <vtkMRMLPlotSeriesNode.h>
#include <vtkMRMLScalarVolumeDisplayNode.h>
#include <vtkMRMLScalarVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationDisplayNode.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLSubjectHierarchyNode.h>
#include <vtkMRMLTableNode.h>
#include <vtkOrientedImageData.h>
#include <vtkSegment.h>
#include <vtkSegmentation.h>
#include <vtkSegmentationConverter.h>
#include <vtkSlicerColorLogic.h>

#include "rcn/rcn_color.h"
#include "rcnAgreementFigures.h"
#include "rcnReport.h"
#include "rcnVtkImage.h"
#include "vtkMRMLRaterConsensusNode.h"

namespace rcn
{
namespace mrml
{

namespace
{

const char* const PaletteAttribute = "RaterConsensus.Palette";

} // namespace

std::vector<Volume> AtLeastMasks(const Workspace& workspace)
{
  const rcn_votes* const votes = workspace.Votes();
  const rcn_pattern* const patterns = rcn_votes_patterns(votes);
  std::vector<Volume> masks;
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
    masks.push_back(Volume::Allocate(*rcn_votes_geometry(votes), RCN_UINT8));
    Check(rcn_votes_expand_u8(static_cast<uint8_t*>(masks.back().Data()), workspace.Context(), votes, table.data()),
      workspace.Context());
  }
  return masks;
}

vtkMRMLColorTableNode* ConsensusColors(vtkMRMLScene* scene)
{
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
  auto* const colors =
    vtkMRMLColorTableNode::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLColorTableNode", "Rater Consensus"));
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

void AddSegment(vtkMRMLSegmentationNode* segmentation, const std::string& id, const std::string& name, const Volume& mask,
  const uint8_t rgb[3])
{
  vtkNew<vtkOrientedImageData> image;
  image->vtkImageData::DeepCopy(VtkFromVolume(mask));
  vtkNew<vtkMatrix4x4> ijkToRas;
  IjkToRas(ijkToRas, mask.Geometry());
  image->SetImageToWorldMatrix(ijkToRas);
  vtkNew<vtkSegment> segment;
  segment->SetName(name.c_str());
  segment->SetColor(rgb[0] / 255.0, rgb[1] / 255.0, rgb[2] / 255.0);
  segment->AddRepresentation(vtkSegmentationConverter::GetSegmentationBinaryLabelmapRepresentationName(), image);
  segment->SetTag(vtkSegment::GetTerminologyEntryTagName(),
    "Segmentation category and type - 3D Slicer General Anatomy list~SCT^85756007^Tissue~SCT^85756007^Tissue~^^~"
    "Anatomic codes - DICOM master list~^^~^^");
  // Not by the node's method, which before Slicer 5.8 takes the name for the id.
  segmentation->GetSegmentation()->AddSegment(segment, id);
}

void ShowOutlines(vtkMRMLSegmentationNode* segmentation)
{
  if (segmentation->GetDisplayNode()) // it is a person's by now
  {
    return;
  }
  segmentation->CreateDefaultDisplayNodes();
  if (auto* const display = vtkMRMLSegmentationDisplayNode::SafeDownCast(segmentation->GetDisplayNode()))
  {
    display->SetVisibility2DFill(false);
  }
}

namespace
{

/// Newer versions of Slicer have another name for it and warn about the old one.
template <class T> auto ShowColumnNames(T* table, int) -> decltype(table->SetUseColumnTitleAsColumnHeader(true))
{
  table->SetUseColumnTitleAsColumnHeader(true);
}
template <class T> void ShowColumnNames(T* table, long)
{
  table->SetUseColumnNameAsColumnHeader(true);
}

/// Writes results into a scene: the nodes that are referred to, new ones where there are none.
class Publisher
{
public:
  explicit Publisher(Node* node) : Node_(node) {}

  template <class T> T* Result(const char* role, const char* className, const std::string& what, int n = 0)
  {
    T* result = T::SafeDownCast(this->Node_->GetNthNodeReference(role, n));
    if (!result)
    {
      result = T::SafeDownCast(this->Node_->GetScene()->AddNewNodeByClass(className));
      this->Node_->SetNthNodeReferenceID(role, n, result->GetID());
    }
    result->SetName((TitleOf(this->Node_) + " - " + what).c_str()); // also a file's name
    return result;
  }

  vtkMRMLScalarVolumeNode* ShowMap(
    const char* role, const std::string& what, vtkImageData* image, const rcn_geometry& geometry, double most, int n = 0)
  {
    auto* const volume = this->Result<vtkMRMLScalarVolumeNode>(role, "vtkMRMLScalarVolumeNode", what, n);
    vtkNew<vtkMatrix4x4> ijkToRas;
    IjkToRas(ijkToRas, geometry);
    volume->SetIJKToRASMatrix(ijkToRas);
    volume->SetAndObserveImageData(image);
    this->Place(volume);
    volume->CreateDefaultDisplayNodes();
    if (auto* const display = vtkMRMLScalarVolumeDisplayNode::SafeDownCast(volume->GetDisplayNode()))
    {
      display->SetAndObserveColorNodeID(ConsensusColors(volume->GetScene())->GetID());
      display->SetAutoWindowLevel(0);
      display->SetWindowLevelMinMax(0, most);
      display->SetInterpolate(most > 1 ? 0 : 1); // there is no half rater
      // What nobody marked lets the image through.
      display->SetThreshold(0.001 * most, most);
      display->SetApplyThreshold(1);
      // Without the Colors module there are no legends.
      if (vtkSmartPointer<vtkMRMLNode>::Take(volume->GetScene()->CreateNodeByClass("vtkMRMLColorLegendDisplayNode")))
      {
        if (auto* const legend = vtkSlicerColorLogic::AddDefaultColorLegendDisplayNode(display))
        {
          // One of an earlier run may have been for something else.
          legend->SetTitleText(what);
          std::string format = legend->GetDefaultNumericLabelFormat(); // "%.1f", or newer "{:.1f}"
          const size_t digits = format.find(".1");
          if (digits != std::string::npos)
          {
            format[digits + 1] = most > 1 ? '0' : '2'; // numbers of raters, or shares
          }
          legend->SetLabelFormat(format);
          legend->SetNumberOfLabels(most > 1 && most <= 12 ? static_cast<int>(most) + 1 : 5);
        }
      }
    }
    return volume;
  }

  /// A segment, replaced when there is one of that id.
  void ShowMask(const std::string& id, const std::string& what, const Volume& mask, const uint8_t rgb[3])
  {
    auto* const segmentation =
      this->Result<vtkMRMLSegmentationNode>(Node::GetMaskRole(), "vtkMRMLSegmentationNode", "consensus");
    ShowOutlines(segmentation);
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

  /// A segment for each "at least k"; those of an earlier run that this one does not make go.
  void ShowLevels(const std::string& prefix, const std::string& whose, const std::vector<Volume>& masks)
  {
    const std::string count = std::to_string(masks.size());
    for (size_t k = 1; k <= masks.size(); ++k)
    {
      uint8_t rgb[3];
      rcn_color_share(rgb, static_cast<double>(k) / static_cast<double>(masks.size()));
      this->ShowMask(prefix + std::to_string(k), "At least " + std::to_string(k) + " of " + count + whose, masks[k - 1], rgb);
    }
    auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(this->Node_->GetNodeReference(Node::GetMaskRole()));
    for (size_t n = masks.size() + 1; segmentation && n <= RCN_MAX_RATERS; ++n)
    {
      Drop(segmentation, prefix + std::to_string(n));
    }
  }

  /// Nodes of a role from number `from` on, of an earlier run.
  void DropNodes(const char* role, int from)
  {
    for (int n = this->Node_->GetNumberOfNodeReferences(role) - 1; n >= from; --n)
    {
      if (vtkMRMLNode* const left = this->Node_->GetNthNodeReference(role, n))
      {
        vtkMRMLScene* const scene = this->Node_->GetScene();
        vtkMRMLSubjectHierarchyNode* const hierarchy = vtkMRMLSubjectHierarchyNode::GetSubjectHierarchyNode(scene);
        const vtkIdType item = hierarchy ? hierarchy->GetItemByDataNode(left) : 0;
        if (item)
        {
          hierarchy->RemoveItem(item, false); // outside the application nobody does
        }
        scene->RemoveNode(left);
      }
      if (this->Node_->GetNumberOfNodeReferences(role) > n)
      {
        this->Node_->RemoveNthNodeReferenceID(role, n);
      }
    }
  }

  vtkMRMLTableNode* ShowTable(
    const char* role, const std::string& what, const std::vector<vtkSmartPointer<vtkAbstractArray>>& columns, int n = 0)
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

private:
  Node* Node_;
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
  return std::isnan(value) ? "not defined" : CsvNumber(value);
}

/// A row for each rater.
void ShowRaters(
  Publisher& publisher, const AgreementReport& report, const std::vector<std::string>& raters, const Extent& extent)
{
  const rcn_agreement& figures = *report.Figures;
  std::vector<vtkSmartPointer<vtkAbstractArray>> columns{ TextColumn("Rater", raters) };
  std::vector<std::string> extents;
  for (int r = 0; r < figures.raters; ++r)
  {
    const rcn_rater_agreement& rater = figures.rater[r];
    extents.push_back(Words(rater.present ? static_cast<double>(rater.voxels) * extent.PerVoxel : NAN));
  }
  columns.push_back(TextColumn(extent.Heading, extents));
  for (const auto& figure : RaterFigures())
  {
    std::vector<std::string> cells;
    for (int r = 0; r < figures.raters; ++r)
    {
      cells.push_back(Words(figure.Of(figures.rater[r])));
    }
    columns.push_back(TextColumn(figure.Name, cells));
  }
  for (const auto& figure : PairFigures())
  {
    const bool shown = figure.Key == "dice" || (figure.Key == "hausdorff95_mm" && report.HasSurfaces);
    for (int other = 0; other < figures.raters && shown; ++other)
    {
      std::vector<std::string> cells;
      for (int r = 0; r < figures.raters; ++r)
      {
        cells.push_back(Words(figure.Of(figures.pair[r * figures.raters + other])));
      }
      columns.push_back(TextColumn(figure.Heading(extent.Length) + " with " + raters[static_cast<size_t>(other)], cells));
    }
  }
  publisher.ShowTable(Node::GetAgreementRole(), "agreement of raters", columns);
}

/// All raters together.
void ShowAgreement(Publisher& publisher, const rcn_agreement& figures, const Extent& extent)
{
  const std::string unit = extent.Unit.substr(1);
  const std::pair<std::string, double> summary[] = { { "Mean Dice of all pairs", figures.mean_dice },
    { "Fleiss kappa where anybody marked", figures.on_union.fleiss_kappa },
    { "Fleiss kappa, whole image", figures.whole.fleiss_kappa },
    { "Krippendorff alpha, whole image", figures.whole.krippendorff_alpha },
    { "Gwet AC1, whole image", figures.whole.gwet_ac1 },
    { "Marked by anybody (" + unit + ")", static_cast<double>(figures.union_voxels) * extent.PerVoxel },
    { "Marked by the majority (" + unit + ")", static_cast<double>(figures.majority_voxels) * extent.PerVoxel },
    { "Marked by all (" + unit + ")", static_cast<double>(figures.intersection_voxels) * extent.PerVoxel },
    { "Disputed (" + unit + ")", static_cast<double>(figures.disputed_voxels) * extent.PerVoxel } };
  std::vector<std::string> names, values;
  for (const auto& one : summary)
  {
    names.push_back(one.first);
    values.push_back(Words(one.second));
  }
  names.push_back("Each rater's figures");
  values.push_back(AgainstOthersText());
  if (!MajorityRemark(figures.present_count).empty())
  {
    names.push_back("Majority");
    values.push_back(MajorityRemark(figures.present_count));
  }
  publisher.ShowTable(
    Node::GetAgreementRole(), "agreement in one page", { TextColumn("What", names), TextColumn("Value", values) }, 1);
}

void ShowDisputes(Publisher& publisher, const AgreementReport& report, const std::vector<std::string>& raters,
  const rcn_geometry& geometry, const Extent& extent)
{
  std::vector<double> volume, voxels, position[3];
  std::vector<std::string> by, number;
  for (const rcn_dispute& region : report.Regions)
  {
    const double at[3] = { static_cast<double>(region.at[0]), static_cast<double>(region.at[1]),
      static_cast<double>(region.at[2]) };
    double world[3];
    rcn_geometry_to_world(world, &geometry, at);
    ToRas(world, world);
    for (int a = 0; a < 3; ++a)
    {
      position[a].push_back(world[a]);
    }
    number.push_back(std::to_string(number.size() + 1));
    volume.push_back(static_cast<double>(region.voxels) * extent.PerVoxel);
    voxels.push_back(static_cast<double>(region.voxels));
    by.push_back(JoinNames(NamesOf(region.marked_by, raters)));
  }
  publisher.ShowTable(Node::GetDisputesRole(), "disputed regions, largest first",
    { TextColumn("Region", number), NumberColumn(extent.Heading, volume), NumberColumn("Voxels", voxels),
      NumberColumn("R", position[0]), NumberColumn("A", position[1]), NumberColumn("S", position[2]),
      TextColumn("Marked by", by) });
}

} // namespace

void PublishAgreement(
  Node* node, const AgreementReport& report, const std::vector<std::string>& raters, const rcn_geometry& geometry)
{
  Publisher publisher(node);
  const Extent extent(geometry);
  ShowRaters(publisher, report, raters, extent);
  ShowAgreement(publisher, *report.Figures, extent);
  ShowDisputes(publisher, report, raters, geometry, extent);
}

void PublishFusion(
  Node* node, const FusionReport& report, const std::string& method, int raters, const std::vector<Volume>& masks)
{
  Publisher publisher(node);
  publisher.ShowMap(Node::GetHeatmapRole(), "consensus (" + method + ")", VtkFromVolume(report.Map), report.Map.Geometry(),
    report.MapContent == Content::Levels ? raters : 1.0);
  if (!masks.empty())
  {
    publisher.ShowLevels("RaterConsensus_level_", "", masks);
  }
}

namespace
{

/// Level volumes belong into one folder: that of an earlier run, wherever it was moved, or a new one. An empty one goes.
void PutIntoFolder(Node* node, const std::vector<vtkMRMLScalarVolumeNode*>& volumes)
{
  vtkMRMLSubjectHierarchyNode* const hierarchy = vtkMRMLSubjectHierarchyNode::GetSubjectHierarchyNode(node->GetScene());
  if (!hierarchy)
  {
    return;
  }
  const std::string name = NameOf(node) + ": levels";
  const vtkIdType top = hierarchy->GetSceneItemID();
  vtkIdType folder = hierarchy->GetItemChildWithName(top, name, true);
  if (folder && volumes.empty() && hierarchy->GetNumberOfItemChildren(folder) == 0)
  {
    hierarchy->RemoveItem(folder);
  }
  for (vtkMRMLScalarVolumeNode* const volume : volumes)
  {
    vtkIdType item = hierarchy->GetItemByDataNode(volume);
    if (!item) // outside the application nobody makes items
    {
      item = hierarchy->CreateItem(top, volume);
    }
    if (!folder)
    {
      folder = hierarchy->CreateFolderItem(top, name);
    }
    hierarchy->SetItemParent(item, folder);
  }
}

/// What raters would measure: the whole map with its intervals, "at least t raters", and each connected component.
void ShowVolumes(Publisher& publisher, const PredictedVolumes& volumes)
{
  std::vector<std::string> part = { "expected" }, highest(1), reaches(1);
  std::vector<double> volume = { volumes.Expected };
  for (int t = 1; t <= volumes.Raters; ++t)
  {
    part.push_back(AtLeastInWords(t, volumes.Raters));
    volume.push_back(volumes.AtLeast[static_cast<size_t>(t) - 1]);
    highest.emplace_back();
    reaches.emplace_back();
  }
  for (size_t i = 0; i < volumes.Components.size(); ++i)
  {
    part.push_back("component " + std::to_string(i + 1));
    volume.push_back(volumes.Components[i].Expected);
    highest.push_back(CsvNumber(volumes.Components[i].Highest));
    reaches.push_back(volumes.Components[i].Reaches());
  }
  std::vector<vtkSmartPointer<vtkAbstractArray>> columns = { TextColumn("Part", part),
    NumberColumn(volumes.Name + " (" + volumes.Unit + ")", volume) };
  for (const PredictedInterval& interval : volumes.Intervals) // text: cells stay empty where there is none
  {
    const std::string level = " (" + PercentText(interval.Level) + ")";
    std::vector<std::string> low(part.size()), high(part.size());
    low.front() = CsvNumber(interval.Low);
    high.front() = CsvNumber(interval.High);
    columns.push_back(TextColumn("Low" + level, low));
    columns.push_back(TextColumn("High" + level, high));
  }
  columns.push_back(TextColumn("Highest share of raters", highest));
  columns.push_back(TextColumn("Reaches", reaches));
  publisher.ShowTable(Node::GetVolumesRole(), "volumes of the prediction", columns);
}

} // namespace

KeptLevels PublishPrediction(Node* node, const PredictionNodes& prediction)
{
  Publisher publisher(node);
  const Prediction& maps = prediction.Maps;
  const rcn_geometry& geometry = maps.Probability.Geometry();
  vtkMRMLScalarVolumeNode* const probability = publisher.ShowMap(
    Node::GetProbabilityRole(), "probability (" + maps.Readout + ")", VtkFromVolume(maps.Probability), geometry, 1);
  SetProvenance(probability, prediction.Made);
  const std::string raters = std::to_string(std::max<size_t>(prediction.Levels.size(), 1) - 1);
  std::vector<vtkMRMLScalarVolumeNode*> volumes;
  for (size_t k = 0; k < prediction.Levels.size(); ++k)
  {
    volumes.push_back(publisher.ShowMap(Node::GetLevelRole(), "exactly " + std::to_string(k) + " of " + raters + " raters",
      prediction.Levels[k], geometry, 1, static_cast<int>(k)));
  }
  publisher.DropNodes(Node::GetLevelRole(), static_cast<int>(volumes.size()));
  PutIntoFolder(node, volumes);
  publisher.ShowLevels("RaterConsensus_model_level_", ", model", prediction.LevelMasks);
  uint8_t rgb[3];
  rcn_color_share(rgb, 1);
  publisher.ShowMask("RaterConsensus_prediction", "Model: " + maps.Readout, maps.Mask, rgb);
  ShowVolumes(publisher, maps.Volumes);
  KeptLevels kept;
  kept.Levels = maps.Levels;
  for (vtkMRMLScalarVolumeNode* const volume : volumes)
  {
    kept.Times.push_back(TimeOf(volume));
  }
  return kept;
}

namespace
{

/// The axes without a curve.
vtkMRMLPlotChartNode* EmptyChart(Publisher& publisher, const std::string& title)
{
  auto* const chart =
    publisher.Result<vtkMRMLPlotChartNode>(Node::GetChartRole(), "vtkMRMLPlotChartNode", "predicted and observed");
  chart->RemoveAllPlotSeriesNodeIDs();
  chart->SetTitle((title + ": predicted and observed").c_str());
  chart->SetTitleFontSize(16); // a plot view is small
  chart->SetXAxisTitle("Predicted probability");
  chart->SetYAxisTitle("Share of raters who marked");
  chart->SetXAxisRangeAuto(false);
  chart->SetXAxisRange(0, 1);
  chart->SetYAxisRangeAuto(false);
  chart->SetYAxisRange(0, 1.2); // the legend lies in the upper right corner, where the curve ends
  chart->SetLegendVisibility(true);
  return chart;
}

/// The bins of a report that are not empty, as a table.
vtkMRMLTableNode* ShowBins(Publisher& publisher, const EvaluationReport& report, const std::string& name, int number)
{
  std::vector<double> predicted, observed, lower, upper, pairs;
  for (const rcn_calib_bin& bin : report.Bins)
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
  vtkMRMLTableNode* const table = publisher.ShowTable(Node::GetReliabilityRole(), "reliability, " + name,
    { NumberColumn("Predicted", predicted), NumberColumn("Observed", observed), NumberColumn("From", lower),
      NumberColumn("To", upper), NumberColumn("Voxel-rater pairs", pairs) },
    number);
  table->SetUseFirstColumnAsRowHeader(false);
  return table;
}

void ShowFigures(Publisher& publisher, const EvaluationReport& report, const EvaluationReport* before)
{
  std::vector<std::string> names;
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    names.push_back(rcn_figure_name(static_cast<rcn_figure>(f)));
  }
  names.insert(names.end(), { "auc", "auc_pairs" });
  const auto values = [](const EvaluationReport& one) {
    std::vector<std::string> cells;
    for (const double figure : one.Figures)
    {
      cells.push_back(Words(figure));
    }
    cells.push_back(Words(one.Auc.reference));
    cells.push_back(Words(one.Auc.pairs));
    return cells;
  };
  std::vector<vtkSmartPointer<vtkAbstractArray>> columns{ TextColumn("Figure", names), TextColumn("Value", values(report)) };
  if (before)
  {
    columns.push_back(TextColumn("Before", values(*before)));
  }
  publisher.ShowTable(Node::GetFiguresRole(), "calibration figures", columns);
}

} // namespace

void PublishReliability(Node* node, const EvaluationReport& report, const EvaluationReport* before)
{
  Publisher publisher(node);
  vtkMRMLPlotChartNode* const chart = EmptyChart(publisher, TitleOf(node));
  int n = 0;
  const auto addSeries = [&](vtkMRMLTableNode* table, const std::string& name, double r, double g, double b, bool line) {
    auto* const series = publisher.Result<vtkMRMLPlotSeriesNode>(Node::GetSeriesRole(), "vtkMRMLPlotSeriesNode", name, n++);
    series->SetName(name.c_str());
    series->SetAndObserveTableNodeID(table->GetID());
    series->SetXColumnName("Predicted");
    series->SetYColumnName("Observed");
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
  addSeries(ideal, "Perfect calibration", 0.5, 0.5, 0.5, true);
  const std::string now = before ? "After" : "Observed";
  addSeries(ShowBins(publisher, report, now, 1), now, 0, 0.45, 0.7, false);
  if (before)
  {
    addSeries(ShowBins(publisher, *before, "Before", 2), "Before", 0.6, 0.6, 0.6, false);
  }
  // A series of an earlier run that this one does not have leaves the scene with its table.
  publisher.DropNodes(Node::GetSeriesRole(), n);
  publisher.DropNodes(Node::GetReliabilityRole(), n);
  ShowFigures(publisher, report, before);
}

} // namespace mrml
} // namespace rcn
