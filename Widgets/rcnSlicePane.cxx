#include "rcnSlicePane.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <vtkCamera.h>
#include <vtkCellArray.h>
#include <vtkImageProperty.h>
#include <vtkImageSliceMapper.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyDataMapper.h>
#include <vtkProperty.h>
#include <vtkTextProperty.h>
#include <vtkUnsignedCharArray.h>

#include "qRcnSliceCanvas.h"

namespace
{

/// Distances from the plane of the image towards the camera.
const double OVERLAY_DEPTH = 1, CONTOUR_DEPTH = 2, CROSSHAIR_DEPTH = 3, CAMERA_DEPTH = 100;

const int FONT_SIZE = 13;

/// Straight pieces in colours, written into a vtkPolyData.
class LineWriter
{
public:
  LineWriter(double x, double y) : Step{ x, y } {}

  void add(double x0, double y0, double x1, double y1, const QColor& color)
  {
    const double ends[2][2] = { { x0, y0 }, { x1, y1 } };
    for (const auto& end : ends)
    {
      this->Points.push_back(static_cast<float>(end[0] * this->Step[0]));
      this->Points.push_back(static_cast<float>(end[1] * this->Step[1]));
      this->Points.push_back(0);
      this->Colors.push_back(static_cast<unsigned char>(color.red()));
      this->Colors.push_back(static_cast<unsigned char>(color.green()));
      this->Colors.push_back(static_cast<unsigned char>(color.blue()));
    }
  }

  void write(vtkPolyData* data) const
  {
    const auto count = static_cast<vtkIdType>(this->Points.size() / 3);
    vtkNew<vtkPoints> points;
    points->SetDataTypeToFloat();
    points->SetNumberOfPoints(count);
    vtkNew<vtkUnsignedCharArray> colors;
    colors->SetNumberOfComponents(3);
    colors->SetNumberOfTuples(count);
    vtkNew<vtkCellArray> cells;
    if (count > 0)
    {
      std::memcpy(points->GetVoidPointer(0), this->Points.data(), this->Points.size() * sizeof(float));
      std::memcpy(colors->GetVoidPointer(0), this->Colors.data(), this->Colors.size());
    }
    cells->AllocateExact(count / 2, count);
    for (vtkIdType i = 0; i < count; i += 2)
    {
      const vtkIdType ends[2] = { i, i + 1 };
      cells->InsertNextCell(2, ends);
    }
    data->Initialize();
    data->SetPoints(points);
    data->SetLines(cells);
    data->GetPointData()->SetScalars(colors);
  }

private:
  double Step[2];
  std::vector<float> Points;
  std::vector<unsigned char> Colors;
};

struct OutlineTask
{
  LineWriter* Writer;
  const std::vector<QColor>* Colors;
};

void DrawSegment(int rater, const float segment[4], void* payload)
{
  const auto* task = static_cast<OutlineTask*>(payload);
  task->Writer->add(
    segment[0], segment[1], segment[2], segment[3], (*task->Colors)[static_cast<size_t>(rater)]);
}

/// 1, 2 or 5 times a power of ten, at most `mm`.
double RoundLength(double mm)
{
  const double power = std::pow(10, std::floor(std::log10(mm)));
  for (const double factor : { 5.0, 2.0 })
  {
    if (factor * power <= mm)
    {
      return factor * power;
    }
  }
  return power;
}

} // namespace

rcnSlicePane::rcnSlicePane(qRcnScene* scene, Content content, int number)
  : Scene(scene), What(content), Number(number), Stale(~qRcnScene::Changes())
{
  this->Shown.Slice = -1;
  this->Renderer->SetBackground(0, 0, 0);
  // Nothing here is lit, and nothing behind must be erased.
  this->Renderer->AutomaticLightCreationOff();
  this->Renderer->GetActiveCamera()->ParallelProjectionOn();
  this->prepareLayer(this->ImageLayer, 0, true);
  this->prepareLayer(this->OverlayLayer, OVERLAY_DEPTH, false);
  this->OverlayLayer.Actor->ForceTranslucentOn();
  this->prepareLines(this->Contours, 1.8);
  this->prepareLines(this->Crosshair, 1);
  this->prepareLines(this->Bar, 2);
  const auto text = [this](int horizontal, int vertical, double x, double y) {
    auto actor = vtkSmartPointer<vtkTextActor>::New();
    vtkTextProperty* property = actor->GetTextProperty();
    property->SetFontSize(FONT_SIZE);
    property->SetJustification(horizontal);
    property->SetVerticalJustification(vertical);
    property->SetShadow(true);
    property->SetShadowOffset(1, -1);
    actor->GetPositionCoordinate()->SetCoordinateSystemToNormalizedViewport();
    actor->SetPosition(x, y);
    this->Renderer->AddViewProp(actor);
    return actor;
  };
  this->Corners = { text(VTK_TEXT_LEFT, VTK_TEXT_TOP, 0, 1), text(VTK_TEXT_RIGHT, VTK_TEXT_TOP, 1, 1),
    text(VTK_TEXT_LEFT, VTK_TEXT_BOTTOM, 0, 0), text(VTK_TEXT_RIGHT, VTK_TEXT_BOTTOM, 1, 0) };
  this->Edges = { text(VTK_TEXT_LEFT, VTK_TEXT_CENTERED, 0, 0.5),
    text(VTK_TEXT_RIGHT, VTK_TEXT_CENTERED, 1, 0.5), text(VTK_TEXT_CENTERED, VTK_TEXT_BOTTOM, 0.5, 0),
    text(VTK_TEXT_CENTERED, VTK_TEXT_TOP, 0.5, 1) };
  for (const auto& edge : this->Edges)
  {
    edge->GetTextProperty()->SetColor(0.95, 0.80, 0.35);
    edge->GetTextProperty()->SetBold(true);
  }
  this->BarText = text(VTK_TEXT_LEFT, VTK_TEXT_BOTTOM, 0, 0);
}

void rcnSlicePane::prepareLayer(Layer& layer, double depth, bool smooth)
{
  vtkNew<vtkImageSliceMapper> mapper;
  mapper->SetInputData(layer.Data);
  mapper->BorderOn(); // whole pixels at the edge, not halves
  layer.Data->SetOrigin(0, 0, depth);
  layer.Actor->SetMapper(mapper);
  vtkImageProperty* property = layer.Actor->GetProperty();
  property->SetColorWindow(255);
  property->SetColorLevel(127.5);
  if (smooth)
  {
    property->SetInterpolationTypeToLinear();
  }
  else
  {
    property->SetInterpolationTypeToNearest();
  }
  layer.Actor->VisibilityOff();
  this->Renderer->AddViewProp(layer.Actor);
}

void rcnSlicePane::prepareLines(Lines& lines, double width)
{
  vtkNew<vtkPolyDataMapper> mapper;
  mapper->SetInputData(lines.Data);
  lines.Actor->SetMapper(mapper);
  lines.Actor->GetProperty()->LightingOff();
  lines.Actor->GetProperty()->SetLineWidth(static_cast<float>(width));
  this->Renderer->AddActor(lines.Actor);
}

void rcnSlicePane::setCornerText(int corner, const std::string& text, const QColor& color)
{
  vtkTextActor* actor = this->Corners[static_cast<size_t>(corner)];
  actor->SetInput(text.c_str());
  actor->GetTextProperty()->SetColor(color.redF(), color.greenF(), color.blueF());
}

void rcnSlicePane::setFurniture(bool letters, bool scaleBar)
{
  this->Letters = letters;
  this->ScaleBar = scaleBar;
}

void rcnSlicePane::setTextScale(double scale)
{
  this->TextScale = scale;
}

void rcnSlicePane::refresh(const Camera& camera, int width, int height)
{
  const bool otherSlice = camera.Slice != this->Shown.Slice || camera.Plane.axis != this->Shown.Plane.axis ||
    (this->Stale & qRcnScene::Case);
  this->Shown = camera;
  this->Width = width;
  this->Height = height;
  if (this->Scene->isEmpty())
  {
    this->ImageLayer.Actor->VisibilityOff();
    this->OverlayLayer.Actor->VisibilityOff();
    this->Contours.Actor->VisibilityOff();
    this->Crosshair.Actor->VisibilityOff();
    this->Bar.Actor->VisibilityOff();
    this->BarText->SetInput("");
    for (const auto& edge : this->Edges)
    {
      edge->SetInput("");
    }
    this->Stale = {};
    this->Shown.Slice = -1;
    return;
  }
  if (otherSlice)
  {
    this->Axes[0] = camera.Plane.axis == 0 ? 1 : 0;
    this->Axes[1] = camera.Plane.axis == 2 ? 1 : 2;
    rcn_slice_size(this->Size, &this->Scene->geometry(), camera.Plane.axis);
    this->resizeLayer(this->ImageLayer);
    this->resizeLayer(this->OverlayLayer);
    this->Codes.clear();
    this->Stale |= qRcnScene::Image | qRcnScene::Overlay | qRcnScene::Contours;
  }
  if (this->Stale & (qRcnScene::Overlay | qRcnScene::Predictions))
  {
    this->Values.clear();
  }
  if (this->Stale & qRcnScene::Image)
  {
    this->refreshImage();
  }
  if (this->Stale & (qRcnScene::Overlay | qRcnScene::Predictions))
  {
    this->refreshOverlay();
  }
  if (this->Stale & (qRcnScene::Contours | qRcnScene::Predictions))
  {
    this->refreshContours();
  }
  this->placeCamera();
  this->refreshCrosshair();
  this->refreshFurniture();
  this->Stale = {};
}

void rcnSlicePane::resizeLayer(Layer& layer)
{
  const double* spacing = this->Scene->geometry().spacing;
  const int extent[2] = { static_cast<int>(this->Size[0]), static_cast<int>(this->Size[1]) };
  const int* dimensions = layer.Data->GetDimensions();
  layer.Data->SetSpacing(spacing[this->Axes[0]], spacing[this->Axes[1]], 1);
  if (dimensions[0] != extent[0] || dimensions[1] != extent[1] || !layer.Data->GetPointData()->GetScalars())
  {
    layer.Data->SetDimensions(extent[0], extent[1], 1);
    layer.Data->AllocateScalars(VTK_UNSIGNED_CHAR, 4);
  }
}

void rcnSlicePane::refreshImage()
{
  int component = 0;
  const rcn_image* image = this->Scene->shownImage(&component);
  const rcn_slice slice = { this->Shown.Plane.axis, this->Shown.Slice };
  auto* rgba = static_cast<uint8_t*>(this->ImageLayer.Data->GetScalarPointer());
  rcn_context* context = this->Scene->context();
  const bool drawn = image &&
    (component < 0 ? rcn_slice_rgb(rgba, context, image, slice, this->Scene->black(), this->Scene->white())
                   : rcn_slice_gray(rgba, context, image, component, slice, this->Scene->black(),
                       this->Scene->white())) == RCN_OK;
  this->ImageLayer.Data->Modified();
  this->ImageLayer.Actor->SetVisibility(drawn);
}

int rcnSlicePane::shownPrediction() const
{
  switch (this->What)
  {
    case Content::Scene:
      return this->Scene->shownPrediction();
    case Content::Prediction:
      return this->Number < this->Scene->predictionCount() ? this->Number : -1;
    default:
      return -1;
  }
}

const std::vector<uint32_t>& rcnSlicePane::codes()
{
  if (this->Codes.empty() && this->Scene->votes())
  {
    this->Codes.resize(static_cast<size_t>(this->Size[0] * this->Size[1]));
    if (rcn_slice_codes(this->Codes.data(), this->Scene->context(), this->Scene->votes(),
          rcn_slice{ this->Shown.Plane.axis, this->Shown.Slice }) != RCN_OK)
    {
      this->Codes.clear();
    }
  }
  return this->Codes;
}

const std::vector<float>& rcnSlicePane::values()
{
  const int shown = this->shownPrediction();
  if (this->Values.empty() && shown >= 0)
  {
    this->Values.resize(static_cast<size_t>(this->Size[0] * this->Size[1]));
    if (rcn_slice_readout(this->Values.data(), this->Scene->context(),
          &this->Scene->prediction(shown).volume().View(), this->Scene->readout(), this->Scene->readoutNumber(),
          rcn_slice{ this->Shown.Plane.axis, this->Shown.Slice }) != RCN_OK)
    {
      this->Values.clear();
    }
  }
  return this->Values;
}

void rcnSlicePane::refreshOverlay()
{
  const int64_t pixels = this->Size[0] * this->Size[1];
  auto* rgba = static_cast<uint8_t*>(this->OverlayLayer.Data->GetScalarPointer());
  bool drawn = false;
  std::memset(rgba, 0, static_cast<size_t>(4 * pixels));
  const bool consensus = this->What == Content::Consensus ||
    (this->What == Content::Scene && this->Scene->isHeatMapVisible());
  if (consensus && !this->codes().empty())
  {
    rcn_slice_paint_codes(rgba, this->Codes.data(), pixels, this->Scene->patternColors().data());
    drawn = true;
  }
  if (this->What == Content::Rater && this->Scene->isRaterPresent(this->Number) && !this->codes().empty())
  {
    const std::vector<uint8_t> colors = this->Scene->raterColors(this->Number);
    rcn_slice_paint_codes(rgba, this->Codes.data(), pixels, colors.data());
    drawn = true;
  }
  if (this->shownPrediction() >= 0 && !this->values().empty())
  {
    const std::vector<float>& values = this->Values;
    // What is practically nobody's is left clear, as level 0 is in the heat map.
    const double lower = this->Scene->isThresholdContourVisible() ? 0.05 : this->Scene->threshold();
    const auto colors = this->Scene->probabilityColors(this->Scene->predictionOpacity());
    rcn_slice_paint_values(rgba, values.data(), pixels, std::max(lower, 0.001), 2, colors.data());
    if (this->Scene->hasHighlight())
    {
      std::array<uint8_t, 1024> highlight{};
      for (size_t i = 0; i < 256; ++i)
      {
        const uint8_t magenta[4] = { 255, 0, 200, 200 };
        std::copy(magenta, magenta + 4, &highlight[4 * i]);
      }
      rcn_slice_paint_values(rgba, values.data(), pixels, this->Scene->highlightLower(),
        this->Scene->highlightUpper(), highlight.data());
    }
    drawn = true;
  }
  this->OverlayLayer.Data->Modified();
  this->OverlayLayer.Actor->SetVisibility(drawn);
}

void rcnSlicePane::refreshContours()
{
  const double* spacing = this->Scene->geometry().spacing;
  LineWriter writer(spacing[this->Axes[0]], spacing[this->Axes[1]]);
  uint64_t raters = 0;
  if (this->What == Content::Rater)
  {
    raters = this->Scene->isRaterPresent(this->Number) ? uint64_t{ 1 } << this->Number : 0;
  }
  else if (this->What == Content::Scene && this->Scene->areContoursVisible())
  {
    raters = this->Scene->visibleRaters();
  }
  if (raters && !this->codes().empty())
  {
    std::vector<QColor> colors;
    for (int r = 0; r < this->Scene->raterCount(); ++r)
    {
      colors.push_back(this->Scene->raterColor(r));
    }
    OutlineTask task = { &writer, &colors };
    rcn_slice_outlines(this->Scene->votes(), this->Codes.data(), this->Size, raters, DrawSegment, &task);
  }
  if (this->shownPrediction() >= 0 && !this->values().empty())
  {
    const auto draw = [&](double level, const QColor& color) {
      rcn_contours* contours = nullptr;
      if (rcn_contours_create(&contours, this->Scene->context(), this->Values.data(), this->Size[0], this->Size[1],
            level) != RCN_OK)
      {
        return;
      }
      for (int64_t line = 0; line < contours->lines; ++line)
      {
        const int64_t first = contours->first[line], end = contours->first[line + 1];
        for (int64_t i = first; i < end; ++i)
        {
          const float *a = contours->xy + 2 * i, *b = contours->xy + 2 * (i + 1 < end ? i + 1 : first);
          // Pixels have their centre at a half there, at a whole number here.
          writer.add(a[0] - 0.5, a[1] - 0.5, b[0] - 0.5, b[1] - 0.5, color);
        }
      }
      rcn_contours_destroy(contours, this->Scene->context());
    };
    const int raterCount = std::max(this->Scene->raterCount(), 1);
    if (this->Scene->areLevelContoursVisible())
    {
      for (int k = 1; k <= raterCount; ++k)
      {
        const double share = (k - 0.5) / raterCount;
        uint8_t rgb[3];
        rcn_color_palette(rgb, this->Scene->levelPalette(), static_cast<double>(k) / raterCount);
        draw(share, QColor(rgb[0], rgb[1], rgb[2]));
      }
    }
    if (this->Scene->isThresholdContourVisible())
    {
      draw(this->Scene->threshold(), QColor(255, 255, 255));
    }
  }
  writer.write(this->Contours.Data);
  this->Contours.Actor->VisibilityOn();
}

void rcnSlicePane::placeCamera()
{
  const Camera& shown = this->Shown;
  const double* spacing = this->Scene->geometry().spacing;
  double right[3] = { 0, 0, 0 }, up[3] = { 0, 0, 0 }, center[3] = { 0, 0, 0 };
  const int rightAt = shown.Plane.right == this->Axes[0] ? 0 : 1;
  right[rightAt] = shown.Plane.right_sign;
  up[1 - rightAt] = shown.Plane.up_sign;
  center[rightAt] = shown.Center[0] * spacing[shown.Plane.right];
  center[1 - rightAt] = shown.Center[1] * spacing[shown.Plane.up];
  // The camera looks along up x right; which of the plane's two sides that is depends on how the volume lies.
  const double toward = right[0] * up[1] - right[1] * up[0];
  vtkCamera* camera = this->Renderer->GetActiveCamera();
  camera->SetFocalPoint(center[0], center[1], 0);
  camera->SetPosition(center[0], center[1], toward * CAMERA_DEPTH);
  camera->SetViewUp(up);
  camera->SetParallelScale(this->Height * shown.MmPerPixel / 2);
  camera->SetClippingRange(CAMERA_DEPTH / 2, 2 * CAMERA_DEPTH);
  this->OverlayLayer.Actor->SetPosition(0, 0, toward > 0 ? 0 : -2 * OVERLAY_DEPTH);
  this->Contours.Actor->SetPosition(0, 0, toward * CONTOUR_DEPTH);
  this->Crosshair.Actor->SetPosition(0, 0, toward * CROSSHAIR_DEPTH);
  this->Bar.Actor->SetPosition(0, 0, toward * CROSSHAIR_DEPTH);
}

void rcnSlicePane::refreshCrosshair()
{
  const rcn_geometry& geometry = this->Scene->geometry();
  const qRcnScene::Voxel& cursor = this->Scene->cursor();
  LineWriter writer(geometry.spacing[this->Axes[0]], geometry.spacing[this->Axes[1]]);
  if (this->Scene->isCrosshairVisible())
  {
    // A gap in the middle keeps the voxel itself to be seen.
    for (int along = 0; along < 2; ++along)
    {
      const int axis = this->Axes[along], across = this->Axes[1 - along];
      const double gap = std::max(1.0, 9 * this->TextScale * this->Shown.MmPerPixel / geometry.spacing[axis]);
      const auto at = static_cast<double>(cursor[static_cast<size_t>(axis)]);
      const auto level = static_cast<double>(cursor[static_cast<size_t>(across)]);
      const double ends[2][2] = { { -0.5, at - gap },
        { at + gap, static_cast<double>(geometry.size[axis]) - 0.5 } };
      for (const auto& end : ends)
      {
        if (end[0] < end[1])
        {
          const double from[2] = { end[0], level }, to[2] = { end[1], level };
          writer.add(
            from[along], from[1 - along], to[along], to[1 - along], this->axisColor(across));
        }
      }
    }
  }
  writer.write(this->Crosshair.Data);
  this->Crosshair.Actor->VisibilityOn();
}

QColor rcnSlicePane::axisColor(int axis) const
{
  for (const rcn_view view : { RCN_VIEW_AXIAL, RCN_VIEW_CORONAL, RCN_VIEW_SAGITTAL })
  {
    rcn_plane plane;
    rcn_plane_make(&plane, &this->Scene->geometry(), view);
    if (plane.axis == axis && this->Scene->geometry().dimension == 3)
    {
      return qRcnSliceCanvas::viewColor(view);
    }
  }
  return QColor(120, 200, 255);
}

void rcnSlicePane::refreshFurniture()
{
  const Camera& shown = this->Shown;
  const int size = static_cast<int>(std::lround(FONT_SIZE * this->TextScale));
  const double x = 6 * this->TextScale / std::max(this->Width, 1), y = 5 * this->TextScale / std::max(this->Height, 1);
  const double corners[4][2] = { { x, 1 - y }, { 1 - x, 1 - y }, { x, y }, { 1 - x, y } };
  const double edges[4][2] = { { x, 0.5 }, { 1 - x, 0.5 }, { 0.5, y }, { 0.5, 1 - y } };
  for (size_t i = 0; i < 4; ++i)
  {
    this->Corners[i]->GetTextProperty()->SetFontSize(i == 3 ? size * 5 / 6 : size);
    this->Corners[i]->SetPosition(corners[i][0], corners[i][1]);
    this->Edges[i]->SetInput(this->Letters ? shown.Plane.letters[i] : "");
    this->Edges[i]->GetTextProperty()->SetFontSize(size * 8 / 7);
    this->Edges[i]->SetPosition(edges[i][0], edges[i][1]);
  }
  // The bar: about a fifth of the width, above the text in the lower left corner.
  const double length = RoundLength(std::max(this->Width * shown.MmPerPixel / 5, 1e-6));
  const double pixels = length / shown.MmPerPixel;
  const double left = 8 * this->TextScale, bottom = 26 * this->TextScale;
  LineWriter writer(1, 1);
  if (this->ScaleBar)
  {
    const auto place = [&](double px, double py, double out[2]) {
      const double* spacing = this->Scene->geometry().spacing;
      const double sx = (px - this->Width / 2.0) * shown.MmPerPixel, sy = (py - this->Height / 2.0) * shown.MmPerPixel;
      const int rightAt = shown.Plane.right == this->Axes[0] ? 0 : 1;
      out[rightAt] = shown.Center[0] * spacing[shown.Plane.right] + shown.Plane.right_sign * sx;
      out[1 - rightAt] = shown.Center[1] * spacing[shown.Plane.up] + shown.Plane.up_sign * sy;
    };
    const double ticks = 3 * this->TextScale;
    const double lines[3][4] = { { left, bottom, left + pixels, bottom },
      { left, bottom - ticks, left, bottom + ticks }, { left + pixels, bottom - ticks, left + pixels, bottom + ticks } };
    for (const auto& line : lines)
    {
      double a[2], b[2];
      place(line[0], line[1], a);
      place(line[2], line[3], b);
      writer.add(a[0], a[1], b[0], b[1], QColor(225, 225, 225));
    }
    const QString text = length >= 1 ? QString("%1 mm").arg(length) : QString("%1 \u00b5m").arg(1000 * length);
    this->BarText->SetInput(text.toUtf8().constData());
    this->BarText->GetTextProperty()->SetFontSize(size * 5 / 6);
    this->BarText->SetPosition((left + pixels + 6 * this->TextScale) / std::max(this->Width, 1),
      (bottom - 6 * this->TextScale) / std::max(this->Height, 1));
  }
  else
  {
    this->BarText->SetInput("");
  }
  writer.write(this->Bar.Data);
  this->Bar.Actor->VisibilityOn();
}
