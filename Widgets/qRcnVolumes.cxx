// SPDX-License-Identifier: Apache-2.0
#include "qRcnVolumes.h"

#include <QHeaderView>
#include <QLabel>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include "qRcnStyle.h"

namespace
{

/// More of them are noise to a reader; files have all.
constexpr size_t MostComponents = 50;

} // namespace

class qRcnVolumesPrivate
{
public:
  static void fill(qRcnTable* table, const rcn::VolumeTable& shown)
  {
    const QSignalBlocker blocker(table);
    QStringList headings;
    for (const std::string& heading : shown.Headings)
    {
      headings << QString::fromStdString(heading);
    }
    table->clear();
    table->setColumnCount(headings.size());
    table->setHeadings(headings);
    table->setRowCount(static_cast<int>(shown.Rows.size()));
    for (int row = 0; row < table->rowCount(); ++row)
    {
      for (int column = 0; column < headings.size(); ++column)
      {
        const std::string& text = shown.Rows[static_cast<size_t>(row)][static_cast<size_t>(column)];
        table->setItem(row, column, new QTableWidgetItem(QString::fromStdString(text)));
      }
    }
    table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table->horizontalHeader()->setStretchLastSection(true);
  }

  void showDetails(bool shown)
  {
    this->Details->setArrowType(shown ? Qt::DownArrow : Qt::RightArrow);
    this->Figures->setVisible(shown);
    this->Components->setVisible(shown && this->Components->rowCount() > 0);
    this->More->setVisible(shown && !this->More->text().isEmpty());
  }

  QLabel *Sentence = nullptr, *Remark = nullptr, *More = nullptr;
  QToolButton* Details = nullptr;
  qRcnTable *Figures = nullptr, *Components = nullptr;
};

qRcnVolumes::qRcnVolumes(QWidget* parent) : QWidget(parent), d(new qRcnVolumesPrivate)
{
  auto* p = this->d.get();
  p->Sentence = new QLabel(this);
  p->Sentence->setObjectName("sentence");
  p->Sentence->setWordWrap(true);
  p->Sentence->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  p->Remark = qRcnStyle::newNote(this, "remark");
  p->More = qRcnStyle::newNote(this, "more");
  p->Details = qRcnStyle::newTool(
    this, "details", tr("Figures and components"), tr("Volumes by number of raters, and connected parts of the map"));
  p->Details->setCheckable(true);
  p->Details->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  p->Figures = new qRcnTable(this, "figures", tr("Volumes that raters would mark"));
  p->Components = new qRcnTable(this, "components", tr("Connected parts of the map, largest first"));
  for (qRcnTable* table : { p->Figures, p->Components })
  {
    table->setRowsOnly();
    table->horizontalHeader()->setSectionsClickable(false);
    table->setVisibleRows(2, 6);
  }
  auto* layout = qRcnStyle::newColumn(this);
  layout->addWidget(p->Sentence);
  layout->addWidget(p->Remark);
  layout->addWidget(p->Details);
  layout->addWidget(p->Figures);
  layout->addWidget(p->Components);
  layout->addWidget(p->More);
  connect(p->Details, &QToolButton::toggled, this, [p](bool shown) { p->showDetails(shown); });
  connect(p->Components, &qRcnTable::rowChosen, this, &qRcnVolumes::componentActivated);
  this->setVolumes({});
}

qRcnVolumes::~qRcnVolumes() = default;

void qRcnVolumes::setVolumes(const rcn::PredictedVolumes& volumes)
{
  auto* p = this->d.get();
  this->setVisible(volumes.IsKnown());
  p->Sentence->setText(volumes.IsKnown() ? QString::fromStdString(volumes.Sentence()) : QString());
  p->Remark->setText(QString::fromStdString(volumes.Remark));
  p->Remark->setVisible(!volumes.Remark.empty());
  p->fill(p->Figures, volumes.IsKnown() ? volumes.Table() : rcn::VolumeTable());
  p->fill(p->Components, volumes.IsKnown() ? volumes.ComponentTable(MostComponents) : rcn::VolumeTable());
  const size_t count = volumes.Components.size();
  p->More->setText(!volumes.IsKnown() ? QString()
      : count > MostComponents        ? tr("and %1 smaller components").arg(count - MostComponents)
      : count == 0                    ? tr("No part of the map is marked by any rater more likely than not.")
                                      : QString());
  p->showDetails(p->Details->isChecked());
}
