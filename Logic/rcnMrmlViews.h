// SPDX-License-Identifier: Apache-2.0
/// What the views of the application show of a case. A layout changes only when a person asks for it, and what was there before
/// comes back. For the main thread.
#ifndef rcnMrmlViews_h
#define rcnMrmlViews_h

#include <string>
#include <vector>

#include "rcnReport.h"
#include "vtkSlicerRaterConsensusModuleLogicExport.h"

class vtkMRMLRaterConsensusNode;
class vtkMRMLScene;

namespace rcn
{
namespace mrml
{

/// What a person reads volumes, areas and lengths in, by the units of the application; cm³ is called mL.
VTK_SLICER_RATERCONSENSUS_MODULE_LOGIC_EXPORT Units UnitsOf(vtkMRMLScene* scene);

class VTK_SLICER_RATERCONSENSUS_MODULE_LOGIC_EXPORT Views
{
public:
  /// The chosen case: its image and its map in every slice view that shows nothing or something of a case, its masks instead of
  /// the other cases', its legend. What is shown side by side stays so, of this case. True: a view has another image now.
  bool ShowCase(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node);

  /// A result (heatmap or probability) over the image of the case, from now on.
  void ShowMap(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node, const char* role);

  /// Of all segments of raters only these two; negative: all of them.
  static void ShowRaters(vtkMRMLRaterConsensusNode* node, int first, int second);

  /// A structure that the raters' segmentations tell apart: its color, and whether its outlines are shown.
  struct StructureLook
  {
    std::string Name;
    double Rgb[3] = { 0, 0, 0 };
    bool Visible = false;
  };
  static std::vector<StructureLook> Structures(vtkMRMLRaterConsensusNode* node);
  /// The outlines of one structure, of all raters.
  static void ShowStructure(vtkMRMLRaterConsensusNode* node, const std::string& name, bool visible);

  /// Of the map that was judged only voxels from `lower` to below `upper`; negative: as many as the node wants to see.
  static void ShowBin(vtkMRMLRaterConsensusNode* node, double lower, double upper);

  /// Two slice views of one place that move together: image and image with the map, or consensus
  /// and the model's probability. Null: back to what was there before.
  void ShowSideBySide(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node);
  bool IsSideBySide() const { return this->Shown == SideBySide; }

  /// The reliability diagram in a plot view. Null: back.
  void ShowChart(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node);
  bool IsChartShown() const { return this->Shown == Chart; }

  /// The scene is closed: there is nothing to come back to.
  void Forget();

private:
  enum Arrangement
  {
    Users,
    SideBySide,
    Chart
  };
  struct SliceState
  {
    std::string Name, Background, Foreground;
    double Opacity = 0;
    int Linked = 0;
    std::vector<double> SliceToRas, FieldOfView, Origin;
  };
  static bool ShowLayers(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node);
  static void ShowBeside(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node);
  void Remember(vtkMRMLScene* scene);
  void Restore(vtkMRMLScene* scene);

  Arrangement Shown = Users;
  int Layout = 0;
  std::vector<SliceState> Slices;
};

} // namespace mrml
} // namespace rcn

#endif
