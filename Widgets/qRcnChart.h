// SPDX-License-Identifier: Apache-2.0
/// Charts for panels: axes, grid, hints under the pointer. Painted by Qt rather than by a VTK chart: a panel then needs no
/// OpenGL context of its own, its text is the panel's font at any resolution, and it follows light and dark palettes.
#ifndef qRcnChart_h
#define qRcnChart_h

#include <QColor>
#include <QString>
#include <QVector>
#include <QWidget>

/// A frame with axes; what is inside is painted by those who inherit.
class qRcnChart : public QWidget
{
  Q_OBJECT
public:
  struct Axis
  {
    QString Title;
    double Low = 0, High = 1;
    bool Log = false;     ///< Low must be above 0 then
    bool Percent = false; ///< 0.5 is written as 50 %
    bool Whole = false;   ///< only whole numbers are written
    bool Labels = true;   ///< false: no numbers and no title
  };

  explicit qRcnChart(QWidget* parent = nullptr);

  void setAxes(const Axis& x, const Axis& y);
  const Axis& xAxis() const { return this->X; }
  const Axis& yAxis() const { return this->Y; }

  /// Where the plot is, inside the axes' numbers and titles. Charts with the same left margin stand below each other.
  QRectF plotArea() const;
  QPointF toPixel(double x, double y) const;
  double xAt(double pixel) const;

  /// The numbers written at an axis: at most so many.
  static QVector<double> ticks(const Axis& axis, int most);

  QSize sizeHint() const override { return QSize(300, 220); }
  QSize minimumSizeHint() const override { return QSize(180, 110); }

protected:
  /// Between the grid and the frame, cut to the plot.
  virtual void paintPlot(QPainter& painter) = 0;
  /// What a person reads when the pointer rests there; empty: nothing.
  virtual QString hintAt(const QPointF& position) const;

  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

private:
  QString tickText(const Axis& axis, double value, double step) const;
  QFont tickFont() const;

  Axis X, Y;
};

/// Curves over a common x, with a key; for what is measured while people wait.
class qRcnCurves : public qRcnChart
{
  Q_OBJECT
public:
  struct Curve
  {
    QString Name;
    QColor Color;
    QVector<QPointF> Points; ///< ascending in x; a y that is NaN makes a gap
    bool Dashed = false;
  };

  explicit qRcnCurves(QWidget* parent = nullptr);

  /// The axes' ranges are found from the points: y from 0 (log: from the smallest).
  void setCurves(const QVector<Curve>& curves, const Axis& x, const Axis& y);
  /// A vertical line with a word, e.g. the best epoch; NaN: none.
  void setMark(double x, const QString& word);
  const QVector<Curve>& curves() const { return this->Curves; }

protected:
  void paintPlot(QPainter& painter) override;
  QString hintAt(const QPointF& position) const override;

private:
  QVector<Curve> Curves;
  double Mark;
  QString MarkWord;
};

#endif
