// SPDX-License-Identifier: Apache-2.0
/// What the panels share: colors that suit light and dark palettes, words for numbers, a table that can be copied, a row
/// of widgets that wraps.
#ifndef qRcnStyle_h
#define qRcnStyle_h

#include <bitset>
#include <cstdint>
#include <initializer_list>

#include <QColor>
#include <QIcon>
#include <QLayout>
#include <QPalette>
#include <QStringList>
#include <QStyledItemDelegate>
#include <QTableWidget>
#include <QVector>

#include "rcn/rcn_color.h"

class QLabel;
class QMimeData;
class QToolButton;
class QVBoxLayout;

namespace qRcnStyle
{

QColor raterColor(int rater);
/// Of one of several structures, 1, 2, ...: others than the raters have.
QColor structureColor(int structure);
QColor levelColor(rcn_palette palette, double share);
/// Black or white, whichever is read better on it.
QColor textOn(const QColor& background);
QColor mixed(const QColor& from, const QColor& to, double share);

bool isDark(const QPalette& palette);
/// For lines that must be there but not be looked at.
QColor grid(const QPalette& palette);
/// For words of the second rank.
QColor muted(const QPalette& palette);
/// For what is measured: a blue that stands out on the palette's base.
QColor accent(const QPalette& palette);
/// For what is off: a red.
QColor warning(const QPalette& palette);

/// Words over an image: with a shadow, so that they can be read over bright tissue, too.
void drawOverImage(QPainter& painter, const QRectF& room, int flags, const QString& text, const QColor& color);
/// A colored disc with a thin rim, so that yellow is seen on white.
void paintDot(QPainter& painter, const QPointF& center, double radius, const QColor& color, bool filled = true);
QIcon dotIcon(const QColor& color);
/// An eye that is open, or struck through.
void paintEye(QPainter& painter, const QRectF& room, const QColor& color, bool open);

/// "58 %", "3.4 %"; "–" for NaN.
QString percent(double share, int digits = 0);
/// "12.3 mL", with digits as its size needs; "–" for NaN. The unit is rcn::Extent's.
QString extent(double value, const QString& unit);
/// "less than a minute", "3 minutes", "1 hour 20 minutes"
QString duration(double seconds);
/// "12 345", "3.2 million"
QString count(double number);
/// "1 case", "12 345 cases": rcn::Counted with the number as count() writes it.
QString counted(int64_t number, const char* one, const char* many = "");

/// How many raters are in a set of bits.
inline int countRaters(uint64_t set)
{
  return static_cast<int>(std::bitset<64>(set).count());
}

/// "R 12  A 30  S 4": millimeters to the right (or left, L), anterior (P), superior (I).
QString position(const double ras[3], int digits);

/// A label of the second rank that wraps; names of files and raters are never taken for markup. `name` is for tests.
QLabel* newNote(QWidget* parent, const char* name, const QString& text = QString());
/// A small button with words; the tool tip is read by screen readers, too.
QToolButton* newTool(QWidget* parent, const char* name, const QString& text, const QString& toolTip);
/// The widgets one below the other, with the margins that all panels have.
QVBoxLayout* newColumn(QWidget* panel, std::initializer_list<QWidget*> widgets = {});
/// A name to save under: as typed where it ends in one of the extensions of a dialog's filters ("PNG (*.png);;Table (*.csv)"),
/// otherwise with the first extension of the chosen filter.
QString withExtension(const QString& path, const QString& filters, const QString& chosen);
/// Asks where to save; the name has its extension, and before a file of that name is replaced, the person is asked. Empty:
/// nowhere.
QString askForFile(QWidget* parent, const QString& title, const QString& suggestion, const QString& filters);
/// The files and folders among what is dragged or dropped.
QStringList localFiles(const QMimeData* data);
/// To the clipboard.
void copy(const QString& text);
/// Gives a widget its tool tip and the name that screen readers say.
void describe(QWidget* widget, const QString& name, const QString& toolTip = QString());

} // namespace qRcnStyle

/// A table for reading: Ctrl+C copies the selected cells (all of them when none is) as tab-separated text with headings; a
/// click, Enter or Space chooses a row.
class qRcnTable : public QTableWidget
{
  Q_OBJECT
public:
  /// `name` is for tests, `title` is read by screen readers.
  qRcnTable(QWidget* parent, const char* name, const QString& title);

  /// Headings of the columns and the hints under the pointer there.
  void setHeadings(const QStringList& headings, const QStringList& hints = QStringList());
  /// For a list of things with a name: whole rows are chosen, without row headings and grid.
  void setRowsOnly();
  /// A row of figures under the name that heads it: "–" for NaN.
  void setFigures(int row, const QString& name, const QString& toolTip, std::initializer_list<double> values, bool percent);
  QString copyText() const;
  /// As high as its rows need, between two numbers of them; then it scrolls.
  void setVisibleRows(int least, int most);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  /// Whether what happens now comes from pressing a mouse button, which rowChosen() will follow.
  bool inMousePress() const { return this->Pressing; }

public slots:
  void copy() const;

signals:
  void rowChosen(int row);

protected:
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

private:
  int Least = 2, Most = 12;
  bool Pressing = false;
};

/// A cell whose number is sorted by, whatever its text says; NaN comes last.
class qRcnNumberItem : public QTableWidgetItem
{
public:
  qRcnNumberItem(const QString& text, double number);
  bool operator<(const QTableWidgetItem& other) const override;
  double number() const { return this->Number; }

private:
  double Number;
};

/// Paints raters as dots: filled for those who are in the set, hollow for the others.
class qRcnDotsDelegate : public QStyledItemDelegate
{
  Q_OBJECT
public:
  using QStyledItemDelegate::QStyledItemDelegate;
  /// Says in a cell who is in the set: bits, of how many raters, and their names for screen readers and copies.
  static void setRaters(QTableWidgetItem* cell, quint64 set, int count, const QString& names);
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

/// Widgets in rows that wrap at the width there is.
class qRcnFlowLayout : public QLayout
{
public:
  explicit qRcnFlowLayout(QWidget* parent = nullptr);
  ~qRcnFlowLayout() override;

  void addItem(QLayoutItem* item) override;
  int count() const override;
  QLayoutItem* itemAt(int index) const override;
  QLayoutItem* takeAt(int index) override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;
  QSize minimumSize() const override;
  void setGeometry(const QRect& rectangle) override;

private:
  int arrange(const QRect& rectangle, bool move) const;

  QVector<QLayoutItem*> Items;
};

#endif
