// SPDX-License-Identifier: Apache-2.0
#include "rcnSliceRenderer.h"

#include <algorithm>
#include <cmath>

#include "qRcnStyle.h"

namespace
{

const double CONTOUR_WIDTH = 1.6;

} // namespace

/// From pixels of the slice to pixels of the screen.
struct rcnSliceRenderer::Pen
{
  rcn_screen Screen{};
  rcn_slice_place Place{};
  double Width = 1;
  std::vector<QRgb> Colors; ///< by rater

  void line(double x0, double y0, double x1, double y1, QRgb color) const
  {
    const uint8_t rgb[3] = { static_cast<uint8_t>(qRed(color)), static_cast<uint8_t>(qGreen(color)),
      static_cast<uint8_t>(qBlue(color)) };
    double from[2], to[2];
    this->place(x0, y0, from);
    this->place(x1, y1, to);
    rcn_screen_line(&this->Screen, from, to, this->Width, rgb);
  }

  static void drawSegment(int rater, const float segment[4], void* payload)
  {
    const auto* pen = static_cast<const Pen*>(payload);
    pen->line(segment[0], segment[1], segment[2], segment[3], pen->Colors[static_cast<size_t>(rater)]);
  }

private:
  void place(double x, double y, double at[2]) const
  {
    const double along[2] = { this->Place.transposed ? y : x, this->Place.transposed ? x : y };
    for (int a = 0; a < 2; ++a)
    {
      at[a] = (along[a] - this->Place.first[a]) / this->Place.step[a];
    }
  }
};

bool rcnSliceRenderer::Camera::operator==(const Camera& other) const
{
  return this->Slice == other.Slice && this->Plane.axis == other.Plane.axis && this->Plane.right == other.Plane.right &&
    this->Plane.right_sign == other.Plane.right_sign && this->Plane.up_sign == other.Plane.up_sign &&
    this->Center[0] == other.Center[0] && this->Center[1] == other.Center[1] && this->MmPerPixel == other.MmPerPixel &&
    this->PixelRatio == other.PixelRatio;
}

rcnSliceRenderer::rcnSliceRenderer(qRcnScene* scene, Content content, int number)
  : Scene(scene), What(content), Number(number), Stale(~qRcnScene::Changes())
{
}

const QImage& rcnSliceRenderer::draw(const Camera& camera, const QSize& size)
{
  // Where only the cursor moved within the slice, the picture is the same.
  this->Stale &= ~qRcnScene::Changes(qRcnScene::Cursor);
  if (!this->Stale && camera == this->Shown && size == this->Picture.size())
  {
    return this->Picture;
  }
  if (this->Picture.size() != size)
  {
    this->Picture = QImage(size, QImage::Format_RGB32);
  }
  const bool other = camera.Slice != this->Shown.Slice || camera.Plane.axis != this->Shown.Plane.axis;
  this->Shown = camera;
  if (this->Scene->isEmpty() || this->Picture.isNull())
  {
    this->Picture.fill(Qt::black);
    this->Shown.Slice = -1;
    this->Stale = {};
    return this->Picture;
  }
  if (other || (this->Stale & qRcnScene::Case))
  {
    this->Stale |= ~qRcnScene::Changes();
    rcn_slice_size(this->Size, &this->Scene->geometry(), camera.Plane.axis);
  }
  if (this->Stale & (qRcnScene::Case | qRcnScene::Votes))
  {
    this->Codes.clear();
  }
  if (this->Stale & qRcnScene::Image)
  {
    this->readSlice();
  }
  if (this->Stale & (qRcnScene::Overlay | qRcnScene::Predictions))
  {
    this->Values.clear();
    this->paintLayer();
  }
  this->Stale = {};

  Pen pen;
  const double* spacing = this->Scene->geometry().spacing;
  pen.Place.size[0] = this->Size[0];
  pen.Place.size[1] = this->Size[1];
  pen.Place.transposed = camera.Plane.right > camera.Plane.up; // a slice's axes are in ascending order
  pen.Place.step[0] = camera.Plane.right_sign * camera.MmPerPixel / spacing[camera.Plane.right];
  pen.Place.step[1] = -camera.Plane.up_sign * camera.MmPerPixel / spacing[camera.Plane.up]; // rows run down
  pen.Place.first[0] = camera.Center[0] - pen.Place.step[0] * (size.width() - 1) / 2.0;
  pen.Place.first[1] = camera.Center[1] - pen.Place.step[1] * (size.height() - 1) / 2.0;
  pen.Screen = { reinterpret_cast<uint32_t*>(this->Picture.bits()), size.width(), size.height() };
  pen.Width = CONTOUR_WIDTH * camera.PixelRatio;
  if (rcn_slice_draw(&pen.Screen, this->Scene->context(), this->Pixels.empty() ? nullptr : this->Pixels.data(),
        this->Layer.empty() ? nullptr : this->Layer.data(), &pen.Place) != RCN_OK)
  {
    this->Picture.fill(Qt::black);
    return this->Picture;
  }
  this->drawOthers(pen); // below what the view is about
  this->drawOutlines(pen);
  this->drawContours(pen);
  return this->Picture;
}

void rcnSliceRenderer::readSlice()
{
  int component = 0;
  const rcn_image* image = this->Scene->shownImage(&component);
  const rcn_slice slice = { this->Shown.Plane.axis, this->Shown.Slice };
  const double black = this->Scene->black(), white = this->Scene->white();
  rcn_status status = RCN_EINVALID;
  if (image)
  {
    this->Pixels.resize(static_cast<size_t>(4 * this->Size[0] * this->Size[1]));
    status = component < 0 ? rcn_slice_rgb(this->Pixels.data(), this->Scene->context(), image, slice, black, white)
                           : rcn_slice_gray(this->Pixels.data(), this->Scene->context(), image, component, slice, black, white);
  }
  if (status != RCN_OK)
  {
    this->Pixels.clear();
  }
}

int rcnSliceRenderer::shownPrediction() const
{
  switch (this->What)
  {
    case Content::Scene: return this->Scene->shownPrediction();
    case Content::Prediction: return this->Number < this->Scene->predictionCount() ? this->Number : -1;
    default: return -1;
  }
}

const std::vector<uint32_t>& rcnSliceRenderer::codes()
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

const std::vector<float>& rcnSliceRenderer::values()
{
  const int shown = this->shownPrediction();
  if (this->Values.empty() && shown >= 0)
  {
    this->Values.resize(static_cast<size_t>(this->Size[0] * this->Size[1]));
    if (rcn_slice_readout(this->Values.data(), this->Scene->context(), &this->Scene->prediction(shown).volume().View(),
          this->Scene->readout(), this->Scene->readoutNumber(),
          rcn_slice{ this->Shown.Plane.axis, this->Shown.Slice }) != RCN_OK)
    {
      this->Values.clear();
    }
  }
  return this->Values;
}

void rcnSliceRenderer::paintLayer()
{
  const int64_t pixels = this->Size[0] * this->Size[1];
  const bool consensus = this->What == Content::Consensus || (this->What == Content::Scene && this->Scene->isHeatMapVisible());
  const bool rater = this->What == Content::Rater && this->Scene->isRaterPresent(this->Number);
  this->Layer.clear();
  if ((consensus || rater) && !this->codes().empty())
  {
    this->Layer.resize(static_cast<size_t>(4 * pixels));
    const std::vector<uint8_t> own = rater ? this->Scene->raterColors(this->Number) : std::vector<uint8_t>();
    rcn_slice_paint_codes(
      this->Layer.data(), this->Codes.data(), pixels, rater ? own.data() : this->Scene->patternColors().data());
  }
  if (this->values().empty())
  {
    return;
  }
  this->Layer.resize(static_cast<size_t>(4 * pixels));
  rcn_slice_paint_values(this->Layer.data(), this->Values.data(), pixels, this->Scene->lowestShown(), 2,
    this->Scene->probabilityColors(this->Scene->predictionOpacity()).data());
  if (this->Scene->hasHighlight())
  {
    std::array<uint8_t, 1024> magenta{};
    for (size_t i = 0; i < magenta.size(); i += 4)
    {
      magenta[i] = 255;
      magenta[i + 2] = 200;
      magenta[i + 3] = 215;
    }
    rcn_slice_paint_values(this->Layer.data(), this->Values.data(), pixels, this->Scene->highlightLower(),
      this->Scene->highlightUpper(), magenta.data());
  }
}

void rcnSliceRenderer::drawOutlines(Pen& pen)
{
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
    for (int r = 0; r < this->Scene->raterCount(); ++r)
    {
      pen.Colors.push_back(this->Scene->raterColor(r).rgb());
    }
    rcn_slice_outlines(this->Scene->votes(), this->Codes.data(), this->Size, raters, &Pen::drawSegment, &pen);
  }
}

void rcnSliceRenderer::drawContours(const Pen& pen)
{
  if (this->values().empty())
  {
    return;
  }
  if (this->Scene->areLevelContoursVisible())
  {
    const int raters = std::max(this->Scene->raterCount(), 1);
    for (int k = 1; k <= raters; ++k)
    {
      this->drawContour(pen, this->Values, (k - 0.5) / raters,
        qRcnStyle::levelColor(this->Scene->levelPalette(), static_cast<double>(k) / raters).rgb());
    }
  }
  if (this->Scene->isThresholdContourVisible())
  {
    this->drawContour(pen, this->Values, this->Scene->threshold(), qRgb(255, 255, 255));
  }
}

void rcnSliceRenderer::drawContour(const Pen& pen, const std::vector<float>& values, double level, QRgb color)
{
  rcn_contours* contours = nullptr;
  if (rcn_contours_create(&contours, this->Scene->context(), values.data(), this->Size[0], this->Size[1], level) != RCN_OK)
  {
    return;
  }
  for (int64_t line = 0; line < contours->lines; ++line)
  {
    const int64_t first = contours->first[line], end = contours->first[line + 1];
    for (int64_t i = first; i < end; ++i)
    {
      const float *a = contours->xy + 2 * i, *b = contours->xy + 2 * (i + 1 < end ? i + 1 : first);
      // Pixels have their center at a half there, at a whole number here.
      pen.line(a[0] - 0.5, a[1] - 0.5, b[0] - 0.5, b[1] - 0.5, color);
    }
  }
  rcn_contours_destroy(contours, this->Scene->context());
}

void rcnSliceRenderer::drawOthers(const Pen& pen)
{
  if (this->What != Content::Scene || this->Scene->outlines().empty())
  {
    return;
  }
  const rcn_slice slice = { this->Shown.Plane.axis, this->Shown.Slice };
  std::vector<float> values(static_cast<size_t>(this->Size[0] * this->Size[1]));
  for (const qRcnScene::Outline& outline : this->Scene->outlines())
  {
    const bool raters = !outline.Table.empty();
    const bool visible = raters ? this->Scene->areContoursVisible() : this->Scene->isThresholdContourVisible();
    const auto read = [&] {
      return raters ? rcn_slice_expand(values.data(), this->Scene->context(), this->Scene->votes(), outline.Table.data(), slice)
                    : rcn_slice_readout(values.data(), this->Scene->context(), &outline.Map.View(), outline.Readout,
                        outline.ReadoutNumber, slice);
    };
    if (visible && read() == RCN_OK)
    {
      this->drawContour(pen, values, raters ? 0.5 : this->Scene->threshold(), outline.Color.rgb());
    }
  }
}
