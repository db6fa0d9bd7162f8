// SPDX-License-Identifier: Apache-2.0
/// The picture of one panel: a slice of the scene at some zoom, with a layer of colors and outlines over it. Not a widget:
/// qRcnSliceCanvas shows one or several of them next to each other and lays cross-hair and texts over them.
///
/// The core (rcn_slice.h) reads and draws the slice. The picture is kept until something in it changes, so that a view
/// whose cross-hair moves costs next to nothing, on machines without a graphics card and over remote desktops, too, where
/// OpenGL in software would take most of the time to copy frames around.
#ifndef rcnSliceRenderer_h
#define rcnSliceRenderer_h

#include <vector>

#include <QImage>

#include "qRcnScene.h"

class rcnSliceRenderer
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

  /// What part of which slice is seen: the same for all panes of a canvas.
  struct Camera
  {
    rcn_plane Plane{};
    int64_t Slice = -1;
    double Center[2] = { 0, 0 }; ///< voxel index along the plane's right and up axis
    double MmPerPixel = 1;       ///< pixels of the picture
    double PixelRatio = 1;       ///< of the screen: how much wider lines are drawn
    bool operator==(const Camera& other) const;
  };

  rcnSliceRenderer(qRcnScene* scene, Content content, int number);

  /// Tells that something of the scene is another; done by the next draw().
  void invalidate(qRcnScene::Changes what) { this->Stale |= what; }

  /// The slice with its colors and outlines, so many pixels wide and high.
  const QImage& draw(const Camera& camera, const QSize& size);

private:
  void readSlice();
  void paintLayer();
  struct Pen;
  void drawOutlines(Pen& pen);
  void drawContours(const Pen& pen);
  void drawOthers(const Pen& pen);
  void drawContour(const Pen& pen, const std::vector<float>& values, double level, QRgb color);
  const std::vector<uint32_t>& codes();
  const std::vector<float>& values();
  int shownPrediction() const;

  qRcnScene* Scene;
  Content What;
  int Number;
  qRcnScene::Changes Stale;
  Camera Shown;
  QImage Picture;

  int64_t Size[2] = { 0, 0 };
  std::vector<uint8_t> Pixels; // RGBA; empty: there is no image
  std::vector<uint8_t> Layer;  // RGBA; empty: nothing lies over the image
  std::vector<uint32_t> Codes; // of the votes; empty: to be read
  std::vector<float> Values;   // the readout; empty: to be read
};

#endif
