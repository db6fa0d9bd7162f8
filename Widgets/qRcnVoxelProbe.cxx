// SPDX-License-Identifier: Apache-2.0
#include "qRcnVoxelProbe.h"

#include <algorithm>

#include <QFontMetricsF>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

#include "qRcnStyle.h"

namespace
{

/// Raters by name and color, in rows that wrap: filled who marked, hollow who did not, struck out who did not answer.
class Chips : public QWidget
{
public:
  explicit Chips(QWidget* parent) : QWidget(parent)
  {
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    policy.setHeightForWidth(true);
    this->setSizePolicy(policy);
  }

  QStringList Raters;
  uint64_t Marked = 0, Answered = 0;
  bool Any = false;

  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override { return this->arrange(width, nullptr); }
  QSize sizeHint() const override { return QSize(200, this->arrange(200, nullptr)); }
  QSize minimumSizeHint() const override { return QSize(100, this->lineHeight()); }

protected:
  void paintEvent(QPaintEvent*) override
  {
    QPainter painter(this);
    this->arrange(this->width(), &painter);
  }

private:
  int lineHeight() const { return this->fontMetrics().height() + 4; }

  /// Lays out and, with a painter, draws: one code for both, so that the height that is asked for is the one that is used.
  int arrange(int width, QPainter* painter) const
  {
    const QFontMetrics metrics = this->fontMetrics();
    int x = 0, y = 0;
    for (int r = 0; r < this->Raters.size(); ++r)
    {
      const QString name = metrics.elidedText(this->Raters[r], Qt::ElideRight, std::max(width - 20, 20));
      const int wide = 16 + metrics.horizontalAdvance(name) + 10;
      // The gap behind the last one may stand over the edge.
      if (x > 0 && x + wide - 10 > width)
      {
        x = 0;
        y += this->lineHeight();
      }
      if (painter)
      {
        const bool marked = this->Any && this->Marked >> r & 1, answered = this->Any && this->Answered >> r & 1;
        qRcnStyle::paintDot(*painter, QPointF(x + 7, y + this->lineHeight() / 2.0), 5, qRcnStyle::raterColor(r), marked);
        QFont font = this->font();
        font.setBold(marked);
        font.setStrikeOut(this->Any && !answered);
        painter->setFont(font);
        painter->setPen(marked ? this->palette().color(QPalette::WindowText) : qRcnStyle::muted(this->palette()));
        painter->drawText(QRect(x + 16, y, wide, this->lineHeight()), Qt::AlignVCenter | Qt::AlignLeft, name);
      }
      x += wide;
    }
    return y + this->lineHeight();
  }
};

/// How likely 0, 1, ... K raters mark the voxel; a mark says how many did.
class Bars : public QWidget
{
public:
  using QWidget::QWidget;
  QVector<double> Levels;
  QString Map;
  int Votes = -1;
  rcn_palette Palette = RCN_PALETTE_GREEN;

  QSize sizeHint() const override { return QSize(240, this->fontMetrics().height() * 3 + 70); }
  QSize minimumSizeHint() const override { return QSize(140, this->fontMetrics().height() * 3 + 40); }

protected:
  void paintEvent(QPaintEvent*) override
  {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const int high = this->fontMetrics().height();
    const QRectF room(0.5, high + 2.5, this->width() - 1, this->height() - 3 * high - 8);
    painter.fillRect(room, this->palette().color(QPalette::Base));
    const int count = this->Levels.size();
    const double step = count ? room.width() / count : 0;
    // The height is 50 % or more, so that a spread-out distribution can be read too.
    const double full = count ? std::max(0.5, *std::max_element(this->Levels.begin(), this->Levels.end())) : 1;
    for (int k = 0; k < count; ++k)
    {
      const double share = std::min(std::max(this->Levels[k], 0.0), 1.0);
      const QRectF column(room.left() + k * step, room.top(), step, room.height());
      QRectF bar = column.adjusted(step * 0.12, 0, -step * 0.12, 0);
      bar.setTop(bar.bottom() - std::max(share / full * bar.height(), 1.0));
      painter.fillRect(bar,
        k == 0 ? qRcnStyle::grid(this->palette()).darker(qRcnStyle::isDark(this->palette()) ? 80 : 125)
               : qRcnStyle::levelColor(this->Palette, static_cast<double>(k) / (count - 1)));
      painter.setPen(QColor(128, 128, 128, 160));
      painter.drawRect(bar);
      // Numbers where there is room for them.
      if (step > this->fontMetrics().horizontalAdvance(QStringLiteral("100 %")))
      {
        painter.setPen(this->palette().color(QPalette::WindowText));
        painter.drawText(
          QRectF(column.left(), std::max(bar.top() - high - 1, 0.0), step, high), Qt::AlignCenter, qRcnStyle::percent(share));
      }
      QFont font = this->font();
      font.setBold(k == this->Votes);
      painter.setFont(font);
      painter.setPen(k == this->Votes ? this->palette().color(QPalette::WindowText) : qRcnStyle::muted(this->palette()));
      painter.drawText(QRectF(column.left(), room.bottom() + 2, step, high), Qt::AlignCenter, QString::number(k));
      painter.setFont(this->font());
      if (k == this->Votes)
      {
        painter.setPen(QPen(this->palette().color(QPalette::WindowText), 2));
        painter.drawLine(
          QPointF(column.left() + step * 0.12, room.bottom()), QPointF(column.right() - step * 0.12, room.bottom()));
      }
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(qRcnStyle::muted(this->palette()));
    const QString caption = qRcnVoxelProbe::tr("raters who mark it, as %1 expects").arg(this->Map);
    const bool fits = !this->Map.isEmpty() && this->fontMetrics().horizontalAdvance(caption) <= this->width();
    painter.drawText(QRectF(0, this->height() - high - 2, this->width(), high), Qt::AlignCenter,
      fits ? caption : qRcnVoxelProbe::tr("raters who mark it"));
    painter.setPen(qRcnStyle::grid(this->palette()));
    painter.drawLine(room.bottomLeft(), room.bottomRight());
  }
};

} // namespace

class qRcnVoxelProbePrivate
{
public:
  /// The mean share of raters, from the levels; a map without levels says it itself.
  double expected() const
  {
    const int raters = this->Voxel.Levels.size() - 1;
    double sum = 0;
    for (int k = 1; k <= raters; ++k)
    {
      sum += this->Voxel.Levels[k] * k / raters;
    }
    return raters > 0 ? sum : this->Voxel.Probability;
  }

  double atLeast(double raters) const
  {
    double sum = 0;
    for (int k = 0; k < this->Voxel.Levels.size(); ++k)
    {
      sum += k >= raters ? this->Voxel.Levels[k] : 0;
    }
    return sum;
  }

  /// Who did not answer does not count: "2 of 3" is of those who did.
  QString sentence() const
  {
    const auto tr = [](const char* text) { return qRcnVoxelProbe::tr(text); };
    if (!this->Any)
    {
      return tr("Point at the image to see the raters and values of a voxel.");
    }
    const int answered = qRcnStyle::countRaters(this->Voxel.Answered);
    const int marked = qRcnStyle::countRaters(this->Voxel.Marked & this->Voxel.Answered);
    QString text = answered == 0 ? tr("No rater answered here")
      : answered == 1
      ? (marked ? tr("The one rater who answered marked this voxel") : tr("The one rater who answered did not mark this voxel"))
      : marked == 0        ? tr("None of %1 raters marked this voxel").arg(answered)
      : marked == answered ? tr("All %1 raters marked this voxel").arg(answered)
                           : tr("%1 of %2 raters marked this voxel").arg(marked).arg(answered);
    const double share = this->expected();
    if (std::isfinite(share))
    {
      text += (this->Voxel.Levels.isEmpty() ? tr("; %1 gives %2") : tr("; %1 expects %2"))
                .arg(this->Voxel.Map, qRcnStyle::percent(share));
    }
    return text + '.';
  }

  void refresh()
  {
    this->Sentence->setText(this->sentence());
    // What is not known (a picture without positions, a case without an image) is left out, not shown as a dash.
    QStringList place, inImage;
    if (this->Any)
    {
      if (std::isfinite(this->Voxel.Ras[0]))
      {
        place << qRcnStyle::position(this->Voxel.Ras, 1) + qRcnVoxelProbe::tr(" mm");
      }
      if (this->Voxel.Index[0] >= 0)
      {
        inImage << qRcnVoxelProbe::tr("voxel %1, %2, %3")
                     .arg(this->Voxel.Index[0])
                     .arg(this->Voxel.Index[1])
                     .arg(this->Voxel.Index[2]);
      }
      QStringList values;
      for (const double value : this->Voxel.Image)
      {
        values << QString::number(value, 'g', 5);
      }
      if (!values.isEmpty())
      {
        inImage << qRcnVoxelProbe::tr("image %1").arg(values.join(QStringLiteral(", ")));
      }
      place << inImage.join(QStringLiteral("  ·  "));
    }
    this->Place->setText(place.join('\n'));
    this->Who->Raters = this->Raters;
    this->Who->Marked = this->Voxel.Marked;
    this->Who->Answered = this->Voxel.Answered;
    this->Who->Any = this->Any;
    this->Who->update();
    this->Distribution->Map = this->Voxel.Map;
    this->Distribution->Levels = this->Any ? this->Voxel.Levels : QVector<double>();
    this->Distribution->Votes =
      this->Any && this->Voxel.Answered ? qRcnStyle::countRaters(this->Voxel.Marked & this->Voxel.Answered) : -1;
    this->Distribution->update();
    if (this->Any)
    {
      // No room is taken by what the case does not have; it stays while the pointer is elsewhere.
      this->Distribution->setVisible(!this->Voxel.Levels.isEmpty());
      this->Readouts->setVisible(!this->Voxel.Levels.isEmpty());
    }
    const int raters = this->Voxel.Levels.size() - 1;
    this->Readouts->setText(!this->Any || raters < 1
        ? QString()
        : qRcnVoxelProbe::tr("A majority marks it: %1. Any rater: %2. All of them: %3.")
            .arg(qRcnStyle::percent(this->atLeast(raters / 2.0)), qRcnStyle::percent(this->atLeast(1)),
              qRcnStyle::percent(this->atLeast(raters))));
  }

  QStringList Raters;
  qRcnVoxel Voxel;
  bool Any = false;
  QLabel *Sentence = nullptr, *Place = nullptr, *Readouts = nullptr;
  Chips* Who = nullptr;
  Bars* Distribution = nullptr;
};

qRcnVoxelProbe::qRcnVoxelProbe(QWidget* parent) : QWidget(parent), d(new qRcnVoxelProbePrivate)
{
  auto* p = this->d.get();
  p->Sentence = qRcnStyle::newNote(this, "sentence");
  p->Sentence->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  QFont bold = p->Sentence->font();
  bold.setBold(true);
  p->Sentence->setFont(bold);
  p->Place = qRcnStyle::newNote(this, "place");
  p->Place->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  p->Place->setToolTip(
    tr("Position in millimeters (R right, L left, A anterior, P posterior, S superior, I inferior), the voxel's "
       "numbers from 0, and the image's value there."));
  p->Who = new Chips(this);
  p->Who->setObjectName("who");
  p->Who->setToolTip(tr("Filled: marked this voxel. Hollow: did not. Struck out: did not answer here."));
  p->Distribution = new Bars(this);
  p->Distribution->setObjectName("bars");
  p->Distribution->setToolTip(
    tr("How likely it is, by the map that lies over the image, that so many raters mark this voxel. Bold: how many did."));
  p->Readouts = qRcnStyle::newNote(this, "readouts");
  p->Readouts->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  qRcnStyle::newColumn(this, { p->Sentence, p->Who, p->Distribution, p->Readouts, p->Place })->addStretch(1);
  // Until the pointer has met a voxel with levels.
  p->Distribution->hide();
  p->Readouts->hide();
  p->refresh();
}

qRcnVoxelProbe::~qRcnVoxelProbe() = default;

void qRcnVoxelProbe::resizeEvent(QResizeEvent* event)
{
  QWidget::resizeEvent(event);
  // As high as the longest of usual sentences, so that nothing jumps while the pointer moves.
  const int width = this->width() - 12;
  const auto reserve = [width](QLabel* label, const QString& text) {
    label->setMinimumHeight(label->fontMetrics().boundingRect(0, 0, width, 10000, Qt::TextWordWrap, text).height());
  };
  reserve(this->d->Sentence,
    tr("None of %1 raters marked this voxel; %2 gives %3.")
      .arg(10)
      .arg(QStringLiteral("soft-gaussian"), qRcnStyle::percent(1)));
  reserve(this->d->Readouts, tr("A majority marks it: %1. Any rater: %1. All of them: %1.").arg(qRcnStyle::percent(1)));
  const double far[3] = { -100, -100, -100 };
  reserve(this->d->Place,
    qRcnStyle::position(far, 1) + tr(" mm") + '\n' + tr("voxel %1, %1, %1").arg(100) + QStringLiteral("  ·  ") +
      tr("image %1").arg(1000));
}

void qRcnVoxelProbe::setRaters(const QStringList& raters)
{
  this->d->Raters = raters;
  this->d->refresh();
  this->d->Who->updateGeometry();
}

void qRcnVoxelProbe::setLevelPalette(rcn_palette palette)
{
  this->d->Distribution->Palette = palette;
  this->d->Distribution->update();
}

void qRcnVoxelProbe::setVoxel(const qRcnVoxel& voxel)
{
  this->d->Voxel = voxel;
  this->d->Any = true;
  this->d->refresh();
}

void qRcnVoxelProbe::clear()
{
  this->d->Voxel = qRcnVoxel();
  this->d->Any = false;
  this->d->refresh();
}

QString qRcnVoxelProbe::sentence() const
{
  return this->d->sentence();
}
