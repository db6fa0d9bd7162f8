// SPDX-License-Identifier: Apache-2.0
#include "rcnMrmlViews.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <vtkMRMLDisplayableNode.h>
#include <vtkMRMLLayoutNode.h>
#include <vtkMRMLPlotViewNode.h>
#include <vtkMRMLScalarVolumeDisplayNode.h>
#include <vtkMRMLScalarVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationDisplayNode.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLSelectionNode.h>
#include <vtkMRMLSliceCompositeNode.h>
#include <vtkMRMLSliceNode.h>
#include <vtkMRMLUnitNode.h>
#include <vtkMatrix4x4.h>
#include <vtkSegment.h>
#include <vtkSegmentation.h>

#include "rcnLayers.h"
#include "rcnMrmlCase.h"
#include "rcnMrmlResults.h"
#include "vtkMRMLRaterConsensusNode.h"

namespace rcn
{
namespace mrml
{

namespace
{

const double MapOpacity = 0.6;

template <class T> std::vector<T*> NodesOf(vtkMRMLScene* scene, const char* className)
{
  std::vector<vtkMRMLNode*> nodes;
  scene->GetNodesByClass(className, nodes);
  std::vector<T*> found;
  for (vtkMRMLNode* const one : nodes)
  {
    if (T* const node = T::SafeDownCast(one))
    {
      found.push_back(node);
    }
  }
  return found;
}

std::vector<vtkMRMLSliceCompositeNode*> CompositesOf(vtkMRMLScene* scene)
{
  return NodesOf<vtkMRMLSliceCompositeNode>(scene, "vtkMRMLSliceCompositeNode");
}

vtkMRMLLayoutNode* LayoutOf(vtkMRMLScene* scene)
{
  return vtkMRMLLayoutNode::SafeDownCast(scene->GetFirstNodeByClass("vtkMRMLLayoutNode"));
}

std::string Text(const char* text)
{
  return text ? text : "";
}

vtkMRMLSliceNode* SliceOf(vtkMRMLScene* scene, const std::string& name)
{
  for (vtkMRMLSliceNode* const slice : NodesOf<vtkMRMLSliceNode>(scene, "vtkMRMLSliceNode"))
  {
    if (Text(slice->GetLayoutName()) == name)
    {
      return slice;
    }
  }
  return nullptr;
}

const char* IdOf(vtkMRMLNode* node)
{
  return node ? node->GetID() : nullptr;
}

/// Legends look for themselves whether their map is in a view only when a person changes the view.
void UpdateLegend(vtkMRMLNode* map)
{
  auto* const shown = vtkMRMLDisplayableNode::SafeDownCast(map);
  for (int n = 0; shown && n < shown->GetNumberOfDisplayNodes(); ++n)
  {
    if (vtkMRMLNode* const display = shown->GetNthDisplayNode(n))
    {
      display->Modified();
    }
  }
}

/// Everything of a case that a view can show, by node id.
struct Visible
{
  std::set<std::string> Images, Maps;
  std::set<vtkMRMLSegmentationNode*> Masks;

  void add(Node* node)
  {
    this->Images.insert(Text(node->GetImageNodeID()));
    for (const char* const role : { Node::GetHeatmapRole(), Node::GetProbabilityRole(), Node::GetLevelRole() })
    {
      for (int n = 0; n < node->GetNumberOfNodeReferences(role); ++n)
      {
        this->Maps.insert(Text(node->GetNthNodeReferenceID(role, n)));
      }
    }
    this->Masks.insert(vtkMRMLSegmentationNode::SafeDownCast(node->GetNodeReference(Node::GetMaskRole())));
    for (int n = 0; n < node->GetNumberOfRaters(); ++n)
    {
      this->Masks.insert(vtkMRMLSegmentationNode::SafeDownCast(node->GetNthRaterNode(n)));
    }
    this->Masks.erase(nullptr);
  }
};

/// The map of a case that is over its image: the one that was shown last, or the only one.
vtkMRMLNode* ShownMap(Node* node)
{
  vtkMRMLNode* const consensus = node->GetNodeReference(Node::GetHeatmapRole());
  vtkMRMLNode* const probability = node->GetNodeReference(Node::GetProbabilityRole());
  return node->GetShownRole() == Node::GetProbabilityRole() ? (probability ? probability : consensus)
                                                            : (consensus ? consensus : probability);
}

vtkMRMLSegmentationDisplayNode* DisplayOf(vtkMRMLSegmentationNode* segmentation)
{
  return vtkMRMLSegmentationDisplayNode::SafeDownCast(segmentation ? segmentation->GetDisplayNode() : nullptr);
}

Visible AllCases(vtkMRMLScene* scene)
{
  Visible all;
  for (Node* const one : NodesOf<Node>(scene, "vtkMRMLRaterConsensusNode"))
  {
    all.add(one);
  }
  return all;
}

/// `per`: how many of what the scene counts in (mm, mm², mm³) are one of what results are kept in.
void Follow(Units::Unit& unit, vtkMRMLUnitNode* node, double per)
{
  if (!node || !node->GetSuffix() || !*node->GetSuffix() || !(node->GetDisplayCoefficient() > 0))
  {
    return;
  }
  unit.Factor = node->GetDisplayCoefficient() * per;
  unit.Name = node->GetSuffix();
  if (unit.Name == "cm3")
  {
    unit.Name = "mL"; // the same, as clinicians call it
  }
  else if (unit.Name.back() == '2' || unit.Name.back() == '3')
  {
    unit.Name.replace(unit.Name.size() - 1, 1, unit.Name.back() == '2' ? "²" : "³");
  }
}

} // namespace

Units UnitsOf(vtkMRMLScene* scene)
{
  Units units;
  auto* const selection =
    vtkMRMLSelectionNode::SafeDownCast(scene ? scene->GetNodeByID("vtkMRMLSelectionNodeSingleton") : nullptr);
  if (selection)
  {
    Follow(units.Volume, selection->GetUnitNode("volume"), 1000);
    Follow(units.Area, selection->GetUnitNode("area"), 1);
    Follow(units.Length, selection->GetUnitNode("length"), 1);
  }
  return units;
}

bool Views::ShowLayers(vtkMRMLScene* scene, Node* node)
{
  const Visible all = AllCases(scene);
  const Layers chosen{ Text(node->GetImageNodeID()), Text(IdOf(ShownMap(node))) };
  bool changed = false;
  for (vtkMRMLSliceCompositeNode* const composite : CompositesOf(scene))
  {
    const Layers now{ Text(composite->GetBackgroundVolumeID()), Text(composite->GetForegroundVolumeID()) };
    const Layers next = LayersOfCase(now, chosen, all.Images, all.Maps);
    changed = changed || next.Image != now.Image;
    composite->SetBackgroundVolumeID(next.Image.empty() ? nullptr : next.Image.c_str());
    composite->SetForegroundVolumeID(next.Map.empty() ? nullptr : next.Map.c_str());
    if (now.Map.empty() && !next.Map.empty())
    {
      composite->SetForegroundOpacity(MapOpacity);
    }
  }
  for (const std::string& map : all.Maps)
  {
    UpdateLegend(scene->GetNodeByID(map));
  }
  return changed;
}

bool Views::ShowCase(vtkMRMLScene* scene, Node* node)
{
  if (!scene || !node || !node->GetImageNodeID())
  {
    return false;
  }
  Visible ours;
  ours.add(node);
  for (vtkMRMLSegmentationNode* const masks : AllCases(scene).Masks)
  {
    masks->SetDisplayVisibility(ours.Masks.count(masks) > 0);
  }
  const bool changed = ShowLayers(scene, node);
  if (this->IsSideBySide())
  {
    ShowBeside(scene, node);
  }
  return changed;
}

void Views::ShowMap(vtkMRMLScene* scene, Node* node, const char* role)
{
  if (!scene || !node || !node->GetImageNodeID() || !node->GetNodeReference(role))
  {
    return;
  }
  node->SetShownRole(role);
  ShowLevelsIn3D(node);
  ShowLayers(scene, node);
  if (this->IsSideBySide())
  {
    ShowBeside(scene, node);
  }
}

void Views::ShowRaters(Node* node, int first, int second)
{
  for (int n = 0; node && n < node->GetNumberOfRaters(); ++n)
  {
    vtkMRMLSegmentationDisplayNode* const display = DisplayOf(vtkMRMLSegmentationNode::SafeDownCast(node->GetNthRaterNode(n)));
    const std::string segment = node->GetNthRaterSegmentID(n);
    const bool shown = first < 0 || n == first || n == second;
    if (display && !segment.empty())
    {
      display->SetSegmentVisibility(segment, shown);
    }
    else if (display) // all of it is the rater's
    {
      display->SetAllSegmentsVisibility(shown);
    }
  }
}

namespace
{

/// What `visit` does with each segment of each rater who tells structures apart.
template <class TVisit> void ForEachStructureSegment(Node* node, const TVisit& visit)
{
  for (int n = 0; node && n < node->GetNumberOfRaters(); ++n)
  {
    vtkMRMLSegmentationNode* const segmentation = WholeSegmentation(node, n);
    vtkMRMLSegmentationDisplayNode* const display = DisplayOf(segmentation);
    for (const auto& segment : display ? SegmentsOf(segmentation) : std::vector<std::pair<std::string, std::string>>())
    {
      visit(segmentation->GetSegmentation()->GetSegment(segment.first), display, segment.first, segment.second);
    }
  }
}

} // namespace

std::vector<Views::StructureLook> Views::Structures(Node* node)
{
  std::vector<StructureLook> looks;
  for (const std::string& name : node ? StructuresOf(node) : std::vector<std::string>())
  {
    StructureLook look;
    look.Name = name;
    bool hasColor = false;
    ForEachStructureSegment(node,
      [&](vtkSegment* segment, vtkMRMLSegmentationDisplayNode* display, const std::string& id, const std::string& called) {
        if (called != name)
        {
          return;
        }
        if (!hasColor)
        {
          segment->GetColor(look.Rgb);
          hasColor = true;
        }
        look.Visible = look.Visible || display->GetSegmentVisibility(id);
      });
    looks.push_back(look);
  }
  return looks;
}

void Views::ShowStructure(Node* node, const std::string& name, bool visible)
{
  ForEachStructureSegment(
    node, [&](vtkSegment*, vtkMRMLSegmentationDisplayNode* display, const std::string& id, const std::string& called) {
      if (called == name)
      {
        display->SetSegmentVisibility(id, visible);
      }
    });
}

void Views::ShowBin(Node* node, double lower, double upper)
{
  vtkMRMLNode* const probability = node ? node->GetNodeReference(Node::GetProbabilityRole()) : nullptr;
  vtkMRMLNode* const map = probability || !node ? probability : node->GetNodeReference(Node::GetHeatmapRole());
  auto* const volume = vtkMRMLScalarVolumeNode::SafeDownCast(map);
  auto* const display = vtkMRMLScalarVolumeDisplayNode::SafeDownCast(volume ? volume->GetScalarVolumeDisplayNode() : nullptr);
  if (display && lower < 0)
  {
    ShowFromThreshold(node);
  }
  else if (display)
  {
    display->SetThreshold(lower, upper >= 1 ? 1 : std::nextafter(upper, 0.0));
  }
}

void Views::ShowBeside(vtkMRMLScene* scene, Node* node)
{
  vtkMRMLNode* const consensus = node->GetNodeReference(Node::GetHeatmapRole());
  vtkMRMLNode* const probability = node->GetNodeReference(Node::GetProbabilityRole());
  for (vtkMRMLSliceCompositeNode* const composite : CompositesOf(scene))
  {
    const std::string name = Text(composite->GetLayoutName());
    if (name != "Red" && name != "Yellow")
    {
      continue;
    }
    const bool left = name == "Red";
    composite->SetLinkedControl(1);
    composite->SetBackgroundVolumeID(node->GetImageNodeID());
    vtkMRMLNode* const right = probability ? probability : consensus;
    composite->SetForegroundVolumeID(left ? (probability ? IdOf(consensus) : nullptr) : IdOf(right));
    composite->SetForegroundOpacity(MapOpacity);
  }
  UpdateLegend(consensus);
  UpdateLegend(probability);
}

void Views::ShowSideBySide(vtkMRMLScene* scene, Node* node)
{
  this->Restore(scene);
  vtkMRMLLayoutNode* const layout = scene ? LayoutOf(scene) : nullptr;
  if (!layout || !node || !node->GetImageNodeID())
  {
    return;
  }
  this->Remember(scene);
  this->Shown = SideBySide;
  layout->SetViewArrangement(vtkMRMLLayoutNode::SlicerLayoutSideBySideView);
  ShowBeside(scene, node);
  // The same place on both sides.
  vtkMRMLSliceNode* const left = SliceOf(scene, "Red");
  vtkMRMLSliceNode* const right = SliceOf(scene, "Yellow");
  if (left && right)
  {
    right->GetSliceToRAS()->DeepCopy(left->GetSliceToRAS());
    right->UpdateMatrices();
    // And the same size: a view that is resized keeps the size of its pixels.
    double field[3];
    for (int a = 0; a < 3; ++a)
    {
      field[a] = left->GetFieldOfView()[a] / std::max(1, left->GetDimensions()[a]) * std::max(1, right->GetDimensions()[a]);
    }
    right->SetFieldOfView(field[0], field[1], field[2]);
    right->SetXYZOrigin(left->GetXYZOrigin()[0], left->GetXYZOrigin()[1], left->GetXYZOrigin()[2]);
  }
}

void Views::ShowChart(vtkMRMLScene* scene, Node* node)
{
  this->Restore(scene);
  vtkMRMLLayoutNode* const layout = scene ? LayoutOf(scene) : nullptr;
  vtkMRMLNode* const chart = node ? node->GetNodeReference(Node::GetChartRole()) : nullptr;
  if (!layout || !chart)
  {
    return;
  }
  this->Remember(scene);
  this->Shown = Chart;
  layout->SetViewArrangement(vtkMRMLLayoutNode::SlicerLayoutConventionalPlotView);
  for (vtkMRMLPlotViewNode* const view : NodesOf<vtkMRMLPlotViewNode>(scene, "vtkMRMLPlotViewNode"))
  {
    view->SetPlotChartNodeID(chart->GetID());
  }
}

void Views::Forget()
{
  this->Shown = Users;
  this->Slices.clear();
}

void Views::Remember(vtkMRMLScene* scene)
{
  this->Layout = LayoutOf(scene)->GetViewArrangement();
  for (vtkMRMLSliceCompositeNode* const composite : CompositesOf(scene))
  {
    SliceState state;
    state.Name = Text(composite->GetLayoutName());
    state.Background = Text(composite->GetBackgroundVolumeID());
    state.Foreground = Text(composite->GetForegroundVolumeID());
    state.Opacity = composite->GetForegroundOpacity();
    state.Linked = composite->GetLinkedControl();
    if (vtkMRMLSliceNode* const slice = SliceOf(scene, state.Name))
    {
      const double* const elements = slice->GetSliceToRAS()->GetData();
      state.SliceToRas.assign(elements, elements + 16);
      state.FieldOfView.assign(slice->GetFieldOfView(), slice->GetFieldOfView() + 3);
      state.Origin.assign(slice->GetXYZOrigin(), slice->GetXYZOrigin() + 3);
    }
    this->Slices.push_back(state);
  }
}

void Views::Restore(vtkMRMLScene* scene)
{
  vtkMRMLLayoutNode* const layout = scene ? LayoutOf(scene) : nullptr;
  if (this->Shown == Users || !layout)
  {
    return;
  }
  for (const SliceState& state : this->Slices)
  {
    for (vtkMRMLSliceCompositeNode* const composite : CompositesOf(scene))
    {
      // A chart leaves the slices as they are.
      if (this->Shown == SideBySide && Text(composite->GetLayoutName()) == state.Name)
      {
        composite->SetLinkedControl(state.Linked);
        composite->SetBackgroundVolumeID(state.Background.empty() ? nullptr : state.Background.c_str());
        composite->SetForegroundVolumeID(state.Foreground.empty() ? nullptr : state.Foreground.c_str());
        composite->SetForegroundOpacity(state.Opacity);
      }
    }
    vtkMRMLSliceNode* const slice = SliceOf(scene, state.Name);
    if (this->Shown == SideBySide && slice && state.SliceToRas.size() == 16)
    {
      slice->GetSliceToRAS()->DeepCopy(state.SliceToRas.data());
      slice->UpdateMatrices();
      slice->SetXYZOrigin(state.Origin[0], state.Origin[1], state.Origin[2]);
      slice->SetFieldOfView(state.FieldOfView[0], state.FieldOfView[1], state.FieldOfView[2]);
    }
  }
  layout->SetViewArrangement(this->Layout);
  this->Forget();
}

} // namespace mrml
} // namespace rcn
