// SPDX-License-Identifier: Apache-2.0
#include "qRcnDisputes.h"

#include <algorithm>
#include <numeric>

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include "qRcnStyle.h"
#include "rcn/rcn_slice.h"
#include "rcnReport.h"

class qRcnDisputesPrivate
{
public:
  QString names(uint64_t raters) const
  {
    QStringList names;
    for (int r = 0; r < this->Raters.size(); ++r)
    {
      if (raters >> r & 1)
      {
        names << this->Raters[r];
      }
    }
    return names.join(QStringLiteral(", "));
  }

  /// The axial slice of a region, as the views number it.
  int64_t slice(int region) const { return this->Regions[static_cast<size_t>(region)].at[this->Axis] + 1; }

  /// Regions come by size from the core; by slice they are in the order in which a person leafs through a volume.
  void sort()
  {
    this->Rows.resize(this->Regions.size());
    std::iota(this->Rows.begin(), this->Rows.end(), 0);
    if (this->order() == qRcnDisputes::BySlice)
    {
      // Stable: the largest of a slice stays first.
      std::stable_sort(this->Rows.begin(), this->Rows.end(), [this](int a, int b) { return this->slice(a) < this->slice(b); });
    }
  }

  qRcnDisputes::Order order() const { return static_cast<qRcnDisputes::Order>(this->Ranking->currentData().toInt()); }

  /// The row of a region; -1 for none.
  int rowOf(int region) const
  {
    const auto found = std::find(this->Rows.begin(), this->Rows.end(), region);
    return found == this->Rows.end() ? -1 : static_cast<int>(found - this->Rows.begin());
  }

  void fill()
  {
    this->sort();
    const QSignalBlocker blocker(this->Table);
    this->Table->clearContents();
    this->Table->horizontalHeaderItem(0)->setText(QString::fromStdString(this->Extent.Name));
    this->Table->horizontalHeaderItem(2)->setText(
      qRcnDisputes::tr("Where (%1)").arg(QString::fromStdString(this->Extent.InPixels ? this->Extent.Length : "mm")));
    this->Table->setRowCount(static_cast<int>(this->Regions.size()));
    for (int i = 0; i < this->Table->rowCount(); ++i)
    {
      const int number = this->Rows[static_cast<size_t>(i)];
      const rcn_dispute& region = this->Regions[static_cast<size_t>(number)];
      double ras[3];
      rcn::ToRas(ras, region.centroid_world);
      const double measured = static_cast<double>(region.voxels) * this->Extent.PerVoxel;
      const QString size = qRcnStyle::extent(measured, QString::fromStdString(this->Extent.Unit));
      const QString pixel = QString::fromStdString(this->Extent.PlaceOf(region));
      auto* volume = new qRcnNumberItem(size, measured);
      auto* who = new QTableWidgetItem;
      qRcnDotsDelegate::setRaters(who, region.marked_by, static_cast<int>(this->Raters.size()), this->names(region.marked_by));
      auto* where = new QTableWidgetItem(this->Extent.InPixels ? pixel : qRcnStyle::position(ras, 0));
      const QString hint =
        qRcnDisputes::tr("%1 (%2) marked by %3, at most %4 of them in one place. Around %5.")
          .arg(size, qRcnStyle::counted(region.voxels, "voxel"), this->names(region.marked_by))
          .arg(region.max_votes)
          .arg(this->Extent.InPixels
              ? qRcnDisputes::tr("pixel %1").arg(pixel)
              : qRcnDisputes::tr("%1 mm (right/left, anterior/posterior, superior/inferior)").arg(qRcnStyle::position(ras, 1)));
      auto* slice = new qRcnNumberItem(QString::number(this->slice(number)), static_cast<double>(this->slice(number)));
      int column = 0;
      for (QTableWidgetItem* item :
        { static_cast<QTableWidgetItem*>(volume), who, where, static_cast<QTableWidgetItem*>(slice) })
      {
        item->setToolTip(hint);
        this->Table->setItem(i, column++, item);
      }
    }
    this->refresh();
  }

  void refresh()
  {
    const int count = static_cast<int>(this->Regions.size());
    this->Where->setText(count == 0 ? QString()
        : this->Current < 0         ? qRcnStyle::counted(count, "region")
                                    : qRcnDisputes::tr("%1 of %2").arg(this->rowOf(this->Current) + 1).arg(count));
    const int row = this->rowOf(this->Current);
    this->Previous->setEnabled(row > 0);
    this->Next->setEnabled(row + 1 < count);
    this->Hint->setVisible(count == 0);
    this->Table->setVisible(count > 0);
    const QSignalBlocker blocker(this->Table);
    if (row >= 0)
    {
      this->Table->setCurrentCell(row, 0);
      this->Table->scrollToItem(this->Table->item(row, 0));
    }
    else
    {
      this->Table->setCurrentCell(-1, -1);
    }
  }

  /// Chosen by a click, a key or a button: all of them end here.
  void activate(int row)
  {
    this->Current = this->Rows[static_cast<size_t>(row)];
    this->refresh();
    emit this->Owner->regionActivated(this->Current);
  }

  qRcnDisputes* Owner = nullptr;
  std::vector<rcn_dispute> Regions;
  std::vector<int> Rows; ///< the regions in the order of the table
  int Axis = 2;          ///< along which slices are counted
  QStringList Raters;
  rcn::Extent Extent{ rcn_geometry_make(2, 2, 2) };
  int Current = -1;
  qRcnTable* Table = nullptr;
  QLabel *Where = nullptr, *Hint = nullptr;
  QToolButton *Previous = nullptr, *Next = nullptr;
  QComboBox* Ranking = nullptr;
};

qRcnDisputes::qRcnDisputes(QWidget* parent) : QWidget(parent), d(new qRcnDisputesPrivate)
{
  auto* p = this->d.get();
  p->Owner = this;
  p->Previous = qRcnStyle::newTool(this, "previous", tr("‹ Previous"), tr("Go to the previous disputed region."));
  p->Next = qRcnStyle::newTool(this, "next", tr("Next ›"), tr("Go to the next disputed region."));
  p->Where = new QLabel(this);
  p->Where->setObjectName("where");
  p->Where->setAlignment(Qt::AlignCenter);
  auto* row = new QHBoxLayout;
  row->addWidget(p->Previous);
  row->addWidget(p->Where, 1);
  row->addWidget(p->Next);
  p->Ranking = new QComboBox(this);
  p->Ranking->setObjectName("order");
  p->Ranking->addItem(tr("Largest first"), BySize);
  p->Ranking->addItem(tr("Slice by slice"), BySlice);
  qRcnStyle::describe(p->Ranking, tr("Order of the disputed regions"));
  row->addWidget(p->Ranking);

  p->Hint = qRcnStyle::newNote(this, "hint");
  p->Table = new qRcnTable(this, "regions", tr("Disputed regions"));
  p->Table->setHeadings({ tr("Volume"), tr("Marked by"), tr("Where (mm)"), tr("Slice") });
  p->Table->setRowsOnly();
  p->Table->horizontalHeader()->setSectionsClickable(false);
  p->Table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  p->Table->horizontalHeader()->setSectionResizeMode(2, QHeaderView::Stretch);
  p->Table->setItemDelegateForColumn(1, new qRcnDotsDelegate(p->Table));
  p->Table->setVisibleRows(4, 14);
  auto* layout = qRcnStyle::newColumn(this);
  layout->addLayout(row);
  layout->addWidget(p->Hint);
  layout->addWidget(p->Table, 1);

  connect(p->Ranking, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [p] { p->fill(); });
  connect(p->Previous, &QToolButton::clicked, this, &qRcnDisputes::previous);
  connect(p->Next, &QToolButton::clicked, this, &qRcnDisputes::next);
  // Arrow keys move the current row and go there; a click goes there also when the row was current already.
  connect(p->Table, &QTableWidget::currentCellChanged, this, [p](int line, int, int before, int) {
    if (line >= 0 && line != before && !p->Table->inMousePress())
    {
      p->activate(line);
    }
  });
  connect(p->Table, &qRcnTable::rowChosen, this, [p](int line) { p->activate(line); });
  this->clear();
}

qRcnDisputes::~qRcnDisputes() = default;

void qRcnDisputes::setRegions(
  std::vector<rcn_dispute> regions, const QStringList& raters, const rcn_geometry& geometry, const rcn::Units& units)
{
  this->d->Regions = std::move(regions);
  this->d->Extent = rcn::Extent(geometry, units);
  this->d->Raters = raters;
  this->d->Current = -1;
  // A picture, or a volume of one slice, has nothing to count.
  rcn_plane plane;
  rcn_plane_make(&plane, &geometry, RCN_VIEW_AXIAL);
  this->d->Axis = plane.axis;
  const bool slices = rcn_geometry_thin_axis(&geometry) < 0;
  this->d->Table->setColumnHidden(3, !slices);
  this->d->Ranking->setVisible(slices);
  if (!slices)
  {
    const QSignalBlocker quiet(this->d->Ranking);
    this->d->Ranking->setCurrentIndex(0);
  }
  this->d->Hint->setText(raters.isEmpty() ? tr("Open a case with two or more raters to see where they disagree.")
                                          : tr("Nothing is disputed: wherever one rater marked, all did."));
  this->d->fill();
}

void qRcnDisputes::clear()
{
  this->setRegions({}, {}, rcn_geometry_make(2, 2, 2));
}

qRcnDisputes::Order qRcnDisputes::order() const
{
  return this->d->order();
}

void qRcnDisputes::setOrder(Order order)
{
  this->d->Ranking->setCurrentIndex(this->d->Ranking->findData(order));
}

int qRcnDisputes::current() const
{
  return this->d->Current;
}

int qRcnDisputes::count() const
{
  return static_cast<int>(this->d->Regions.size());
}

void qRcnDisputes::next()
{
  const int row = this->d->rowOf(this->d->Current);
  if (row + 1 < this->count())
  {
    this->d->activate(row + 1);
  }
}

void qRcnDisputes::previous()
{
  const int row = this->d->rowOf(this->d->Current);
  if (row > 0)
  {
    this->d->activate(row - 1);
  }
}

void qRcnDisputes::setCurrent(int index)
{
  this->d->Current = index >= 0 && index < this->count() ? index : -1;
  this->d->refresh();
}
