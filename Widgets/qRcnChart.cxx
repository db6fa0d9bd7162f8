// SPDX-License-Identifier: Apache-2.0
#include "qRcnChart.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>

#include "qRcnStyle.h"

namespace
{

/// Where a value lies on its axis: 0 at the low end, 1 at the high one. On a logarithmic axis what is 0 or less stands at a
/// thousandth of the low end, below the plot, where it is cut.
double Share(const qRcnChart::Axis& axis, double value)
{
  if (axis.Log)
  {
    return std::log(std::max(value, axis.Low * 1e-3) / axis.Low) / std::log(axis.High / axis.Low);
  }
  return (value - axis.Low) / (axis.High - axis.Low);
}

} // namespace

qRcnChart::qRcnChart(QWidget* parent) : QWidget(parent)
{
  this->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void qRcnChart::setAxes(const Axis& x, const Axis& y)
{
  this->X = x;
  this->Y = y;
  this->update();
}

// Smaller than the text around it, but legible.
QFont qRcnChart::tickFont() const
{
  QFont font = this->font();
  font.setPointSizeF(std::max(font.pointSizeF() * 0.86, 6.0));
  return font;
}

// Computed anew each time from the font and the size: there is nothing that could be out of date.
QRectF qRcnChart::plotArea() const
{
  const QFontMetricsF ticks(this->tickFont()), words(this->font());
  // The same for all charts of a font, so that they can stand below each other.
  const double number = ticks.horizontalAdvance(QStringLiteral("100\u00a0%"));
  const double left = this->Y.Labels ? words.height() + number + 10 : 2;
  const double bottom = this->X.Labels ? ticks.height() + (this->X.Title.isEmpty() ? 4 : words.height() + 6) : 5;
  const double right = (this->Y.Labels || this->X.Labels ? number / 2 : 0) + 2;
  const double top = ticks.height() / 2 + 1;
  return QRectF(left, top, std::max(this->width() - left - right, 10.0), std::max(this->height() - top - bottom, 10.0));
}

QPointF qRcnChart::toPixel(double x, double y) const
{
  const QRectF area = this->plotArea();
  return QPointF(area.left() + Share(this->X, x) * area.width(), area.bottom() - Share(this->Y, y) * area.height());
}

double qRcnChart::xAt(double pixel) const
{
  const QRectF area = this->plotArea();
  const double share = (pixel - area.left()) / area.width();
  return this->X.Log ? this->X.Low * std::pow(this->X.High / this->X.Low, share)
                     : this->X.Low + share * (this->X.High - this->X.Low);
}

// Steps of 1, 2 or 5 times a power of ten, as many as fit; on a logarithmic axis whole powers, every one or every second ...
QVector<double> qRcnChart::ticks(const Axis& axis, int most)
{
  QVector<double> values;
  most = std::max(most, 2);
  if (axis.Log)
  {
    const int first = static_cast<int>(std::ceil(std::log10(axis.Low) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log10(axis.High) + 1e-9));
    const int step = std::max((last - first) / most + 1, 1);
    for (int power = first; power <= last; power += step)
    {
      values << std::pow(10.0, power);
    }
    return values;
  }
  double step = std::pow(10.0, std::floor(std::log10((axis.High - axis.Low) / most)));
  // 1, 2, 5, 10, 20, ...: what the step is multiplied with, one after another.
  const double larger[] = { 2, 2.5, 2 };
  for (int i = 0; (axis.High - axis.Low) / step > most; ++i)
  {
    step *= larger[i % 3];
  }
  // Epochs, votes: no tick between two numbers.
  if (axis.Whole)
  {
    step = std::max(std::round(step), 1.0);
  }
  // Counted in steps, so that rounding does not add up; the small numbers let a tick at either end count.
  for (double i = std::ceil(axis.Low / step - 1e-9); i * step <= axis.High + step * 1e-9; ++i)
  {
    values << i * step;
  }
  return values;
}

QString qRcnChart::tickText(const Axis& axis, double value, double step) const
{
  if (axis.Log)
  {
    return value >= 1e6 ? QString::number(value / 1e6) + tr("M")
      : value >= 1e3    ? QString::number(value / 1e3) + tr("k")
                        : QString::number(value);
  }
  const double unit = axis.Percent ? 100 : 1;
  // As many digits as the step needs: all labels of an axis have the same number.
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step * unit) - 1e-9)));
  return QString::number(value * unit, 'f', digits) + (axis.Percent ? QStringLiteral("\u00a0%") : QString());
}

QString qRcnChart::hintAt(const QPointF&) const
{
  return QString();
}

void qRcnChart::paintEvent(QPaintEvent*)
{
  QPainter painter(this);
  const QRectF area = this->plotArea();
  const QPalette& palette = this->palette();
  const QColor grid = qRcnStyle::grid(palette), ink = qRcnStyle::muted(palette);
  painter.fillRect(area, palette.color(QPalette::Base));

  const QFont small = this->tickFont();
  const QFontMetricsF metrics(small);
  painter.setFont(small);
  const QVector<double> columns =
    ticks(this->X, static_cast<int>(area.width() / (metrics.horizontalAdvance(QStringLiteral("100\u00a0%")) * 1.6)));
  const QVector<double> rows = ticks(this->Y, static_cast<int>(area.height() / (metrics.height() * 1.9)));
  for (const double x : columns)
  {
    // The middle of a pixel: a line of width 1 is then sharp.
    const double at = std::round(this->toPixel(x, this->Y.Low).x()) + 0.5;
    painter.setPen(grid);
    painter.drawLine(QPointF(at, area.top()), QPointF(at, area.bottom()));
    if (this->X.Labels)
    {
      painter.setPen(ink);
      painter.drawText(QRectF(at - 60, area.bottom() + 3, 120, metrics.height()), Qt::AlignHCenter | Qt::AlignTop,
        this->tickText(this->X, x, columns.size() > 1 ? columns[1] - columns[0] : 1));
    }
  }
  for (const double y : rows)
  {
    const double at = std::round(this->toPixel(this->X.Low, y).y()) + 0.5;
    painter.setPen(grid);
    painter.drawLine(QPointF(area.left(), at), QPointF(area.right(), at));
    if (this->Y.Labels)
    {
      painter.setPen(ink);
      painter.drawText(QRectF(0, at - metrics.height() / 2, area.left() - 5, metrics.height()),
        Qt::AlignRight | Qt::AlignVCenter, this->tickText(this->Y, y, rows.size() > 1 ? rows[1] - rows[0] : 1));
    }
  }
  painter.setFont(this->font());
  painter.setPen(ink);
  const QFontMetricsF words(this->font());
  if (this->X.Labels)
  {
    painter.drawText(QRectF(area.left(), this->height() - words.height() - 1, area.width(), words.height()),
      Qt::AlignHCenter | Qt::AlignVCenter, words.elidedText(this->X.Title, Qt::ElideRight, area.width()));
  }
  painter.save();
  painter.translate(words.height() / 2 + 1, area.center().y());
  painter.rotate(-90);
  painter.drawText(QRectF(-area.height() / 2, -words.height() / 2, area.height(), words.height()), Qt::AlignCenter,
    words.elidedText(this->Y.Title, Qt::ElideRight, area.height()));
  painter.restore();

  painter.save();
  // What a chart draws must not leave its area; the pixel around it is for lines along the border.
  painter.setClipRect(area.adjusted(-1, -1, 1, 1));
  painter.setRenderHint(QPainter::Antialiasing);
  this->paintPlot(painter);
  painter.restore();

  painter.setBrush(Qt::NoBrush);
  painter.setPen(
    this->hasFocus() ? palette.color(QPalette::Highlight) : qRcnStyle::mixed(grid, palette.color(QPalette::Text), 0.3));
  painter.drawRect(area);
}

bool qRcnChart::event(QEvent* event)
{
  if (event->type() == QEvent::ToolTip)
  {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString hint = this->plotArea().contains(help->pos()) ? this->hintAt(help->pos()) : QString();
    if (!hint.isEmpty())
    {
      QToolTip::showText(help->globalPos(), hint, this);
      return true;
    }
  }
  return QWidget::event(event);
}

qRcnCurves::qRcnCurves(QWidget* parent) : qRcnChart(parent), Mark(NAN) {}

// The axes grow with the curves: a training that goes on needs more room to the right, and the losses tell how high.
void qRcnCurves::setCurves(const QVector<Curve>& curves, const Axis& x, const Axis& y)
{
  this->Curves = curves;
  Axis across = x, up = y;
  double last = 1, least = INFINITY, most = 0;
  for (const Curve& curve : curves)
  {
    for (const QPointF& point : curve.Points)
    {
      last = std::max(last, point.x());
      if (std::isfinite(point.y()))
      {
        least = std::min(least, point.y());
        most = std::max(most, point.y());
      }
    }
  }
  across.High = std::max(x.High, last);
  up.Low = 0;
  up.High = most > 0 ? most * 1.08 : 1;
  // A logarithm of 0 or of a single value shows nothing.
  if (y.Log && least < most && least > 0)
  {
    up.Low = least / 1.2;
  }
  else
  {
    up.Log = false;
  }
  this->setAxes(across, up);
}

void qRcnCurves::setMark(double x, const QString& word)
{
  this->Mark = x;
  this->MarkWord = word;
  this->update();
}

void qRcnCurves::paintPlot(QPainter& painter)
{
  const QRectF area = this->plotArea();
  if (std::isfinite(this->Mark))
  {
    const double x = this->toPixel(this->Mark, this->yAxis().Low).x();
    painter.setPen(QPen(qRcnStyle::muted(this->palette()), 1, Qt::DashLine));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    const double width = QFontMetricsF(this->font()).horizontalAdvance(this->MarkWord);
    // The word on the side where there is room for it.
    const bool left = x + width + 8 > area.right();
    painter.setPen(qRcnStyle::muted(this->palette()));
    painter.drawText(QRectF(left ? x - width - 4 : x + 4, area.bottom() - 20, width + 2, 16), Qt::AlignCenter, this->MarkWord);
  }
  for (const Curve& curve : this->Curves)
  {
    QPainterPath path;
    // A value that is not there (NaN) is a gap in the line.
    bool begun = false;
    for (const QPointF& point : curve.Points)
    {
      if (!std::isfinite(point.y()))
      {
        begun = false;
        continue;
      }
      const QPointF at = this->toPixel(point.x(), point.y());
      begun ? path.lineTo(at) : path.moveTo(at);
      begun = true;
    }
    painter.setPen(QPen(curve.Color, 2, curve.Dashed ? Qt::DashLine : Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    // Dots show which points there are; more of them would only make the line thick.
    if (curve.Points.size() <= 40)
    {
      painter.setPen(Qt::NoPen);
      painter.setBrush(curve.Color);
      for (const QPointF& point : curve.Points)
      {
        if (std::isfinite(point.y()))
        {
          painter.drawEllipse(this->toPixel(point.x(), point.y()), 2.8, 2.8);
        }
      }
    }
  }
  // The key, where falling curves leave room.
  const QFontMetricsF metrics(this->font());
  double y = area.top() + 5;
  for (const Curve& curve : this->Curves)
  {
    const double width = metrics.horizontalAdvance(curve.Name);
    const QRectF words(area.right() - width - 8, y, width, metrics.height());
    painter.fillRect(words.adjusted(-24, -1, 4, 1), this->palette().color(QPalette::Base));
    painter.setPen(QPen(curve.Color, 2, curve.Dashed ? Qt::DashLine : Qt::SolidLine));
    painter.drawLine(QPointF(words.left() - 22, words.center().y()), QPointF(words.left() - 5, words.center().y()));
    painter.setPen(this->palette().color(QPalette::Text));
    painter.drawText(words, Qt::AlignVCenter, curve.Name);
    y += metrics.height() + 2;
  }
}

QString qRcnCurves::hintAt(const QPointF& position) const
{
  // All curves at the x nearest to the pointer.
  double nearest = NAN;
  for (const Curve& curve : this->Curves)
  {
    for (const QPointF& point : curve.Points)
    {
      // Written with "not at least as far", so that the first point replaces NaN.
      if (!(std::fabs(this->toPixel(point.x(), 1).x() - position.x()) >=
            std::fabs(this->toPixel(nearest, 1).x() - position.x())))
      {
        nearest = point.x();
      }
    }
  }
  QStringList lines;
  for (const Curve& curve : this->Curves)
  {
    for (const QPointF& point : curve.Points)
    {
      if (point.x() == nearest && std::isfinite(point.y()))
      {
        lines << QStringLiteral("%1: %2").arg(
          curve.Name, this->yAxis().Percent ? qRcnStyle::percent(point.y(), 2) : QString::number(point.y(), 'g', 4));
      }
    }
  }
  if (!lines.isEmpty())
  {
    lines.prepend(QStringLiteral("%1 %2").arg(this->xAxis().Title).arg(nearest));
  }
  return lines.join('\n');
}
