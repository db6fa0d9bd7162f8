// SPDX-License-Identifier: Apache-2.0
#include "qRcnStyle.h"

#include <algorithm>
#include <cmath>

#include <QApplication>
#include <QClipboard>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QMessageBox>
#include <QMimeData>
#include <QPainter>
#include <QPainterPath>
#include <QRegularExpression>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>

#include "rcnReport.h"

namespace qRcnStyle
{

QColor raterColor(int rater)
{
  uint8_t rgb[3];
  rcn_color_rater(rgb, rater);
  return QColor(rgb[0], rgb[1], rgb[2]);
}

// Bright and far from gray, because they lie over the image; the first six were chosen by hand.
QColor structureColor(int structure)
{
  static const QColor first[] = { { 255, 60, 220 }, { 0, 240, 240 }, { 170, 255, 0 }, { 255, 170, 200 }, { 160, 110, 255 },
    { 255, 50, 70 } };
  constexpr int count = sizeof(first) / sizeof(*first);
  if (structure >= 1 && structure <= count)
  {
    return first[structure - 1];
  }
  // Turning by the golden angle keeps neighbors apart however many there are.
  return QColor::fromHsvF(std::fmod(0.618034 * structure, 1.0), structure % 2 ? 0.75 : 0.5, 1.0);
}

QColor levelColor(rcn_palette palette, double share)
{
  uint8_t rgb[3];
  rcn_color_palette(rgb, palette, share);
  return QColor(rgb[0], rgb[1], rgb[2]);
}

// qGray() weighs the colors as the eye does.
QColor textOn(const QColor& background)
{
  return qGray(background.rgb()) > 127 ? Qt::black : Qt::white;
}

QColor mixed(const QColor& from, const QColor& to, double share)
{
  const auto one = [share](double a, double b) { return a + (b - a) * share; };
  return QColor::fromRgbF(one(from.redF(), to.redF()), one(from.greenF(), to.greenF()), one(from.blueF(), to.blueF()));
}

// By what is drawn on, not by the name of a theme: desktops tell that in different ways, if at all.
bool isDark(const QPalette& palette)
{
  return qGray(palette.color(QPalette::Base).rgb()) < 128;
}

QColor grid(const QPalette& palette)
{
  return mixed(palette.color(QPalette::Base), palette.color(QPalette::Text), 0.15);
}

QColor muted(const QPalette& palette)
{
  return mixed(palette.color(QPalette::Window), palette.color(QPalette::WindowText), 0.68);
}

// On dark ground lighter: the same color would be too dim to tell from the grid.
QColor accent(const QPalette& palette)
{
  return isDark(palette) ? QColor(0x6c, 0xb6, 0xee) : QColor(0x1f, 0x77, 0xb4);
}

QColor warning(const QPalette& palette)
{
  return isDark(palette) ? QColor(0xff, 0x8a, 0x80) : QColor(0xc6, 0x28, 0x28);
}

// Light text with a dark shadow is legible on any gray value.
void drawOverImage(QPainter& painter, const QRectF& room, int flags, const QString& text, const QColor& color)
{
  painter.setPen(QColor(0, 0, 0, 200));
  painter.drawText(room.translated(1, 1), flags, text);
  painter.setPen(color);
  painter.drawText(room, flags, text);
}

void paintDot(QPainter& painter, const QPointF& center, double radius, const QColor& color, bool filled)
{
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(filled ? color.darker(150) : QColor(128, 128, 128, 150), 1));
  painter.setBrush(filled ? QBrush(color) : QBrush(Qt::NoBrush));
  painter.drawEllipse(center, radius, radius);
  painter.restore();
}

// Twice the size, so that it is sharp on dense screens, too.
QIcon dotIcon(const QColor& color)
{
  QPixmap pixmap(32, 32);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.scale(2, 2);
  paintDot(painter, QPointF(8, 8), 5, color);
  return QIcon(pixmap);
}

void paintEye(QPainter& painter, const QRectF& room, const QColor& color, bool open)
{
  const double side = std::min(room.width(), room.height());
  const QPointF middle = room.center(), left(middle.x() - side / 2, middle.y()), right(middle.x() + side / 2, middle.y());
  QPainterPath lids(left);
  lids.quadTo(QPointF(middle.x(), middle.y() - 0.6 * side), right);
  lids.quadTo(QPointF(middle.x(), middle.y() + 0.6 * side), left);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(color, std::max(1.0, side / 11)));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(lids);
  painter.setBrush(color);
  painter.drawEllipse(middle, side / 8, side / 8);
  if (!open)
  {
    painter.drawLine(
      QPointF(middle.x() - 0.35 * side, middle.y() + 0.4 * side), QPointF(middle.x() + 0.35 * side, middle.y() - 0.4 * side));
  }
  painter.restore();
}

// The space does not break: "70" and "%" stay on one line.
QString percent(double share, int digits)
{
  return std::isfinite(share) ? QString::number(100 * share, 'f', digits) + QStringLiteral("\u00a0%") : QStringLiteral("–");
}

// About three figures that mean something; counts are whole.
QString extent(double value, const QString& unit)
{
  if (!std::isfinite(value))
  {
    return QStringLiteral("–");
  }
  const double size = std::fabs(value);
  const bool counted = unit.endsWith(QStringLiteral("els")); // pixels, voxels
  const int digits = size == 0 || size >= 100 || counted ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3;
  return QString::number(value, 'f', digits) + QString(unit).replace(' ', QChar(0xa0));
}

// To the minute: what remains of a training is not known better.
QString duration(double seconds)
{
  if (!(seconds >= 60))
  {
    return QObject::tr("less than a minute");
  }
  const int minutes = static_cast<int>(std::min(seconds, 1e8) / 60 + 0.5);
  const QString rest = minutes % 60 == 1 ? QObject::tr("1 minute") : QObject::tr("%1 minutes").arg(minutes % 60);
  if (minutes < 60)
  {
    return rest;
  }
  const QString hours = minutes / 60 == 1 ? QObject::tr("1 hour") : QObject::tr("%1 hours").arg(minutes / 60);
  return minutes % 60 ? hours + ' ' + rest : hours;
}

QString count(double number)
{
  if (number >= 1e6)
  {
    return QObject::tr("%1 million").arg(number / 1e6, 0, 'g', 3);
  }
  QString digits = QString::number(number, 'f', 0);
  for (int i = digits.size() - 3; i > 0; i -= 3)
  {
    digits.insert(i, QChar(0x202f)); // a narrow space that does not break
  }
  return digits;
}

QString counted(int64_t number, const char* one, const char* many)
{
  const QString text = QString::fromStdString(rcn::Counted(number, one, many));
  return count(static_cast<double>(number)) + text.mid(text.indexOf(' '));
}

// R and L and so on in place of signs, which differ between conventions.
QString position(const double ras[3], int digits)
{
  const char* const letters[3] = { "RL", "AP", "SI" };
  QStringList parts;
  for (int i = 0; i < 3; ++i)
  {
    parts << QStringLiteral("%1\u00a0%2").arg(QChar(letters[i][ras[i] < 0])).arg(std::fabs(ras[i]), 0, 'f', digits);
  }
  return parts.join(QStringLiteral("  "));
}

// Plain text, because names of files and raters are in it; to be selected, because people quote it.
QLabel* newNote(QWidget* parent, const char* name, const QString& text)
{
  auto* label = new QLabel(text, parent);
  label->setObjectName(name);
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

QToolButton* newTool(QWidget* parent, const char* name, const QString& text, const QString& toolTip)
{
  auto* button = new QToolButton(parent);
  button->setObjectName(name);
  button->setText(text);
  describe(button, QString(text).remove(QRegularExpression("[^\\w ]")).trimmed(), toolTip); // without arrows and dots
  return button;
}

QVBoxLayout* newColumn(QWidget* panel, std::initializer_list<QWidget*> widgets)
{
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(6, 6, 6, 6);
  column->setSpacing(4);
  for (QWidget* widget : widgets)
  {
    column->addWidget(widget);
  }
  return column;
}

// Dialogs of some desktops leave the ending to the person; what was typed wins where it is known.
QString withExtension(const QString& path, const QString& filters, const QString& chosen)
{
  const auto extensions = [](const QString& text) {
    QStringList found;
    QRegularExpressionMatchIterator matches = QRegularExpression("\\*(\\.[\\w.]+)").globalMatch(text);
    while (matches.hasNext())
    {
      found << matches.next().captured(1);
    }
    return found;
  };
  const QStringList known = extensions(filters), own = extensions(chosen.isEmpty() ? filters : chosen);
  const bool typed =
    std::any_of(known.begin(), known.end(), [&path](const QString& end) { return path.endsWith(end, Qt::CaseInsensitive); });
  if (path.isEmpty() || typed || own.isEmpty())
  {
    return path;
  }
  // "study.json" becomes "study.rcn.json", "study." has its point already.
  const QString last = own.first().mid(own.first().lastIndexOf('.'));
  const QString stem = path.endsWith(last, Qt::CaseInsensitive) ? path.chopped(last.size())
    : path.endsWith('.')                                        ? path.chopped(1)
                                                                : path;
  return stem + own.first();
}

QString askForFile(QWidget* parent, const QString& title, const QString& suggestion, const QString& filters)
{
  QString path = suggestion, chosen;
  do
  {
    // The dialog itself would ask about the name as it was typed.
    path = withExtension(
      QFileDialog::getSaveFileName(parent, title, path, filters, &chosen, QFileDialog::DontConfirmOverwrite), filters, chosen);
  } while (QFileInfo::exists(path) &&
    QMessageBox::question(parent, title, QObject::tr("%1 already exists. Replace it?").arg(QDir::toNativeSeparators(path))) !=
      QMessageBox::Yes);
  return path;
}

QStringList localFiles(const QMimeData* data)
{
  QStringList paths;
  for (const QUrl& url : data->urls())
  {
    if (url.isLocalFile())
    {
      paths << url.toLocalFile();
    }
  }
  return paths;
}

void copy(const QString& text)
{
  QApplication::clipboard()->setText(text);
}

// The name and the tool tip for screen readers, too.
void describe(QWidget* widget, const QString& name, const QString& toolTip)
{
  widget->setAccessibleName(name);
  widget->setToolTip(toolTip);
  widget->setAccessibleDescription(toolTip);
}

} // namespace qRcnStyle

qRcnTable::qRcnTable(QWidget* parent, const char* name, const QString& title) : QTableWidget(parent)
{
  this->setObjectName(name);
  this->setAccessibleName(title);
  this->setEditTriggers(QAbstractItemView::NoEditTriggers);
  this->setWordWrap(false);
  this->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  this->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  this->verticalHeader()->setDefaultSectionSize(this->fontMetrics().height() + 8);
  this->verticalHeader()->setMinimumSectionSize(this->fontMetrics().height() + 4);
  this->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  this->setTabKeyNavigation(false); // Tab goes to the next widget
  // A click, not a selection, which also moves when the table is filled or loses focus.
  connect(this, &QTableWidget::cellClicked, this, [this](int row) { emit rowChosen(row); });
}

void qRcnTable::setHeadings(const QStringList& headings, const QStringList& hints)
{
  this->setColumnCount(headings.size());
  this->setHorizontalHeaderLabels(headings);
  this->horizontalHeader()->setMinimumSectionSize(34);
  for (int c = 0; c < hints.size(); ++c)
  {
    this->horizontalHeaderItem(c)->setToolTip(hints[c]);
  }
}

void qRcnTable::setFigures(
  int row, const QString& name, const QString& toolTip, std::initializer_list<double> values, bool percent)
{
  auto* heading = new QTableWidgetItem(name);
  heading->setToolTip(toolTip);
  this->setVerticalHeaderItem(row, heading);
  int column = 0;
  for (const double value : values)
  {
    const QString text = !std::isfinite(value) ? QStringLiteral("–")
      : percent                                ? qRcnStyle::percent(value, 2)
                                               : QString::number(value, 'f', 4);
    auto* item = new qRcnNumberItem(text, value);
    item->setToolTip(toolTip);
    this->setItem(row, column++, item);
  }
}

void qRcnTable::setRowsOnly()
{
  this->horizontalHeader()->setHighlightSections(false);
  this->verticalHeader()->hide();
  this->setShowGrid(false);
  this->setAlternatingRowColors(true);
  this->setSelectionBehavior(QAbstractItemView::SelectRows);
  this->setSelectionMode(QAbstractItemView::SingleSelection);
}

QString qRcnTable::copyText() const
{
  // The cells in the order in which they are shown; whole rows and columns of the box around the selection.
  QList<int> rows, columns;
  const auto selected = this->selectedIndexes();
  for (int i = 0; i < this->rowCount(); ++i)
  {
    const int row = this->verticalHeader()->logicalIndex(i);
    if (selected.isEmpty() ||
      std::any_of(selected.begin(), selected.end(), [row](const QModelIndex& index) { return index.row() == row; }))
    {
      rows << row;
    }
  }
  for (int i = 0; i < this->columnCount(); ++i)
  {
    const int column = this->horizontalHeader()->logicalIndex(i);
    if (selected.isEmpty() ||
      std::any_of(selected.begin(), selected.end(), [column](const QModelIndex& index) { return index.column() == column; }))
    {
      columns << column;
    }
  }
  const auto clean = [](QString text) { return text.replace('\t', ' ').replace('\n', ' ').replace(QChar(0xa0), ' '); };
  const bool names = !this->verticalHeader()->isHidden();
  QStringList lines, heading;
  if (names)
  {
    heading << QString();
  }
  for (const int column : columns)
  {
    const QTableWidgetItem* item = this->horizontalHeaderItem(column);
    heading << (item ? clean(item->text()) : QString());
  }
  lines << heading.join('\t');
  for (const int row : rows)
  {
    QStringList cells;
    if (names)
    {
      const QTableWidgetItem* item = this->verticalHeaderItem(row);
      cells << (item ? clean(item->text()) : QString());
    }
    for (const int column : columns)
    {
      const QTableWidgetItem* item = this->item(row, column);
      const QVariant words = item ? item->data(Qt::AccessibleTextRole) : QVariant();
      cells << (!item ? QString() : clean(item->text().isEmpty() ? words.toString() : item->text()));
    }
    lines << cells.join('\t');
  }
  return lines.join('\n') + '\n';
}

void qRcnTable::copy() const
{
  qRcnStyle::copy(this->copyText());
}

void qRcnTable::keyPressEvent(QKeyEvent* event)
{
  if (event->matches(QKeySequence::Copy))
  {
    this->copy();
    event->accept();
    return;
  }
  const bool choose = event->key() == Qt::Key_Space || event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
  if (choose && this->currentRow() >= 0)
  {
    event->accept();
    emit rowChosen(this->currentRow());
    return;
  }
  QTableWidget::keyPressEvent(event);
}

void qRcnTable::mousePressEvent(QMouseEvent* event)
{
  this->Pressing = true;
  QTableWidget::mousePressEvent(event);
  this->Pressing = false;
}

void qRcnTable::setVisibleRows(int least, int most)
{
  this->Least = least;
  this->Most = most;
  this->updateGeometry();
}

QSize qRcnTable::sizeHint() const
{
  const int rows = std::min(std::max(this->rowCount(), this->Least), this->Most);
  const int heading = this->horizontalHeader()->isHidden() ? 0 : this->horizontalHeader()->sizeHint().height();
  return QSize(240, heading + rows * this->verticalHeader()->defaultSectionSize() + 2 * this->frameWidth());
}

QSize qRcnTable::minimumSizeHint() const
{
  const int rows = std::min(this->rowCount(), this->Least);
  return QSize(120,
    this->sizeHint().height() -
      (std::min(std::max(this->rowCount(), this->Least), this->Most) - rows) * this->verticalHeader()->defaultSectionSize());
}

qRcnNumberItem::qRcnNumberItem(const QString& text, double number) : QTableWidgetItem(text), Number(number)
{
  this->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
}

bool qRcnNumberItem::operator<(const QTableWidgetItem& other) const
{
  const auto* item = dynamic_cast<const qRcnNumberItem*>(&other);
  if (!item)
  {
    return QTableWidgetItem::operator<(other);
  }
  if (std::isnan(this->Number) || std::isnan(item->Number))
  {
    return !std::isnan(this->Number) && std::isnan(item->Number);
  }
  return this->Number < item->Number;
}

namespace
{

enum DotsRole
{
  SetRole = Qt::UserRole + 1,
  CountRole
};

} // namespace

void qRcnDotsDelegate::setRaters(QTableWidgetItem* cell, quint64 set, int count, const QString& names)
{
  cell->setData(SetRole, set);
  cell->setData(CountRole, count);
  cell->setData(Qt::AccessibleTextRole, names);
}

void qRcnDotsDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const
{
  QStyledItemDelegate::paint(painter, option, index);
  const quint64 set = index.data(SetRole).toULongLong();
  const int count = index.data(CountRole).toInt();
  // Many raters: the dots move together rather than out of sight.
  const double radius = 4.5, step = count > 1 ? std::min(13.0, (option.rect.width() - 16.0) / (count - 1)) : 13;
  for (int r = 0; r < count; ++r)
  {
    const QPointF center(option.rect.left() + 9 + r * step, option.rect.center().y() + 0.5);
    qRcnStyle::paintDot(*painter, center, radius, qRcnStyle::raterColor(r), set >> r & 1);
  }
}

QSize qRcnDotsDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const
{
  const int count = std::min(index.data(CountRole).toInt(), 8);
  return QSize(18 + 13 * std::max(count - 1, 0), QStyledItemDelegate::sizeHint(option, index).height());
}

qRcnFlowLayout::qRcnFlowLayout(QWidget* parent) : QLayout(parent)
{
  this->setContentsMargins(0, 0, 0, 0);
  this->setSpacing(8);
}

qRcnFlowLayout::~qRcnFlowLayout()
{
  qDeleteAll(this->Items);
}

void qRcnFlowLayout::addItem(QLayoutItem* item)
{
  this->Items.append(item);
}

int qRcnFlowLayout::count() const
{
  return this->Items.size();
}

QLayoutItem* qRcnFlowLayout::itemAt(int index) const
{
  return this->Items.value(index);
}

QLayoutItem* qRcnFlowLayout::takeAt(int index)
{
  return index >= 0 && index < this->Items.size() ? this->Items.takeAt(index) : nullptr;
}

int qRcnFlowLayout::heightForWidth(int width) const
{
  return this->arrange(QRect(0, 0, width, 0), false);
}

QSize qRcnFlowLayout::sizeHint() const
{
  return this->minimumSize();
}

QSize qRcnFlowLayout::minimumSize() const
{
  QSize size;
  for (const QLayoutItem* item : this->Items)
  {
    size = size.expandedTo(item->minimumSize());
  }
  return size;
}

void qRcnFlowLayout::setGeometry(const QRect& rectangle)
{
  QLayout::setGeometry(rectangle);
  this->arrange(rectangle, true);
}

int qRcnFlowLayout::arrange(const QRect& rectangle, bool move) const
{
  int x = 0, y = 0, line = 0;
  for (QLayoutItem* item : this->Items)
  {
    if (item->isEmpty())
    {
      continue;
    }
    const QSize size = item->sizeHint().boundedTo(QSize(std::max(rectangle.width(), 1), 10000));
    if (x > 0 && x + size.width() > rectangle.width())
    {
      x = 0;
      y += line + this->spacing() / 2;
      line = 0;
    }
    if (move)
    {
      item->setGeometry(QRect(rectangle.topLeft() + QPoint(x, y), size));
    }
    x += size.width() + this->spacing();
    line = std::max(line, size.height());
  }
  return y + line;
}
