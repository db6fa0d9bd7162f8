// SPDX-License-Identifier: Apache-2.0
#include "rcnColorBar.h"

#include <algorithm>

#include <QFontMetricsF>
#include <QPainter>

#include "qRcnStyle.h"
#include "rcnNames.h"

rcnColorBar::rcnColorBar(const qRcnScene& scene, rcnSliceRenderer::Content content, int number)
{
  using Content = rcnSliceRenderer::Content;
  const int prediction = content == Content::Prediction ? number : content == Content::Scene ? scene.shownPrediction() : -1;
  if (prediction >= 0 && prediction < scene.predictionCount())
  {
    this->addProbabilities(scene, prediction);
  }
  else if (content == Content::Consensus || (content == Content::Scene && scene.isHeatMapVisible()))
  {
    this->addLevels(scene);
  }
}

void rcnColorBar::addLevels(const qRcnScene& scene)
{
  const int raters = scene.levelVolumes().size() - 1;
  for (int level = 0; level <= raters; ++level)
  {
    const bool shown = scene.isolatedLevel() < 0 ? level > 0 : level == scene.isolatedLevel();
    this->Steps.push_back(
      shown ? qRcnStyle::levelColor(scene.levelPalette(), static_cast<double>(level) / std::max(raters, 1)) : QColor());
    this->Labels.push_back({ (level + 0.5) / (raters + 1),
      level == 0          ? qRcnScene::tr("none")
        : level == raters ? (raters > 1 ? qRcnScene::tr("all %1").arg(raters) : QString::number(raters))
                          : QString::number(level) });
  }
  this->Title = QStringList(qRcnScene::tr("raters"));
}

void rcnColorBar::addProbabilities(const qRcnScene& scene, int prediction)
{
  const int steps = 100;
  for (int i = 0; i < steps; ++i)
  {
    const double share = (i + 0.5) / steps;
    this->Steps.push_back(share >= scene.lowestShown() ? qRcnStyle::levelColor(scene.levelPalette(), share) : QColor());
  }
  for (const double share : { 0.0, 0.25, 0.5, 0.75, 1.0 })
  {
    this->Labels.push_back({ share, qRcnStyle::percent(share) });
  }
  this->Mark = scene.isThresholdContourVisible() ? scene.threshold() : -1;
  this->Title << scene.prediction(prediction).Name;
  if (scene.prediction(prediction).hasLevels())
  {
    const int number = scene.readoutNumber();
    this->Title << (scene.readout() == RCN_SLICE_LEVEL
        ? qRcnScene::tr("exactly %1").arg(qRcnStyle::counted(number, "rater"))
        : QString::fromStdString(rcn::ReadoutLabel(static_cast<rcn_readout>(scene.readout()), number)).toLower());
  }
}

QStringList rcnColorBar::labels() const
{
  QStringList texts;
  for (const Label& label : this->Labels)
  {
    texts << label.Text;
  }
  return texts;
}

void rcnColorBar::draw(QPainter& painter, const QRectF& panel, double fromEdge) const
{
  if (this->isEmpty())
  {
    return;
  }
  QFont font = painter.font();
  font.setPixelSize(11);
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  // Above and below it stand other texts.
  const double titles = (static_cast<double>(this->Title.size()) + 0.5) * metrics.height() + 2, above = 22 + titles, below = 62;
  const double high = std::min(std::min(0.45 * panel.height(), 200.0), panel.height() - above - below), wide = 12;
  if (high < 30 || panel.width() < 90)
  {
    return; // it would hide the picture
  }
  const double top =
    std::min(std::max(panel.center().y() - (high - titles) / 2, panel.top() + above), panel.bottom() - below - high);
  const QRectF bar(panel.right() - fromEdge - wide, top, wide, high);
  const auto write = [&painter](const QRectF& room, const QString& text) {
    qRcnStyle::drawOverImage(painter, room, Qt::AlignRight | Qt::AlignVCenter, text, QColor(225, 225, 225));
  };
  painter.fillRect(bar, QColor(0, 0, 0, 160));
  const double step = high / static_cast<double>(this->Steps.size());
  for (size_t i = 0; i < this->Steps.size(); ++i)
  {
    if (this->Steps[i].isValid())
    {
      // Down to the bottom: no seams between the steps.
      painter.fillRect(
        QRectF(bar.left(), bar.bottom() - (static_cast<double>(i) + 1) * step, wide, step + (i ? 0.5 : 0)), this->Steps[i]);
    }
  }
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QColor(225, 225, 225, 180));
  painter.drawRect(bar);
  if (this->Mark >= 0)
  {
    painter.setPen(QPen(Qt::white, 2));
    painter.drawLine(
      QPointF(bar.left() - 2, bar.bottom() - this->Mark * high), QPointF(bar.right() + 2, bar.bottom() - this->Mark * high));
  }
  // As many labels as there is room for: the top one always, then every second, third, ... down from it.
  const size_t count = this->Labels.size();
  size_t every = 1;
  while (
    every < count && high * static_cast<double>(every) / static_cast<double>(std::max<size_t>(count, 2) - 1) < metrics.height())
  {
    ++every;
  }
  for (size_t i = 0; i < count; i += every)
  {
    const Label& label = this->Labels[count - 1 - i];
    const double y = bar.bottom() - label.At * high;
    write(QRectF(panel.left(), y - metrics.height() / 2, bar.left() - 5 - panel.left(), metrics.height()), label.Text);
  }
  for (int i = 0; i < this->Title.size(); ++i)
  {
    const double y = bar.top() - metrics.height() / 2 - 2 - (static_cast<double>(this->Title.size()) - i) * metrics.height();
    write(QRectF(panel.left(), y, bar.right() - panel.left(), metrics.height()),
      metrics.elidedText(this->Title[i], Qt::ElideMiddle, bar.right() - panel.left() - 8));
  }
}
