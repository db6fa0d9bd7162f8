// SPDX-License-Identifier: Apache-2.0
#include "qRcnDisputes.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include "qRcnStyle.h"
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

  void fill()
  {
    const QSignalBlocker blocker(this->Table);
    this->Table->clearContents();
    this->Table->horizontalHeaderItem(0)->setText(QString::fromStdString(this->Extent.Name));
    this->Table->horizontalHeaderItem(2)->setText(
      qRcnDisputes::tr("Where (%1)").arg(QString::fromStdString(this->Extent.Length)));
    this->Table->setRowCount(static_cast<int>(this->Regions.size()));
    for (int i = 0; i < this->Table->rowCount(); ++i)
    {
      const rcn_dispute& region = this->Regions[static_cast<size_t>(i)];
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
      int column = 0;
      for (QTableWidgetItem* item : { static_cast<QTableWidgetItem*>(volume), who, where })
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
                                    : qRcnDisputes::tr("%1 of %2").arg(this->Current + 1).arg(count));
    this->Previous->setEnabled(this->Current > 0);
    this->Next->setEnabled(this->Current + 1 < count);
    this->Hint->setVisible(count == 0);
    this->Table->setVisible(count > 0);
    const QSignalBlocker blocker(this->Table);
    if (this->Current >= 0)
    {
      this->Table->setCurrentCell(this->Current, 0);
      this->Table->scrollToItem(this->Table->item(this->Current, 0));
    }
    else
    {
      this->Table->setCurrentCell(-1, -1);
    }
  }

  void activate(int index)
  {
    this->Current = index;
    this->refresh();
    emit this->Owner->regionActivated(index);
  }

  qRcnDisputes* Owner = nullptr;
  std::vector<rcn_dispute> Regions;
  QStringList Raters;
  rcn::Extent Extent{ rcn_geometry_make(2, 2, 2) };
  int Current = -1;
  qRcnTable* Table = nullptr;
  QLabel *Where = nullptr, *Hint = nullptr;
  QToolButton *Previous = nullptr, *Next = nullptr;
};

qRcnDisputes::qRcnDisputes(QWidget* parent) : QWidget(parent), d(new qRcnDisputesPrivate)
{
  auto* p = this->d.get();
  p->Owner = this;
  p->Previous = qRcnStyle::newTool(this, "previous", tr("‹ Previous"), tr("Go to the previous, larger disputed region."));
  p->Next = qRcnStyle::newTool(this, "next", tr("Next ›"), tr("Go to the next, smaller disputed region."));
  p->Where = new QLabel(this);
  p->Where->setObjectName("where");
  p->Where->setAlignment(Qt::AlignCenter);
  auto* row = new QHBoxLayout;
  row->addWidget(p->Previous);
  row->addWidget(p->Where, 1);
  row->addWidget(p->Next);

  p->Hint = qRcnStyle::newNote(this, "hint");
  p->Table = new qRcnTable(this, "regions", tr("Disputed regions, largest first"));
  p->Table->setHeadings({ tr("Volume"), tr("Marked by"), tr("Where (mm)") });
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

void qRcnDisputes::setRegions(std::vector<rcn_dispute> regions, const QStringList& raters, const rcn_geometry& geometry)
{
  this->d->Regions = std::move(regions);
  this->d->Extent = rcn::Extent(geometry);
  this->d->Raters = raters;
  this->d->Current = -1;
  this->d->Hint->setText(raters.isEmpty() ? tr("Open a case with two or more raters to see where they disagree.")
                                          : tr("Nothing is disputed: wherever one rater marked, all did."));
  this->d->fill();
}

void qRcnDisputes::clear()
{
  this->setRegions({}, {}, rcn_geometry_make(2, 2, 2));
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
  if (this->d->Current + 1 < this->count())
  {
    this->d->activate(this->d->Current + 1);
  }
}

void qRcnDisputes::previous()
{
  if (this->d->Current > 0)
  {
    this->d->activate(this->d->Current - 1);
  }
}

void qRcnDisputes::setCurrent(int index)
{
  this->d->Current = index >= 0 && index < this->count() ? index : -1;
  this->d->refresh();
}
