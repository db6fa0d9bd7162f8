// SPDX-License-Identifier: Apache-2.0
#include "qRcnConsensusLegend.h"

#include <algorithm>
#include <cmath>

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLinearGradient>
#include <QPainter>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "qRcnStyle.h"

namespace
{

/// Twice the size, for dense screens. Without a color: nobody marked it, so nothing is painted over the image. Levels that are
/// not shown are pale.
QIcon Swatch(const QColor& color, bool shown)
{
  QPixmap pixmap(56, 32);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.scale(2, 2);
  QColor fill = color;
  fill.setAlphaF(shown ? 1 : 0.25);
  painter.setBrush(color.isValid() ? QBrush(fill) : QBrush(Qt::NoBrush));
  painter.setPen(QPen(QColor(128, 128, 128, shown ? 200 : 90), 1));
  painter.drawRoundedRect(QRectF(1, 1, 26, 14), 3, 3);
  return QIcon(pixmap);
}

/// A palette from no rater to all of them.
QIcon Ramp(rcn_palette palette)
{
  QPixmap pixmap(96, 24);
  QPainter painter(&pixmap);
  for (int x = 0; x < pixmap.width(); ++x)
  {
    painter.fillRect(x, 0, 1, pixmap.height(), qRcnStyle::levelColor(palette, x / (pixmap.width() - 1.0)));
  }
  return QIcon(pixmap);
}

/// The volume with a bar behind it, as long as its share of the largest marked level.
class BarDelegate : public QStyledItemDelegate
{
public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
  {
    QStyleOptionViewItem plain = option;
    this->initStyleOption(&plain, index);
    // A selected row has a background of its own.
    if (!(option.state & QStyle::State_Selected))
    {
      const double share = index.data(Qt::UserRole).toDouble();
      const QRectF room = QRectF(option.rect).adjusted(2, 3, -2, -3);
      painter->fillRect(QRectF(room.left(), room.top(), room.width() * share, room.height()),
        qRcnStyle::mixed(option.palette.color(QPalette::Base), qRcnStyle::accent(option.palette), 0.25));
    }
    QStyledItemDelegate::paint(painter, option, index);
  }
};

} // namespace

class qRcnConsensusLegendPrivate
{
public:
  int raters() const { return this->Volumes.size() - 1; }
  /// The most raters stand at the top.
  int levelOf(int row) const { return this->raters() - row; }

  QString words(int level) const
  {
    return level == 0 ? qRcnConsensusLegend::tr("no rater")
      : level == this->raters()
      ? (level == 1 ? qRcnConsensusLegend::tr("the only rater") : qRcnConsensusLegend::tr("all %1 raters").arg(level))
      : qRcnConsensusLegend::tr("%1 of %2 raters").arg(level).arg(this->raters());
  }

  /// A level alone; the same once more, or -1, shows all.
  void isolate(int level)
  {
    if (level == this->Isolated && level < 0)
    {
      return;
    }
    this->Isolated = level == this->Isolated ? -1 : level;
    this->refresh();
    emit this->Owner->levelIsolated(this->Isolated);
  }

  void refresh()
  {
    double largest = 0, marked = 0;
    // Without level 0: the background would make all bars vanish.
    for (int level = 1; level <= this->raters(); ++level)
    {
      largest = std::max(largest, this->Volumes[level]);
      marked += this->Volumes[level];
    }
    this->Table->setRowCount(this->Volumes.size());
    for (int row = 0; row < this->Volumes.size(); ++row)
    {
      const int level = this->levelOf(row);
      const bool shown = this->Isolated < 0 || this->Isolated == level;
      const QColor color =
        level > 0 ? qRcnStyle::levelColor(this->Palette, static_cast<double>(level) / this->raters()) : QColor();
      auto* name = new QTableWidgetItem(Swatch(color, shown), this->words(level));
      auto* volume = new qRcnNumberItem(qRcnStyle::extent(this->Volumes[level], this->Unit), this->Volumes[level]);
      volume->setData(Qt::UserRole, level > 0 && largest > 0 ? this->Volumes[level] / largest : 0.0);
      const QString hint = level == 0
        ? qRcnConsensusLegend::tr("Voxels that nobody marked: %1. Click to show only these.")
            .arg(qRcnStyle::extent(this->Volumes[level], this->Unit))
        : qRcnConsensusLegend::tr(
            "Voxels that exactly %1 marked: %2, %3 of all marked voxels. Click to show only these; click again to show all.")
            .arg(this->words(level), qRcnStyle::extent(this->Volumes[level], this->Unit),
              qRcnStyle::percent(marked > 0 ? this->Volumes[level] / marked : NAN));
      for (QTableWidgetItem* item : { name, static_cast<QTableWidgetItem*>(volume) })
      {
        item->setToolTip(hint);
        QFont font = this->Table->font();
        font.setBold(this->Isolated == level);
        item->setFont(font);
        if (!shown)
        {
          item->setForeground(
            qRcnStyle::mixed(this->Owner->palette().color(QPalette::Base), this->Owner->palette().color(QPalette::Text), 0.5));
        }
      }
      this->Table->setItem(row, 0, name);
      this->Table->setItem(row, 1, volume);
    }
    this->Table->setVisibleRows(std::max<int>(this->Volumes.size(), 2), 12);
    this->All->setVisible(this->Isolated >= 0);
    this->Hint->setVisible(this->Volumes.isEmpty());
    this->Table->setVisible(!this->Volumes.isEmpty());
  }

  qRcnConsensusLegend* Owner = nullptr;
  QVector<double> Volumes;
  QString Unit = QStringLiteral(" mL");
  rcn_palette Palette = RCN_PALETTE_GREEN;
  int Isolated = -1;
  qRcnTable* Table = nullptr;
  QComboBox* Colors = nullptr;
  QPushButton* All = nullptr;
  QLabel* Hint = nullptr;
};

qRcnConsensusLegend::qRcnConsensusLegend(QWidget* parent) : QWidget(parent), d(new qRcnConsensusLegendPrivate)
{
  auto* p = this->d.get();
  p->Owner = this;
  p->Table = new qRcnTable(this, "levels", tr("Levels of consensus"));
  p->Table->setHeadings({ tr("Marked by"), tr("Volume") });
  p->Table->setRowsOnly();
  p->Table->setAlternatingRowColors(false); // the levels' own colors stand in the rows
  p->Table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  p->Table->horizontalHeader()->setSectionsClickable(false);
  p->Table->setIconSize(QSize(28, 16));
  p->Table->setSelectionMode(QAbstractItemView::NoSelection);
  p->Table->setItemDelegateForColumn(1, new BarDelegate(p->Table));

  p->Colors = new QComboBox(this);
  p->Colors->setObjectName("palette");
  p->Colors->setIconSize(QSize(48, 12));
  const QString names[RCN_PALETTES] = { tr("Green to yellow"), tr("Blue to yellow"), tr("Violet to cream"),
    tr("Dark to white") };
  for (int i = 0; i < RCN_PALETTES; ++i)
  {
    p->Colors->addItem(Ramp(static_cast<rcn_palette>(i)), names[i], i);
  }
  qRcnStyle::describe(p->Colors, tr("Colors"),
    tr("Colors of the levels. In each of them more raters are brighter, so that levels can be told apart without seeing red or "
       "green."));
  p->All = new QPushButton(tr("Show all"), this);
  p->All->setObjectName("all");
  p->All->setToolTip(tr("Show all levels again (Esc)"));
  p->Hint = qRcnStyle::newNote(this, "hint", tr("Open a case with raters to see where they agree."));
  auto* row = new QHBoxLayout;
  row->addWidget(p->Colors, 1);
  row->addWidget(p->All);
  auto* layout = qRcnStyle::newColumn(this, { p->Hint, p->Table });
  layout->addLayout(row);
  layout->addStretch(1);
  p->Table->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Maximum);

  connect(p->Table, &qRcnTable::rowChosen, this, [p](int line) { p->isolate(p->levelOf(line)); });
  connect(p->All, &QPushButton::clicked, this, [p] { p->isolate(-1); });
  connect(p->Colors, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [this](int index) {
    this->setLevelPalette(static_cast<rcn_palette>(index));
    emit levelPaletteChanged(this->levelPalette());
  });
  p->refresh();
}

qRcnConsensusLegend::~qRcnConsensusLegend() = default;

void qRcnConsensusLegend::setLevels(const QVector<double>& extents, const QString& unit, const QString& name)
{
  this->d->Volumes = extents;
  this->d->Unit = unit;
  this->d->Table->horizontalHeaderItem(1)->setText(name);
  // A case with fewer raters does not have that level.
  const bool gone = this->d->Isolated >= extents.size();
  if (gone)
  {
    this->d->Isolated = -1;
  }
  this->d->refresh();
  if (gone)
  {
    emit levelIsolated(-1);
  }
}

rcn_palette qRcnConsensusLegend::levelPalette() const
{
  return this->d->Palette;
}

int qRcnConsensusLegend::isolatedLevel() const
{
  return this->d->Isolated;
}

void qRcnConsensusLegend::setLevelPalette(rcn_palette palette)
{
  this->d->Palette = rcn_palette_name(palette) ? palette : RCN_PALETTE_GREEN;
  const QSignalBlocker blocker(this->d->Colors);
  this->d->Colors->setCurrentIndex(this->d->Palette);
  this->d->refresh();
}

void qRcnConsensusLegend::setIsolatedLevel(int level)
{
  this->d->Isolated = level >= 0 && level < this->d->Volumes.size() ? level : -1;
  this->d->refresh();
}

void qRcnConsensusLegend::keyPressEvent(QKeyEvent* event)
{
  if (event->key() == Qt::Key_Escape && this->d->Isolated >= 0)
  {
    this->d->isolate(-1);
    return;
  }
  QWidget::keyPressEvent(event);
}

void qRcnConsensusLegend::changeEvent(QEvent* event)
{
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && this->d->Hint)
  {
    this->d->refresh(); // in the palette's colors
  }
}
