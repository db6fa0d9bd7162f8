// SPDX-License-Identifier: Apache-2.0
#include "rcnMrmlResults.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <vtkDoubleArray.h>
#include <vtkImageData.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkStringArray.h>
#include <vtkTable.h>
#include <vtkVariant.h>

#include <vtkMRMLColorLegendDisplayNode.h>
#include <vtkMRMLColorTableNode.h>
#include <vtkMRMLDisplayableNode.h>
#include <vtkMRMLMarkupsDisplayNode.h>
#include <vtkMRMLMarkupsROINode.h>
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
#include "rcnLayers.h"
#include "rcnMrmlText.h"
#include "rcnTables.h"
#include "rcnVtkImage.h"
#include "vtkMRMLRaterConsensusNode.h"

namespace rcn
{
namespace mrml
{

namespace
{

// Finds the colors again, also in a scene that was saved and loaded: its name may have been changed by then.
const char* const PaletteAttribute = "RaterConsensus.Palette";

// Ids of segments, before the number of raters.
const char* const ConsensusLevel = "RaterConsensus_level_";
const char* const ModelLevel = "RaterConsensus_model_level_";

} // namespace

// From the table of patterns: one look-up per voxel and level, no second look at the masks.
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
  colors->SetDescription(
    vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Share of raters, or probability: dark green is few, yellow is all").c_str());
  // Fine enough for a smooth bar; the names are what a legend or a probe shows.
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
  // A copy: a person may edit the segment, which must not write into our mask.
  image->vtkImageData::DeepCopy(VtkFromVolume(mask));
  vtkNew<vtkMatrix4x4> ijkToRas;
  IjkToRas(ijkToRas, mask.Geometry());
  image->SetImageToWorldMatrix(ijkToRas);
  vtkNew<vtkSegment> segment;
  segment->SetName(name.c_str());
  segment->SetColor(rgb[0] / 255.0, rgb[1] / 255.0, rgb[2] / 255.0);
  segment->AddRepresentation(vtkSegmentationConverter::GetSegmentationBinaryLabelmapRepresentationName(), image);
  // "Tissue", the most general entry that there is: what is outlined only the raters know.
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
    // Filled, it would hide the image and the map.
    display->SetVisibility2DFill(false);
  }
}

namespace
{

/// Newer versions of Slicer have another name for it and warn about the old one.
// The first of the two that compiles is taken: 0 is an int before it is a long.
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

  /// The node of that role and number: a second run writes over the first, so that nothing piles up and what a person has set
  /// about it (display, place in a view) stays.
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

  /// `legend`: what the colors mean, in words.
  vtkMRMLScalarVolumeNode* ShowMap(const char* role, const std::string& what, const std::string& legend, vtkImageData* image,
    const rcn_geometry& geometry, double most, int n = 0)
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
      // From nothing to all raters, or 0 to 1, whatever this map happens to reach: the same color means the same in all cases.
      display->SetAutoWindowLevel(0);
      display->SetWindowLevelMinMax(0, most);
      display->SetInterpolate(most > 1 ? 0 : 1); // there is no half rater
      // What is below is transparent; ShowFromThreshold() says from where.
      display->SetApplyThreshold(1);
      ShowLegend(display, legend, most);
    }
    return volume;
  }

  static void ShowLegend(vtkMRMLScalarVolumeDisplayNode* display, const std::string& words, double most)
  {
    // Without the Colors module there are no legends.
    if (!vtkSmartPointer<vtkMRMLNode>::Take(display->GetScene()->CreateNodeByClass("vtkMRMLColorLegendDisplayNode")))
    {
      return;
    }
    auto* const legend = vtkSlicerColorLogic::AddDefaultColorLegendDisplayNode(display);
    if (!legend)
    {
      return;
    }
    if (legend->GetTitleText() != words) // a new one, or one for something else; a person may have moved an old one
    {
      // Small, in the lower right corner, where axial and sagittal images have least to show.
      // Slicer makes all its words as large as this leaves room for.
      legend->SetSize(0.09, 0.21);
      legend->SetPosition(0.98, 0.03);
    }
    legend->SetTitleText(words);
    std::string format = legend->GetDefaultNumericLabelFormat(); // "%.1f", or newer "{:.1f}"
    const size_t digits = format.find(".1");
    if (digits != std::string::npos)
    {
      format[digits + 1] = most > 1 ? '0' : '2'; // numbers of raters, or shares
    }
    legend->SetLabelFormat(format);
    legend->SetNumberOfLabels(most > 1 && most <= 12 ? static_cast<int>(most) + 1 : 5);
  }

  /// A segment, replaced when there is one of that id.
  void ShowMask(const std::string& id, const std::string& what, const Volume& mask, const uint8_t rgb[3])
  {
    auto* const segmentation =
      this->Result<vtkMRMLSegmentationNode>(Node::GetMaskRole(), "vtkMRMLSegmentationNode", "consensus");
    ShowOutlines(segmentation);
    // Whoever edits or exports it gets the grid of the image.
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
      const std::string name =
        Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "At least %1 of %2"), std::to_string(k), count) + whose;
      this->ShowMask(prefix + std::to_string(k), name, masks[k - 1], rgb);
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
        auto* const displayable = vtkMRMLDisplayableNode::SafeDownCast(left);
        while (displayable && displayable->GetDisplayNode())
        {
          scene->RemoveNode(displayable->GetDisplayNode());
        }
        scene->RemoveNode(left);
      }
      // Removing the node may have removed the reference already.
      if (this->Node_->GetNumberOfNodeReferences(role) > n)
      {
        this->Node_->RemoveNthNodeReferenceID(role, n);
      }
    }
  }

  // Numbers as numbers, so that the table can be sorted and plotted; figures for people are texts.
  vtkMRMLTableNode* ShowTable(const char* role, const std::string& what, const Table& cells, int n = 0)
  {
    auto* const node = this->Result<vtkMRMLTableNode>(role, "vtkMRMLTableNode", what, n);
    vtkNew<vtkTable> table;
    for (const TableColumn& column : cells.Columns)
    {
      vtkSmartPointer<vtkAbstractArray> array;
      if (column.IsNumber)
      {
        array = vtkSmartPointer<vtkDoubleArray>::New();
      }
      else
      {
        array = vtkSmartPointer<vtkStringArray>::New();
      }
      array->SetName(column.Name.c_str());
      array->SetNumberOfTuples(static_cast<vtkIdType>(column.Cells.size()));
      for (size_t row = 0; row < column.Cells.size(); ++row)
      {
        const std::string& cell = column.Cells[row];
        array->SetVariantValue(static_cast<vtkIdType>(row),
          column.IsNumber ? vtkVariant(cells.Number(static_cast<int>(row), column.Name)) : vtkVariant(cell));
      }
      table->AddColumn(array);
    }
    ShowColumnNames(node, 0);
    node->SetUseFirstColumnAsRowHeader(!cells.Columns.empty() && !cells.Columns.front().IsNumber);
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

/// As it is in the scene; without columns when it is not there.
Table StoredTable(Node* node, const char* role, int n = 0)
{
  auto* const found = vtkMRMLTableNode::SafeDownCast(node ? node->GetNthNodeReference(role, n) : nullptr);
  vtkTable* const from = found ? found->GetTable() : nullptr;
  Table table;
  for (vtkIdType c = 0; from && c < from->GetNumberOfColumns(); ++c)
  {
    vtkAbstractArray* const array = from->GetColumn(c);
    TableColumn column;
    column.Name = array->GetName() ? array->GetName() : "";
    column.IsNumber = vtkDoubleArray::SafeDownCast(array) != nullptr;
    std::vector<double> numbers;
    for (vtkIdType row = 0; row < array->GetNumberOfTuples(); ++row)
    {
      const vtkVariant cell = array->GetVariantValue(row);
      numbers.push_back(column.IsNumber ? cell.ToDouble() : 0);
      column.Cells.push_back(column.IsNumber ? "" : cell.ToString());
    }
    column.IsNumber ? table.AddNumbers(column.Name, numbers) : table.AddText(column.Name, column.Cells);
  }
  return table;
}

} // namespace

void PublishAgreement(Node* node, const AgreementReport& report, const std::vector<std::string>& raters)
{
  Publisher publisher(node);
  publisher.ShowTable(Node::GetAgreementRole(), "agreement of raters", RaterTable(report, raters));
  publisher.ShowTable(Node::GetAgreementRole(), "agreement in one page", SummaryTable(report), 1);
  publisher.ShowTable(Node::GetDisputesRole(), "disputed regions, largest first", DisputeTable(report, raters));
  PutIntoFolder(node);
}

// A scene that was saved and loaded holds tables, not our structs: results are read back from them.
std::shared_ptr<const AgreementReport> StoredAgreement(Node* node)
{
  vtkMRMLScalarVolumeNode* const image = node ? ImageOf(node) : nullptr;
  if (!image || !image->GetImageData())
  {
    return nullptr;
  }
  const AgreementReport report = AgreementFromTables(StoredTable(node, Node::GetAgreementRole()),
    StoredTable(node, Node::GetAgreementRole(), 1), StoredTable(node, Node::GetDisputesRole()), VolumeOf(image).Geometry());
  return report.Figures ? std::make_shared<const AgreementReport>(report) : nullptr;
}

namespace
{

/// What the colors of a consensus mean.
std::string LegendOf(rcn_method method, Content content, int raters)
{
  return content == Content::Levels
    ? Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Raters who agree (of %1)"), std::to_string(raters))
    : method == RCN_SOFT || method == RCN_SOFT_GAUSSIAN || method == RCN_SVLS
    ? vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Share of raters")
    : vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Probability");
}

} // namespace

void PublishFusion(Node* node, const FusionReport& report, rcn_method method, int raters, const std::vector<Volume>& masks)
{
  Publisher publisher(node);
  publisher.ShowMap(Node::GetHeatmapRole(), std::string("consensus (") + rcn_method_name(method) + ")",
    LegendOf(method, report.MapContent, raters), VtkFromVolume(report.Map), report.Map.Geometry(),
    report.MapContent == Content::Levels ? raters : 1.0);
  if (!masks.empty())
  {
    publisher.ShowLevels(ConsensusLevel, "", masks);
  }
  ShowFromThreshold(node);
  ShowLevelsIn3D(node);
  PutIntoFolder(node);
}

void ShowFromThreshold(Node* node)
{
  for (const char* const role : { Node::GetHeatmapRole(), Node::GetProbabilityRole(), Node::GetLevelRole() })
  {
    for (int n = 0; n < node->GetNumberOfNodeReferences(role); ++n)
    {
      auto* const volume = vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNthNodeReference(role, n));
      auto* const display =
        vtkMRMLScalarVolumeDisplayNode::SafeDownCast(volume ? volume->GetScalarVolumeDisplayNode() : nullptr);
      if (display)
      {
        const double most = display->GetWindowLevelMax();
        display->SetThreshold(std::max(node->GetTransparentBelow(), 0.001) * most, most); // 0 is never shown
      }
    }
  }
}

void ShowLevelsIn3D(Node* node)
{
  auto* const masks = vtkMRMLSegmentationNode::SafeDownCast(node->GetNodeReference(Node::GetMaskRole()));
  auto* const display = vtkMRMLSegmentationDisplayNode::SafeDownCast(masks ? masks->GetDisplayNode() : nullptr);
  if (!display)
  {
    return;
  }
  display->SetVisibility3D(node->GetLevelsIn3D());
  if (!node->GetLevelsIn3D())
  {
    return;
  }
  // Made once; Slicer keeps it in step with the masks.
  masks->CreateClosedSurfaceRepresentation();
  // One event for all segments instead of one for each.
  const MRMLNodeModifyBlocker blocker(display);
  std::vector<std::string> ids;
  masks->GetSegmentation()->GetSegmentIDs(ids);
  // The levels of what is shown in the slices, too: raters and model over one another would tell nobody anything.
  const bool model = node->GetShownRole() == Node::GetProbabilityRole();
  for (const std::string& id : ids)
  {
    const std::string prefix = model ? ModelLevel : ConsensusLevel;
    const bool shown = id.compare(0, prefix.size(), prefix) == 0;
    display->SetSegmentVisibility3D(id, shown);
    if (shown)
    {
      const auto count = std::count_if(
        ids.begin(), ids.end(), [&prefix](const std::string& one) { return one.compare(0, prefix.size(), prefix) == 0; });
      display->SetSegmentOpacity3D(id, LevelOpacity(std::atoi(id.c_str() + prefix.size()), static_cast<int>(count)));
    }
  }
}

namespace
{

const char* const FolderAttribute = "RaterConsensus.Case";

/// Image, raters and results, those that are there.
std::vector<vtkMRMLNode*> EverythingOf(Node* node)
{
  std::vector<vtkMRMLNode*> all{ ImageOf(node) };
  for (int n = 0; n < node->GetNumberOfRaters(); ++n)
  {
    all.push_back(node->GetNthRaterNode(n));
  }
  for (const char* const role :
    { Node::GetHeatmapRole(), Node::GetProbabilityRole(), Node::GetMaskRole(), Node::GetLevelRole(), Node::GetVolumesRole(),
      Node::GetAgreementRole(), Node::GetDisputesRole(), Node::GetFiguresRole(), Node::GetReliabilityRole(),
      Node::GetCurvesRole(), Node::GetSeriesRole(), Node::GetChartRole(), Node::GetVisitedRole() })
  {
    for (int n = 0; n < node->GetNumberOfNodeReferences(role); ++n)
    {
      all.push_back(node->GetNthNodeReference(role, n));
    }
  }
  all.erase(std::remove(all.begin(), all.end(), nullptr), all.end());
  return all;
}

} // namespace

void PutIntoFolder(Node* node)
{
  vtkMRMLSubjectHierarchyNode* const hierarchy = vtkMRMLSubjectHierarchyNode::GetSubjectHierarchyNode(node->GetScene());
  if (!hierarchy)
  {
    return;
  }
  const vtkIdType top = hierarchy->GetSceneItemID(), none = vtkMRMLSubjectHierarchyNode::INVALID_ITEM_ID;
  // The folder of this case, if one of its nodes lies in it already: found by its attribute, because a person may have renamed
  // it.
  vtkIdType folder = none;
  const std::vector<vtkMRMLNode*> all = EverythingOf(node);
  for (vtkMRMLNode* const one : all)
  {
    const vtkIdType item = hierarchy->GetItemByDataNode(one);
    const vtkIdType parent = item == none ? none : hierarchy->GetItemParent(item);
    // An image that two cases share lies with the first of them.
    if (parent != none && parent != top && hierarchy->HasItemAttribute(parent, FolderAttribute) &&
      hierarchy->GetItemAttribute(parent, FolderAttribute) == node->GetID())
    {
      folder = parent;
    }
  }
  if (folder == none)
  {
    folder = hierarchy->CreateFolderItem(top, NameOf(node));
    hierarchy->SetItemAttribute(folder, FolderAttribute, node->GetID());
  }
  hierarchy->SetItemName(folder, NameOf(node));
  for (vtkMRMLNode* const one : all)
  {
    vtkIdType item = hierarchy->GetItemByDataNode(one);
    if (item == none) // outside the application nobody makes items
    {
      item = hierarchy->CreateItem(top, one);
    }
    // What a person has put elsewhere stays there.
    if (hierarchy->GetItemParent(item) == top)
    {
      hierarchy->SetItemParent(item, folder);
    }
  }
}

KeptLevels PublishPrediction(Node* node, const PredictionNodes& prediction)
{
  Publisher publisher(node);
  const Prediction& maps = prediction.Maps;
  const rcn_geometry& geometry = maps.Probability.Geometry();
  vtkMRMLScalarVolumeNode* const probability = publisher.ShowMap(Node::GetProbabilityRole(),
    "probability (" + (prediction.Structure.empty() ? "" : prediction.Structure + ", ") + maps.Readout + ")",
    vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Probability"), VtkFromVolume(maps.Probability), geometry, 1);
  SetProvenance(probability, prediction.Made);
  const std::string raters = std::to_string(std::max<size_t>(prediction.Levels.size(), 1) - 1);
  std::vector<vtkMRMLScalarVolumeNode*> volumes;
  for (size_t k = 0; k < prediction.Levels.size(); ++k)
  {
    const std::string words =
      Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "exactly %1 of %2 raters"), std::to_string(k), raters);
    const std::string legend = Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Probability of %1"), words);
    volumes.push_back(
      publisher.ShowMap(Node::GetLevelRole(), words, legend, prediction.Levels[k], geometry, 1, static_cast<int>(k)));
  }
  // Those of an earlier model with more raters.
  publisher.DropNodes(Node::GetLevelRole(), static_cast<int>(volumes.size()));
  publisher.ShowLevels(ModelLevel, ", " + vtkMRMLTr("vtkSlicerRaterConsensusLogic", "model"), prediction.LevelMasks);
  uint8_t rgb[3];
  rcn_color_share(rgb, 1);
  publisher.ShowMask(
    "RaterConsensus_prediction", Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Model: %1"), maps.Readout), maps.Mask, rgb);
  publisher.ShowTable(Node::GetVolumesRole(), "volumes of the prediction", VolumesTable(maps.Volumes));
  ShowFromThreshold(node);
  ShowLevelsIn3D(node);
  PutIntoFolder(node);
  KeptLevels kept;
  kept.Levels = maps.Levels;
  for (vtkMRMLScalarVolumeNode* const volume : volumes)
  {
    // When each volume was last changed: as long as that stays, the levels in memory are what the scene shows.
    kept.Times.push_back(TimeOf(volume));
  }
  return kept;
}

void MarkBox(Node* node, const double first[3], const double size[3])
{
  UnmarkBox(node);
  vtkMRMLScalarVolumeNode* const image = ImageOf(node);
  vtkMRMLScene* const scene = node->GetScene();
  if (!image || !(size[0] * size[1] * size[2] > 0) ||
    !vtkSmartPointer<vtkMRMLNode>::Take(scene->CreateNodeByClass("vtkMRMLMarkupsROINode")))
  {
    return;
  }
  auto* const box = vtkMRMLMarkupsROINode::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLMarkupsROINode", "Disputed region"));
  // A pointer for the moment, which belongs to no result.
  box->SetSaveWithScene(false);
  box->SetLocked(true);
  node->SetNodeReferenceID(Node::GetVisitedRole(), box->GetID());
  // Along the axes of the image; voxels reach half a voxel beyond their centers.
  vtkNew<vtkMatrix4x4> ijkToRas, axes;
  image->GetIJKToRASMatrix(ijkToRas);
  double center[4] = { 0, 0, 0, 1 }, sides[3];
  for (int a = 0; a < 3; ++a)
  {
    center[a] = first[a] + (size[a] - 1) / 2;
    const double spacing = image->GetSpacing()[a];
    sides[a] = size[a] * spacing;
    for (int row = 0; row < 3; ++row)
    {
      axes->SetElement(row, a, ijkToRas->GetElement(row, a) / spacing);
    }
  }
  ijkToRas->MultiplyPoint(center, center);
  for (int row = 0; row < 3; ++row)
  {
    axes->SetElement(row, 3, center[row]);
  }
  box->SetAndObserveObjectToNodeMatrix(axes);
  box->SetSize(sides);
  box->SetAndObserveTransformNodeID(image->GetTransformNodeID());
  box->CreateDefaultDisplayNodes();
  if (auto* const display = vtkMRMLMarkupsDisplayNode::SafeDownCast(box->GetDisplayNode()))
  {
    display->SetSaveWithScene(false);
    display->SetFillVisibility(false);
    display->SetHandlesInteractive(false);
    display->SetPropertiesLabelVisibility(false);
    display->SetSelectedColor(1, 0.55, 0);
  }
  PutIntoFolder(node);
}

void UnmarkBox(Node* node)
{
  if (node->GetScene() && node->GetNodeReference(Node::GetVisitedRole()))
  {
    Publisher(node).DropNodes(Node::GetVisitedRole(), 0);
  }
}

std::shared_ptr<const PredictedVolumes> StoredVolumes(Node* node)
{
  const PredictedVolumes volumes = VolumesFromTable(StoredTable(node, Node::GetVolumesRole()));
  return volumes.IsKnown() ? std::make_shared<const PredictedVolumes>(volumes) : nullptr;
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
  chart->SetXAxisTitle(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Predicted probability").c_str());
  chart->SetYAxisTitle(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Share of raters who marked").c_str());
  chart->SetXAxisRangeAuto(false);
  chart->SetXAxisRange(0, 1);
  chart->SetYAxisRangeAuto(false);
  chart->SetYAxisRange(0, 1.2); // the legend lies in the upper right corner, where the curve ends
  chart->SetLegendVisibility(true);
  return chart;
}

} // namespace

void PublishReliability(
  Node* node, const EvaluationReport& report, const EvaluationReport* before, const std::vector<std::string>& raters)
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
  Table ideal;
  ideal.AddNumbers("Predicted", { 0, 1 });
  ideal.AddNumbers("Observed", { 0, 1 });
  const auto showBins = [&](const EvaluationReport& one, const std::string& name, int number) {
    return publisher.ShowTable(Node::GetReliabilityRole(), "reliability, " + name, ReliabilityTable(one), number);
  };
  addSeries(publisher.ShowTable(Node::GetReliabilityRole(), "ideal reliability", ideal),
    vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Perfect calibration"), 0.5, 0.5, 0.5, true);
  const std::string now = before ? "After" : "Observed";
  addSeries(showBins(report, now, 1), now, 0, 0.45, 0.7, false);
  if (before)
  {
    addSeries(showBins(*before, "Before", 2), "Before", 0.6, 0.6, 0.6, false);
  }
  // A series of an earlier run that this one does not have leaves the scene with its table.
  publisher.DropNodes(Node::GetSeriesRole(), n);
  publisher.DropNodes(Node::GetReliabilityRole(), n);
  publisher.ShowTable(Node::GetFiguresRole(), "calibration figures", FiguresTable(report, before));
  publisher.ShowTable(Node::GetCurvesRole(), "reliability in detail", CurvesTable(report, before, raters));
  PutIntoFolder(node);
}

std::shared_ptr<const EvaluationReport> StoredEvaluation(Node* node, bool before)
{
  EvaluationReport report;
  return EvaluationFromTables(
           report, StoredTable(node, Node::GetFiguresRole()), StoredTable(node, Node::GetCurvesRole()), before)
    ? std::make_shared<const EvaluationReport>(report)
    : nullptr;
}

} // namespace mrml
} // namespace rcn
