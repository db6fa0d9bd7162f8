/// One panel of a slice view: a VTK renderer with the image, a layer of colours, outlines, cross-hair and texts. Not a
/// widget: qRcnSliceCanvas puts one or several of them into a window.
#ifndef rcnSlicePane_h
#define rcnSlicePane_h

#include <array>
#include <string>
#include <vector>

#include <vtkActor.h>
#include <vtkImageData.h>
#include <vtkImageSlice.h>
#include <vtkNew.h>
#include <vtkPolyData.h>
#include <vtkRenderer.h>
#include <vtkSmartPointer.h>
#include <vtkTextActor.h>

#include "qRcnScene.h"

class rcnSlicePane
{
public:
  /// What lies over the image.
  enum class Content
  {
    Scene,     ///< what the scene says: heat map, shown prediction, outlines of the visible raters
    Rater,     ///< the mask of one rater
    Consensus, ///< the levels of consensus
    Prediction ///< one prediction
  };

  /// Where the camera is: the same for all panes of a canvas.
  struct Camera
  {
    rcn_plane Plane{};
    int64_t Slice = 0;
    double Center[2] = { 0, 0 }; ///< voxel index along the plane's right and up axis
    double MmPerPixel = 1;
  };

  rcnSlicePane(qRcnScene* scene, Content content, int number);
  rcnSlicePane(const rcnSlicePane&) = delete;

  vtkRenderer* renderer() { return this->Renderer; }
  Content content() const { return this->What; }
  int number() const { return this->Number; }

  /// Tells that something of the scene is another; done by the next refresh().
  void invalidate(qRcnScene::Changes what) { this->Stale |= what; }
  /// Brings the panel in line with scene and camera. `width`, `height`: its size in pixels.
  void refresh(const Camera& camera, int width, int height);

  /// Texts: in the upper left, upper right, lower left and lower right corner, in this order.
  void setCornerText(int corner, const std::string& text, const QColor& color = QColor(225, 225, 225));
  /// Letters of the directions at the edges, and a scale bar.
  void setFurniture(bool letters, bool scaleBar);
  /// How large texts are drawn: the window's device pixel ratio.
  void setTextScale(double scale);

private:
  struct Layer
  {
    vtkNew<vtkImageData> Data;
    vtkNew<vtkImageSlice> Actor;
  };
  struct Lines
  {
    vtkNew<vtkPolyData> Data;
    vtkNew<vtkActor> Actor;
  };

  void prepareLayer(Layer& layer, double depth, bool smooth);
  void prepareLines(Lines& lines, double width);
  void resizeLayer(Layer& layer);
  void refreshImage();
  void refreshOverlay();
  void refreshContours();
  void refreshCrosshair();
  void refreshFurniture();
  void placeCamera();
  const std::vector<uint32_t>& codes();
  const std::vector<float>& values();
  int shownPrediction() const;
  QColor axisColor(int axis) const;

  qRcnScene* Scene;
  Content What;
  int Number;
  qRcnScene::Changes Stale;
  Camera Shown;
  int Width = 0, Height = 0;
  bool Letters = true, ScaleBar = true;
  double TextScale = 1;

  int Axes[2] = { 0, 1 }; // of the slice's pixels
  int64_t Size[2] = { 0, 0 };
  std::vector<uint32_t> Codes; // of this slice; empty: to be read
  std::vector<float> Values;   // the readout on this slice; empty: to be read

  vtkNew<vtkRenderer> Renderer;
  Layer ImageLayer, OverlayLayer;
  Lines Contours, Crosshair, Bar;
  std::array<vtkSmartPointer<vtkTextActor>, 4> Corners;
  std::array<vtkSmartPointer<vtkTextActor>, 4> Edges;
  vtkSmartPointer<vtkTextActor> BarText;
};

#endif
