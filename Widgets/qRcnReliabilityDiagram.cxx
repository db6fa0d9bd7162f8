// SPDX-License-Identifier: Apache-2.0
#include "qRcnReliabilityDiagram.h"

#include <algorithm>
#include <cmath>

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QHeaderView>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QVBoxLayout>

#include "qRcnChart.h"
#include "qRcnStyle.h"

namespace
{

/// Each bin at its mean prediction, not at its middle: within a bin, predictions are seldom spread evenly. Empty bins have no
/// point.
QPainterPath CurveOf(const std::vector<rcn_calib_bin>& bins, const qRcnChart& chart)
{
  QPainterPath path;
  for (const rcn_calib_bin& bin : bins)
  {
    if (bin.count > 0)
    {
      const QPointF at = chart.toPixel(bin.confidence, bin.frequency);
      path.elementCount() ? path.lineTo(at) : path.moveTo(at);
    }
  }
  return path;
}

/// Where predicted and observed are the same.
void PaintIdeal(QPainter& painter, const qRcnChart& chart)
{
  painter.setPen(QPen(qRcnStyle::muted(chart.palette()), 1.3, Qt::DashLine));
  painter.drawLine(chart.toPixel(0, 0), chart.toPixel(1, 1));
}

/// From what is predicted to what raters do, as wide as the bin.
void PaintGaps(QPainter& painter, const qRcnChart& chart, const std::vector<rcn_calib_bin>& bins)
{
  QColor gap = qRcnStyle::warning(chart.palette());
  gap.setAlphaF(0.2);
  for (const rcn_calib_bin& bin : bins)
  {
    if (bin.count > 0)
    {
      painter.fillRect(
        QRectF(chart.toPixel(bin.lower, bin.confidence), chart.toPixel(bin.upper, bin.frequency)).normalized(), gap);
    }
  }
}

/// The 95 % interval: forth along its upper edge, back along the lower one.
void PaintBand(QPainter& painter, const qRcnChart& chart, const std::vector<rcn_calib_bin>& bins,
  const std::vector<double>& low, const std::vector<double>& high)
{
  QPolygonF upper, lower;
  for (size_t i = 0; i < bins.size() && i < low.size(); ++i)
  {
    if (bins[i].count > 0 && std::isfinite(low[i]) && std::isfinite(high[i]))
    {
      upper << chart.toPixel(bins[i].confidence, high[i]);
      lower.prepend(chart.toPixel(bins[i].confidence, low[i]));
    }
  }
  QColor color = qRcnStyle::accent(chart.palette());
  color.setAlphaF(0.25);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawPolygon(upper + lower);
  painter.setBrush(Qt::NoBrush);
}

/// The line of the model, with its points.
void PaintCurve(QPainter& painter, const qRcnChart& chart, const std::vector<rcn_calib_bin>& bins, double width, double radius)
{
  const QColor accent = qRcnStyle::accent(chart.palette());
  painter.setPen(QPen(accent, width, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.drawPath(CurveOf(bins, chart));
  painter.setPen(QPen(chart.palette().color(QPalette::Base), 1));
  painter.setBrush(accent);
  for (const rcn_calib_bin& bin : bins)
  {
    if (bin.count > 0)
    {
      painter.drawEllipse(chart.toPixel(bin.confidence, bin.frequency), radius, radius);
    }
  }
}

bool HasBand(const rcn::EvaluationReport& report)
{
  return std::any_of(report.BandLow.begin(), report.BandLow.end(), [](double low) { return std::isfinite(low); });
}

} // namespace

class qRcnReliabilityDiagramPrivate
{
public:
  /// What both charts show.
  struct Shown
  {
    rcn::EvaluationReport Report, Second;
    bool HasReport = false, HasSecond = false;
    QString Name, SecondName;
    QStringList Raters;
    std::vector<bool> RaterShown;
    int Selected = -1;
  };

  /// A chart whose bins can be chosen by click and arrow keys.
  class BinChart : public qRcnChart
  {
  public:
    BinChart(Shown& shown, std::function<void(int)> select, QWidget* parent)
      : qRcnChart(parent), Now(shown), Select(std::move(select))
    {
      this->setFocusPolicy(Qt::StrongFocus);
      this->setMouseTracking(true);
    }

  protected:
    /// [lower, upper), the last one closed, as the core counts.
    int binAt(double x) const
    {
      const auto& bins = this->Now.Report.Bins;
      for (size_t i = 0; this->Now.HasReport && i < bins.size(); ++i)
      {
        if (x >= bins[i].lower && (x < bins[i].upper || (i + 1 == bins.size() && x <= bins[i].upper + 1e-6)))
        {
          return static_cast<int>(i);
        }
      }
      return -1;
    }

    QString hintAt(const QPointF& position) const override
    {
      const int i = this->binAt(this->xAt(position.x()));
      return i < 0 ? QString() : qRcnReliabilityDiagramPrivate::inWords(this->Now, i);
    }

    /// In both charts, so that the bar and the point of a bin are seen to belong together.
    void paintSelection(QPainter& painter) const
    {
      if (this->Now.Selected >= 0)
      {
        const rcn_calib_bin& bin = this->Now.Report.Bins[static_cast<size_t>(this->Now.Selected)];
        const QRectF area = this->plotArea();
        const double left = this->toPixel(bin.lower, 1).x(), right = this->toPixel(bin.upper, 1).x();
        QColor color = this->palette().color(QPalette::Highlight);
        painter.setPen(QPen(color, 1.5));
        color.setAlphaF(0.22);
        painter.setBrush(color);
        painter.drawRect(QRectF(left, area.top() - 2, right - left, area.height() + 4));
      }
    }

    void mousePressEvent(QMouseEvent* event) override
    {
      if (event->button() != Qt::LeftButton || !this->plotArea().contains(event->pos()))
      {
        event->ignore();
        return;
      }
      const int bin = this->binAt(this->xAt(event->pos().x()));
      // A second click takes the choice back.
      this->Select(bin == this->Now.Selected ? -1 : bin);
    }

    void mouseMoveEvent(QMouseEvent* event) override
    {
      const bool over = this->Now.HasReport && this->plotArea().contains(event->pos());
      this->setCursor(over ? Qt::PointingHandCursor : Qt::ArrowCursor);
    }

    /// Everything that the mouse can do, for those who use none.
    void keyPressEvent(QKeyEvent* event) override
    {
      const int count = this->Now.HasReport ? static_cast<int>(this->Now.Report.Bins.size()) : 0;
      if (event->key() == Qt::Key_Escape && this->Now.Selected >= 0)
      {
        this->Select(-1);
      }
      else if (count > 0 && event->key() == Qt::Key_Right)
      {
        this->Select(std::min(this->Now.Selected + 1, count - 1));
      }
      else if (count > 0 && event->key() == Qt::Key_Left)
      {
        this->Select(this->Now.Selected < 0 ? count - 1 : std::max(this->Now.Selected - 1, 0));
      }
      else
      {
        qRcnChart::keyPressEvent(event);
      }
    }

    Shown& Now;

  private:
    std::function<void(int)> Select;
  };

  class Plot : public BinChart
  {
  public:
    using BinChart::BinChart;
    QSize sizeHint() const override { return QSize(320, 300); }
    QSize minimumSizeHint() const override { return QSize(200, 190); }

  protected:
    void paintPlot(QPainter& painter) override
    {
      const QPalette& palette = this->palette();
      PaintIdeal(painter, *this);
      if (!this->Now.HasReport)
      {
        painter.setPen(qRcnStyle::muted(palette));
        painter.drawText(this->plotArea().adjusted(20, 20, -20, -20), Qt::AlignCenter | Qt::TextWordWrap,
          qRcnReliabilityDiagram::tr("Evaluate a prediction to see how well its probabilities match the raters."));
        return;
      }
      PaintGaps(painter, *this, this->Now.Report.Bins);
      PaintBand(painter, *this, this->Now.Report.Bins, this->Now.Report.BandLow, this->Now.Report.BandHigh);
      for (size_t r = 0; r < this->Now.RaterShown.size() && r < this->Now.Report.RaterBins.size(); ++r)
      {
        if (this->Now.RaterShown[r])
        {
          painter.setPen(QPen(qRcnStyle::raterColor(static_cast<int>(r)), 1.6));
          painter.drawPath(CurveOf(this->Now.Report.RaterBins[r], *this));
        }
      }
      if (this->Now.HasSecond)
      {
        painter.setPen(QPen(secondColor(palette), 1.8));
        painter.drawPath(CurveOf(this->Now.Second.Bins, *this));
      }
      PaintCurve(painter, *this, this->Now.Report.Bins, 2.4, 3.6);
      this->paintSelection(painter);
    }
  };

  /// One of several small diagrams, without numbers at its axes: how often so many raters mark a voxel.
  class LevelPlot : public qRcnChart
  {
  public:
    LevelPlot(const rcn::LevelDiagram& level, const std::vector<rcn_calib_bin>& second, QWidget* parent)
      : qRcnChart(parent), Level(level), Second(second)
    {
      Axis axis;
      axis.Labels = false;
      this->setAxes(axis, axis);
    }
    QSize sizeHint() const override { return QSize(130, 120); }
    QSize minimumSizeHint() const override { return QSize(80, 80); }

  protected:
    void paintPlot(QPainter& painter) override
    {
      PaintIdeal(painter, *this);
      PaintGaps(painter, *this, this->Level.Bins);
      PaintBand(painter, *this, this->Level.Bins, this->Level.BandLow, this->Level.BandHigh);
      painter.setPen(QPen(secondColor(this->palette()), 1.5));
      painter.drawPath(CurveOf(this->Second, *this));
      PaintCurve(painter, *this, this->Level.Bins, 2, 2.6);
    }

    QString hintAt(const QPointF& position) const override
    {
      const double x = this->xAt(position.x());
      for (const rcn_calib_bin& bin : this->Level.Bins)
      {
        if (bin.count > 0 && x >= bin.lower && x < bin.upper)
        {
          return qRcnReliabilityDiagram::tr("predicted %1, true of %2 (%3)")
            .arg(qRcnStyle::percent(bin.confidence, 1), qRcnStyle::percent(bin.frequency, 1),
              qRcnStyle::counted(bin.count, "voxel"));
        }
      }
      return QString();
    }

  private:
    rcn::LevelDiagram Level;
    std::vector<rcn_calib_bin> Second; ///< empty: there is none
  };

  class Histogram : public BinChart
  {
  public:
    using BinChart::BinChart;
    QSize sizeHint() const override { return QSize(320, 110); }
    QSize minimumSizeHint() const override { return QSize(200, 90); }

  protected:
    void paintPlot(QPainter& painter) override
    {
      const QColor bar = qRcnStyle::mixed(qRcnStyle::accent(this->palette()), qRcnStyle::muted(this->palette()), 0.55);
      for (const rcn_calib_bin& bin : this->Now.HasReport ? this->Now.Report.Bins : std::vector<rcn_calib_bin>())
      {
        if (bin.count > 0)
        {
          const QPointF top = this->toPixel(bin.lower, static_cast<double>(bin.count));
          const QPointF foot = this->toPixel(bin.upper, this->yAxis().Low);
          painter.fillRect(QRectF(top, foot).adjusted(0.7, 0, -0.7, 0), bar);
        }
      }
      this->paintSelection(painter);
    }
  };

  static QColor secondColor(const QPalette& palette)
  {
    return qRcnStyle::isDark(palette) ? QColor(0xd9, 0x9b, 0x5c) : QColor(0xa8, 0x62, 0x12);
  }

  /// One bin, for the pointer and for the line below.
  static QString inWords(const Shown& shown, int index)
  {
    const rcn_calib_bin& bin = shown.Report.Bins[static_cast<size_t>(index)];
    const QString range =
      qRcnReliabilityDiagram::tr("%1 to %2").arg(qRcnStyle::percent(bin.lower, 1), qRcnStyle::percent(bin.upper, 1));
    if (bin.count == 0)
    {
      return qRcnReliabilityDiagram::tr("%1: no voxel").arg(range);
    }
    QString text = qRcnReliabilityDiagram::tr("%1: predicted %2, marked by %3 of the raters (%4)")
                     .arg(range, qRcnStyle::percent(bin.confidence, 1), qRcnStyle::percent(bin.frequency, 1),
                       qRcnStyle::counted(bin.count, "vote"));
    const size_t i = static_cast<size_t>(index);
    if (i < shown.Report.BandLow.size() && std::isfinite(shown.Report.BandLow[i]))
    {
      text += qRcnReliabilityDiagram::tr("; 95 % interval %1 to %2")
                .arg(qRcnStyle::percent(shown.Report.BandLow[i], 1), qRcnStyle::percent(shown.Report.BandHigh[i], 1));
    }
    for (size_t r = 0; r < shown.RaterShown.size() && r < shown.Report.RaterBins.size(); ++r)
    {
      const auto& own = shown.Report.RaterBins[r];
      if (shown.RaterShown[r] && i < own.size() && own[i].count > 0)
      {
        text +=
          QStringLiteral("\n%1: %2").arg(shown.Raters.value(static_cast<int>(r)), qRcnStyle::percent(own[i].frequency, 1));
      }
    }
    return text;
  }

  /// The one way to change which bin is chosen; tell: others should show its voxels.
  void select(int index, bool tell)
  {
    if (index == this->Now.Selected)
    {
      return;
    }
    this->Now.Selected = index;
    this->refreshSelection();
    if (tell)
    {
      const bool any = index >= 0;
      emit this->Owner->binSelected(any ? this->Now.Report.Bins[static_cast<size_t>(index)].lower : -1,
        any ? this->Now.Report.Bins[static_cast<size_t>(index)].upper : -1);
    }
  }

  void refreshSelection()
  {
    const bool any = this->Now.Selected >= 0;
    this->Selection->setText(any ? inWords(this->Now, this->Now.Selected)
        : this->Now.HasReport    ? qRcnReliabilityDiagram::tr("Click a bin to see its voxels in the image.")
                                 : QString());
    this->Curve->update();
    this->Votes->update();
  }

  QString headline() const
  {
    const rcn_interval& interval = this->Now.Report.Interval[RCN_MR_ECE];
    QString head =
      qRcnReliabilityDiagram::tr("<b>MR-ECE %1</b>").arg(qRcnStyle::percent(this->Now.Report.Figures[RCN_MR_ECE], 2));
    if (interval.units > 0 && std::isfinite(interval.low))
    {
      head += qRcnReliabilityDiagram::tr(" (%1 to %2)")
                .arg(qRcnStyle::percent(interval.low, 2), qRcnStyle::percent(interval.high, 2));
    }
    if (this->Now.Report.FittedHere) // beside the number, which would be too good to be true
    {
      head += qRcnReliabilityDiagram::tr(" on the case that the correction was fitted to");
    }
    if (this->Now.HasSecond)
    {
      head += qRcnReliabilityDiagram::tr("; %1: %2")
                .arg(this->Now.SecondName.toHtmlEscaped(), qRcnStyle::percent(this->Now.Second.Figures[RCN_MR_ECE], 2));
    }
    return head;
  }

  QString words() const
  {
    const rcn::EvaluationReport& report = this->Now.Report;
    QStringList words;
    words << qRcnReliabilityDiagram::tr(
      "On average, the predicted probability and the share of raters who mark the voxel differ by %1.")
               .arg(qRcnStyle::percent(report.Figures[RCN_MR_ECE], 1));
    words << QString::fromStdString(rcn::DirectionInWords(report)) << QString::fromStdString(rcn::WorstBinInWords(report));
    for (const std::string& remark : rcn::RemarksInWords(report))
    {
      words << QString::fromStdString(remark);
    }
    words.removeAll(QString());
    return words.join(' ').replace(QStringLiteral(" %"), QStringLiteral("\u00a0%"));
  }

  /// What each line and color of the plot stands for.
  QString key() const
  {
    const QPalette& palette = this->Owner->palette();
    const auto pale = [&palette](const QColor& color) { return qRcnStyle::mixed(palette.color(QPalette::Base), color, 0.45); };
    QStringList keys;
    const auto add = [&keys](const QColor& color, const QString& sign, const QString& text) {
      keys << QStringLiteral("<span style='white-space:nowrap'><span style='color:%1'><b>%2</b></span>&nbsp;%3</span>")
                .arg(color.name(), sign, text);
    };
    add(qRcnStyle::accent(palette), QStringLiteral("━"), this->Now.Name.toHtmlEscaped());
    if (this->Now.HasSecond)
    {
      add(secondColor(palette), QStringLiteral("━"), this->Now.SecondName.toHtmlEscaped());
    }
    add(qRcnStyle::muted(palette), QStringLiteral("╌╌"), qRcnReliabilityDiagram::tr("perfect calibration"));
    add(pale(qRcnStyle::warning(palette)), QStringLiteral("▆"), qRcnReliabilityDiagram::tr("gap"));
    const std::string without = rcn::NoIntervalInWords(this->Now.Report);
    if (HasBand(this->Now.Report))
    {
      add(pale(qRcnStyle::accent(palette)), QStringLiteral("▆"),
        qRcnReliabilityDiagram::tr("95&nbsp;% interval, %1").arg(QString::fromStdString(rcn::UnitsInWords(this->Now.Report))));
    }
    else
    {
      keys << (without.empty() ? qRcnReliabilityDiagram::tr("no interval for these bins") : QString::fromStdString(without));
    }
    return keys.join(QStringLiteral(" &nbsp; "));
  }

  /// The sentences are the description of the chart for those who cannot see it, too.
  void refreshWords()
  {
    const bool any = this->Now.HasReport;
    this->Headline->setText(any ? this->headline() : QString());
    this->Words->setText(any ? this->words() : QString());
    this->Key->setText(any ? this->key() : QString());
    this->Curve->setAccessibleDescription(this->Words->text());
  }

  /// The axis fits the fullest bin, with room above; it begins a little below one vote, so that a single one is still a bar.
  void refreshVotes()
  {
    double most = 10, least = 1;
    for (const rcn_calib_bin& bin : this->Now.HasReport ? this->Now.Report.Bins : std::vector<rcn_calib_bin>())
    {
      most = std::max(most, static_cast<double>(bin.count));
    }
    qRcnChart::Axis x, y;
    x.Title = qRcnReliabilityDiagram::tr("Predicted probability");
    x.Percent = true;
    y.Title = qRcnReliabilityDiagram::tr("Votes");
    y.Log = true;
    y.Low = least * 0.7;
    y.High = most * 1.6;
    this->Votes->setAxes(x, y);
  }

  /// A small diagram with its words above.
  QWidget* newLevel(const rcn::LevelDiagram& level, const rcn::LevelDiagram* second)
  {
    auto* cell = new QWidget(this->LevelRow);
    QString title =
      QString::fromStdString(rcn::AtLeastInWords(level.AtLeast, static_cast<int>(this->Now.Report.Levels.size())));
    title[0] = title[0].toUpper();
    QString words = qRcnReliabilityDiagram::tr("%1\noff by %2").arg(title, qRcnStyle::percent(level.Ece, 2));
    if (second)
    {
      words += QStringLiteral("\n%1: %2").arg(this->Now.SecondName, qRcnStyle::percent(second->Ece, 2));
    }
    auto* label = new QLabel(words, cell);
    label->setObjectName(QStringLiteral("level%1").arg(level.AtLeast));
    label->setTextFormat(Qt::PlainText);
    auto* plot = new LevelPlot(level, second ? second->Bins : std::vector<rcn_calib_bin>(), cell);
    plot->setObjectName(QStringLiteral("levelCurve%1").arg(level.AtLeast));
    plot->setAccessibleName(words);
    auto* column = new QVBoxLayout(cell);
    column->setContentsMargins(0, 4, 0, 4);
    column->setSpacing(2);
    column->addWidget(label);
    column->addWidget(plot, 1);
    return cell;
  }

  QString levelWords() const
  {
    const auto& levels = this->Now.Report.Levels;
    const auto worst = std::max_element(
      levels.begin(), levels.end(), [](const rcn::LevelDiagram& a, const rcn::LevelDiagram& b) { return a.Ece < b.Ece; });
    return qRcnReliabilityDiagram::tr(
      "The probability that at least so many raters mark a voxel differs from the observed share by %1 on average, most for "
      "\"%2\". Horizontal: predicted; vertical: observed; both from 0 to 100\u00a0%.")
      .arg(qRcnStyle::percent(this->Now.Report.Figures[RCN_LEVEL_ECE], 1),
        QString::fromStdString(rcn::AtLeastInWords(worst->AtLeast, static_cast<int>(levels.size()))));
  }

  /// How well the numbers of raters are predicted; nothing where no voxel was answered by all raters.
  void refreshLevels()
  {
    const bool any = this->Now.HasReport && !this->Now.Report.Levels.empty();
    const bool both = any && this->Now.HasSecond && this->Now.Second.Levels.size() == this->Now.Report.Levels.size();
    for (QWidget* part : std::initializer_list<QWidget*>{ this->LevelWords, this->LevelRow, this->LevelFigures })
    {
      part->setVisible(any);
    }
    qDeleteAll(this->LevelCells);
    this->LevelCells.clear();
    this->LevelWords->setText(any ? this->levelWords() : QString());
    for (size_t i = 0; any && i < this->Now.Report.Levels.size(); ++i)
    {
      this->LevelCells << this->newLevel(this->Now.Report.Levels[i], both ? &this->Now.Second.Levels[i] : nullptr);
      this->LevelRow->layout()->addWidget(this->LevelCells.last());
    }
    this->LevelFigures->setHeadings(both ? QStringList{ this->Now.SecondName, qRcnReliabilityDiagram::tr("after") }
                                         : QStringList{ qRcnReliabilityDiagram::tr("value") });
    int row = 0;
    for (const rcn::FigureName& figure : rcn::FigureNames())
    {
      if (any && (figure.Figure == RCN_RPS || figure.Figure == RCN_LEVEL_NLL || figure.Figure == RCN_LEVEL_ECE))
      {
        const auto show = [&](std::initializer_list<double> values) {
          this->LevelFigures->setFigures(row++, QString(figure.Name).remove(QStringLiteral(" (%)")),
            qRcnReliabilityDiagram::tr("%1. Less is better.").arg(figure.Meaning), values, figure.Percent);
        };
        const double now = this->Now.Report.Figures[figure.Figure];
        both ? show({ this->Now.Second.Figures[figure.Figure], now }) : show({ now });
      }
    }
    this->refreshShares();
  }

  /// How much probability is on each number of raters, and how often it occurs.
  void refreshShares()
  {
    const std::vector<rcn_level_share>&all = this->Now.Report.Shares, &unsure = this->Now.Report.UnsureShares;
    const bool any = this->Now.HasReport && all.size() > 1 && unsure.size() == all.size();
    const bool both = any && this->Now.HasSecond && this->Now.Second.Shares.size() == all.size();
    this->ShareWords->setVisible(any);
    this->Shares->setVisible(any);
    this->Shares->setRowCount(any ? static_cast<int>(all.size()) : 0);
    if (!any)
    {
      return;
    }
    const QString predicted = qRcnReliabilityDiagram::tr("Mean predicted probability of this number"),
                  observed = qRcnReliabilityDiagram::tr("Share of the voxels with this number");
    const auto whereUnsure = [](const QString& hint) {
      return qRcnReliabilityDiagram::tr("%1, where the model itself expects 5 to 95 % of the raters").arg(hint);
    };
    if (both)
    {
      this->Shares->setHeadings({ qRcnReliabilityDiagram::tr("predicted,\n%1").arg(this->Now.SecondName),
                                  qRcnReliabilityDiagram::tr("predicted,\nafter"), qRcnReliabilityDiagram::tr("observed") },
        { predicted, predicted, observed });
    }
    else
    {
      this->Shares->setHeadings(
        { qRcnReliabilityDiagram::tr("predicted"), qRcnReliabilityDiagram::tr("observed"),
          qRcnReliabilityDiagram::tr("unsure:\npredicted"), qRcnReliabilityDiagram::tr("unsure:\nobserved") },
        { predicted, observed, whereUnsure(predicted), whereUnsure(observed) });
    }
    for (size_t k = 0; k < all.size(); ++k)
    {
      const QString name = qRcnReliabilityDiagram::tr("%1 of %2").arg(k).arg(all.size() - 1);
      const QString hint = qRcnReliabilityDiagram::tr("Voxels that %1 raters mark").arg(name);
      const auto show = [&](std::initializer_list<double> values) {
        this->Shares->setFigures(static_cast<int>(k), name, hint, values, true);
      };
      both ? show({ this->Now.Second.Shares[k].predicted, all[k].predicted, all[k].observed })
           : show({ all[k].predicted, all[k].observed, unsure[k].predicted, unsure[k].observed });
    }
    const int rows = std::min(this->Shares->rowCount(), 9);
    this->Shares->setVisibleRows(rows, rows);
  }

  /// A check box for each rater; those that were checked stay so for a new report with raters of the same names.
  void makeBoxes()
  {
    // Asked before the boxes that know it go away.
    const QStringList kept = this->Owner->shownRaters();
    qDeleteAll(this->Boxes);
    this->Boxes.clear();
    this->Now.RaterShown.clear();
    for (int r = 0; r < this->Now.Raters.size(); ++r)
    {
      auto* box = new QCheckBox(QString(this->Now.Raters[r]).replace('&', QStringLiteral("&&")), this->BoxRow);
      box->setProperty("rater", this->Now.Raters[r]);
      box->setObjectName(QStringLiteral("rater%1").arg(r));
      box->setIcon(qRcnStyle::dotIcon(qRcnStyle::raterColor(r)));
      box->setChecked(kept.contains(this->Now.Raters[r]));
      // NaN where the rater answered none of these cases, or where the report is without raters.
      const double own =
        r < static_cast<int>(this->Now.Report.RaterEce.size()) ? this->Now.Report.RaterEce[static_cast<size_t>(r)] : NAN;
      qRcnStyle::describe(box, qRcnReliabilityDiagram::tr("Curve of %1").arg(this->Now.Raters[r]),
        std::isfinite(own)
          ? qRcnReliabilityDiagram::tr("Calibration error against this rater alone: %1").arg(qRcnStyle::percent(own, 2))
          : qRcnReliabilityDiagram::tr("This rater did not answer these cases"));
      box->setEnabled(std::isfinite(own));
      this->Now.RaterShown.push_back(box->isChecked());
      QObject::connect(box, &QCheckBox::toggled, this->Owner, [this, r](bool on) {
        this->Now.RaterShown[static_cast<size_t>(r)] = on;
        this->refreshSelection();
      });
      this->BoxRow->layout()->addWidget(box);
      this->Boxes << box;
    }
  }

  /// What the constructor makes, from top to bottom; each piece is a child of the diagram, which deletes it.
  void makeControls()
  {
    this->Controls = new QWidget(this->Owner);
    this->Region = new QComboBox(this->Controls);
    this->Region->setObjectName("region");
    for (const rcn::Choice& region : rcn::Regions())
    {
      this->Region->addItem(qRcnReliabilityDiagram::tr(region.Label), region.Value);
    }
    qRcnStyle::describe(this->Region, qRcnReliabilityDiagram::tr("Region"),
      qRcnReliabilityDiagram::tr(
        "Where voxels count. Easy background dominates a whole image and hides what happens near the structure."));
    this->Bins = new QSpinBox(this->Controls);
    this->Bins->setObjectName("bins");
    this->Bins->setRange(2, 100);
    this->Bins->setValue(15);
    this->Bins->setSuffix(qRcnReliabilityDiagram::tr(" bins"));
    this->Bins->setKeyboardTracking(false); // one signal for a typed number
    qRcnStyle::describe(this->Bins, qRcnReliabilityDiagram::tr("Bins"),
      qRcnReliabilityDiagram::tr("Number of ranges that the probabilities from 0 to 100 % are divided into."));
    auto* controls = new QHBoxLayout(this->Controls);
    controls->setContentsMargins(0, 0, 0, 0);
    controls->addWidget(this->Region, 1);
    controls->addWidget(this->Bins);
  }

  void makePlots()
  {
    const auto select = [this](int bin) { this->select(bin, true); };
    this->Curve = new Plot(this->Now, select, this->Owner);
    this->Curve->setObjectName("curve");
    this->Curve->setAccessibleName(qRcnReliabilityDiagram::tr("Reliability diagram"));
    qRcnChart::Axis x, y;
    x.Percent = y.Percent = true;
    x.Labels = false;
    y.Title = qRcnReliabilityDiagram::tr("Raters who marked it");
    this->Curve->setAxes(x, y);
    this->Votes = new Histogram(this->Now, select, this->Owner);
    this->Votes->setObjectName("votes");
    this->Votes->setAccessibleName(qRcnReliabilityDiagram::tr("How many votes are in each bin, on a logarithmic scale"));
  }

  void makeFigures()
  {
    this->Key = new QLabel(this->Owner);
    this->Key->setObjectName("key");
    this->Key->setTextFormat(Qt::RichText);
    this->Key->setWordWrap(true);
    this->BoxRow = new QWidget(this->Owner);
    new qRcnFlowLayout(this->BoxRow);
    this->Selection = qRcnStyle::newNote(this->Owner, "selection");

    this->LevelWords = qRcnStyle::newNote(this->Owner, "levelWords");
    this->LevelRow = new QWidget(this->Owner);
    new qRcnFlowLayout(this->LevelRow);
    this->LevelFigures =
      new qRcnTable(this->Owner, "levelFigures", qRcnReliabilityDiagram::tr("How well the numbers of raters are predicted"));
    this->LevelFigures->setRowCount(3);
    this->LevelFigures->setVisibleRows(3, 3);
    this->LevelFigures->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);

    this->ShareWords = qRcnStyle::newNote(this->Owner, "shareWords");
    this->ShareWords->setText(
      qRcnReliabilityDiagram::tr("How often each number of raters is predicted, and how often it is observed:"));
    this->Shares = new qRcnTable(
      this->Owner, "levelShares", qRcnReliabilityDiagram::tr("How often each number of raters is predicted and observed"));
    this->Shares->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  }

  qRcnReliabilityDiagram* Owner = nullptr;
  Shown Now;
  QLabel *Headline = nullptr, *Words = nullptr, *Key = nullptr, *Selection = nullptr, *LevelWords = nullptr,
         *ShareWords = nullptr;
  QWidget *Controls = nullptr, *BoxRow = nullptr, *LevelRow = nullptr;
  qRcnTable *LevelFigures = nullptr, *Shares = nullptr;
  QComboBox* Region = nullptr;
  QSpinBox* Bins = nullptr;
  Plot* Curve = nullptr;
  Histogram* Votes = nullptr;
  QVector<QCheckBox*> Boxes;
  QVector<QWidget*> LevelCells;
};

qRcnReliabilityDiagram::qRcnReliabilityDiagram(QWidget* parent) : QWidget(parent), d(new qRcnReliabilityDiagramPrivate)
{
  auto* p = this->d.get();
  p->Owner = this;
  const QString meaning =
    tr("MR-ECE, multi-rater expected calibration error: how far the predicted probability is from the share of "
       "raters who mark the voxel, on average over all voxels and raters. 0 % is perfect. In brackets: the 95 % "
       "interval from resampling the cases.");
  p->Headline = new QLabel(this);
  p->Headline->setObjectName("headline");
  p->Headline->setTextFormat(Qt::RichText);
  p->Headline->setWordWrap(true);
  qRcnStyle::describe(p->Headline, tr("Calibration error"), meaning);
  p->Words = qRcnStyle::newNote(this, "words");
  p->Words->setToolTip(meaning);

  p->makeControls();
  p->makePlots();
  p->makeFigures();
  QVBoxLayout* layout = qRcnStyle::newColumn(this,
    { p->Controls, p->Headline, p->Words, p->Curve, p->Votes, p->Key, p->BoxRow, p->Selection, p->LevelWords, p->LevelRow,
      p->LevelFigures, p->ShareWords, p->Shares });
  layout->setStretchFactor(p->Curve, 5);
  layout->setStretchFactor(p->Votes, 2);

  connect(p->Region, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [this] { emit regionChanged(this->region()); });
  connect(p->Bins, QOverload<int>::of(&QSpinBox::valueChanged), this, &qRcnReliabilityDiagram::binsChanged);
  this->clear();
}

qRcnReliabilityDiagram::~qRcnReliabilityDiagram() = default;

void qRcnReliabilityDiagram::setReport(const rcn::EvaluationReport& report, const QString& name, const QStringList& raters)
{
  auto& now = this->d->Now;
  double lower = 0, upper = 0;
  // With other bins the number of the chosen one means another range: it is let go then.
  const bool selected = this->selectedBin(lower, upper);
  now.Report = report;
  now.HasReport = true;
  now.Name = name;
  now.Raters = raters;
  this->d->makeBoxes();
  if (selected)
  {
    const size_t i = static_cast<size_t>(now.Selected);
    if (i >= report.Bins.size() || report.Bins[i].lower != lower || report.Bins[i].upper != upper)
    {
      this->d->select(-1, true);
    }
  }
  this->d->refreshVotes();
  this->d->refreshWords();
  this->d->refreshLevels();
  this->d->refreshSelection();
}

void qRcnReliabilityDiagram::setSecond(const rcn::EvaluationReport& report, const QString& name)
{
  this->d->Now.Second = report;
  this->d->Now.SecondName = name;
  this->d->Now.HasSecond = true;
  this->d->refreshWords();
  this->d->refreshLevels();
  this->d->Curve->update();
}

void qRcnReliabilityDiagram::clearSecond()
{
  this->d->Now.HasSecond = false;
  this->d->refreshWords();
  this->d->refreshLevels();
  this->d->Curve->update();
}

void qRcnReliabilityDiagram::clear()
{
  this->d->select(-1, true);
  this->d->Now.HasReport = this->d->Now.HasSecond = false;
  this->d->Now.Raters.clear();
  this->d->makeBoxes();
  this->d->refreshVotes();
  this->d->refreshWords();
  this->d->refreshLevels();
  this->d->refreshSelection();
}

bool qRcnReliabilityDiagram::hasReport() const
{
  return this->d->Now.HasReport;
}

rcn_region qRcnReliabilityDiagram::region() const
{
  return static_cast<rcn_region>(this->d->Region->currentData().toInt());
}

int qRcnReliabilityDiagram::bins() const
{
  return this->d->Bins->value();
}

QStringList qRcnReliabilityDiagram::shownRaters() const
{
  QStringList names;
  for (const QCheckBox* box : this->d->Boxes)
  {
    if (box->isChecked())
    {
      names << box->property("rater").toString();
    }
  }
  return names;
}

bool qRcnReliabilityDiagram::selectedBin(double& lower, double& upper) const
{
  if (this->d->Now.Selected < 0)
  {
    return false;
  }
  const rcn_calib_bin& bin = this->d->Now.Report.Bins[static_cast<size_t>(this->d->Now.Selected)];
  lower = bin.lower;
  upper = bin.upper;
  return true;
}

void qRcnReliabilityDiagram::setControlsVisible(bool visible)
{
  this->d->Controls->setVisible(visible);
  this->d->BoxRow->setVisible(visible);
  this->d->Selection->setVisible(visible);
}

void qRcnReliabilityDiagram::setRegion(rcn_region region)
{
  const QSignalBlocker blocker(this->d->Region);
  this->d->Region->setCurrentIndex(std::max(this->d->Region->findData(region), 0));
}

void qRcnReliabilityDiagram::setBins(int bins)
{
  const QSignalBlocker blocker(this->d->Bins);
  this->d->Bins->setValue(bins);
}

void qRcnReliabilityDiagram::setShownRaters(const QStringList& raters)
{
  for (QCheckBox* box : this->d->Boxes)
  {
    box->setChecked(raters.contains(box->property("rater").toString()));
  }
}

void qRcnReliabilityDiagram::clearSelection()
{
  this->d->select(-1, true);
}

void qRcnReliabilityDiagram::changeEvent(QEvent* event)
{
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && this->d->Key)
  {
    this->d->refreshWords(); // the key's colors
  }
}
