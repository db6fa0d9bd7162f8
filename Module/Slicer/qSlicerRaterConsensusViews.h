// SPDX-License-Identifier: Apache-2.0
/// What the panel shows in the application's views. A layout changes only when a person asks for
/// it, and what was there before comes back.
#ifndef qSlicerRaterConsensusViews_h
#define qSlicerRaterConsensusViews_h

#include <string>
#include <vector>

class vtkMRMLRaterConsensusNode;
class vtkMRMLScene;

class qSlicerRaterConsensusViews
{
public:
  /// This case instead of another one: image and maps in every slice view that shows another
  /// case's, its masks instead of the others'. True: a view has another image now.
  static bool showCase(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node);

  /// A result over the image, in every slice view that shows this image or nothing, where no other
  /// volume is over it.
  static void showMap(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node, const char* role);

  /// Of all raters' segments only these two.
  static void showRaters(vtkMRMLRaterConsensusNode* node, int first, int second);

  /// Of the map that was judged only voxels from `lower` to below `upper`; negative: all that somebody marks.
  static void showBin(vtkMRMLRaterConsensusNode* node, double lower, double upper);

  /// Two slice views of one place that move together: image and image with the map, or consensus
  /// and the model's probability. Null: back to what was there before.
  void showSideBySide(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node);
  bool isSideBySide() const { return this->Shown == SideBySide; }

  /// The reliability diagram in a plot view. Null: back.
  void showChart(vtkMRMLScene* scene, vtkMRMLRaterConsensusNode* node);
  bool isChartShown() const { return this->Shown == Chart; }

  /// The scene is closed: there is nothing to come back to.
  void forget();

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
  void remember(vtkMRMLScene* scene);
  void restore(vtkMRMLScene* scene);

  Arrangement Shown = Users;
  int Layout = 0;
  std::vector<SliceState> Slices;
};

#endif
