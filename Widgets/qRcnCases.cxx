// SPDX-License-Identifier: Apache-2.0
#include "qRcnCases.h"

#include <algorithm>
#include <cmath>

#include <QDragEnterEvent>
#include <QEvent>
#include <QHash>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPainter>
#include <QSet>
#include <QVBoxLayout>

#include "qRcnStyle.h"

namespace
{

enum Column
{
  NameColumn,
  RatersColumn,
  DiceColumn,
  SplitColumn,
  StatusColumn,
  ColumnCount
};

} // namespace

class qRcnCasesPrivate
{
public:
  struct State
  {
    qRcnCases::Status Status = qRcnCases::NotRead;
    QString Sentence;
    double Dice = NAN;
  };

  static QString statusText(const State& state)
  {
    switch (state.Status)
    {
      case qRcnCases::NotRead: return qRcnCases::tr("not read");
      case qRcnCases::Reading: return qRcnCases::tr("reading");
      case qRcnCases::Read: return qRcnCases::tr("read");
      case qRcnCases::Predicted: return qRcnCases::tr("predicted");
      case qRcnCases::Problem:
        return state.Sentence.isEmpty() ? qRcnCases::tr("problem") : qRcnCases::tr("problem: %1").arg(state.Sentence);
    }
    return QString();
  }

  /// Form and color both tell, for those who see only one of them.
  static QPixmap statusSign(qRcnCases::Status status, const QColor& line, const QColor& hole)
  {
    QPixmap pixmap(32, 32);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(2, 2);
    painter.setPen(QPen(line, 1.6));
    if (status == qRcnCases::Problem)
    {
      painter.drawPolygon(QPolygonF({ QPointF(8, 2), QPointF(14.5, 13.5), QPointF(1.5, 13.5) }));
      painter.drawLine(QPointF(8, 6.5), QPointF(8, 9.5));
      painter.drawPoint(QPointF(8, 11.8));
      return pixmap;
    }
    painter.drawEllipse(QPointF(8, 8), 5.5, 5.5);
    painter.setBrush(line);
    if (status == qRcnCases::Reading)
    {
      painter.drawPie(QRectF(2.5, 2.5, 11, 11), 90 * 16, -120 * 16);
    }
    else if (status == qRcnCases::Read)
    {
      painter.drawEllipse(QPointF(8, 8), 2.2, 2.2);
    }
    else if (status == qRcnCases::Predicted)
    {
      painter.drawEllipse(QPointF(8, 8), 5.5, 5.5);
      painter.setPen(QPen(hole, 1.8));
      painter.drawPolyline(QPolygonF({ QPointF(5, 8.2), QPointF(7.2, 10.4), QPointF(11, 5.8) }));
    }
    return pixmap;
  }

  QIcon statusIcon(qRcnCases::Status status) const
  {
    const QPalette& palette = this->Owner->palette();
    const QColor line = status == qRcnCases::NotRead ? qRcnStyle::muted(palette)
      : status == qRcnCases::Problem                 ? qRcnStyle::warning(palette)
                                                     : qRcnStyle::accent(palette);
    QIcon icon(statusSign(status, line, palette.color(QPalette::Base)));
    icon.addPixmap(
      statusSign(status, palette.color(QPalette::HighlightedText), palette.color(QPalette::Highlight)), QIcon::Selected);
    return icon;
  }

  /// Rows move when the table is sorted, so a case is found by its id, which its first cell holds.
  int rowOf(const QString& id) const
  {
    for (int row = 0; row < this->Table->rowCount(); ++row)
    {
      if (this->idOf(row) == id)
      {
        return row;
      }
    }
    return -1;
  }

  QString idOf(int row) const { return this->Table->item(row, NameColumn)->data(Qt::UserRole).toString(); }

  void refreshRow(int row)
  {
    const QString id = this->idOf(row);
    const State state = this->States.value(id);
    QTableWidgetItem* name = this->Table->item(row, NameColumn);
    name->setIcon(this->statusIcon(state.Status));
    QFont font = this->Table->font();
    font.setBold(id == this->Current);
    name->setFont(font);
    this->Table->setItem(row, DiceColumn,
      new qRcnNumberItem(std::isfinite(state.Dice) ? QString::number(state.Dice, 'f', 2) : QString(), state.Dice));
    this->Table->item(row, StatusColumn)->setText(statusText(state));
    const QString hint =
      qRcnCases::tr("%1 (%2): %3\nRaters: %4%5")
        .arg(id, this->Table->item(row, SplitColumn)->text(), statusText(state),
          this->Table->item(row, RatersColumn)->data(Qt::AccessibleTextRole).toString(),
          std::isfinite(state.Dice) ? qRcnCases::tr("\nMean Dice of two raters: %1").arg(state.Dice, 0, 'f', 3) : QString());
    for (int c = 0; c < ColumnCount; ++c)
    {
      this->Table->item(row, c)->setToolTip(hint);
    }
  }

  /// Every word must occur somewhere: "test problem" finds the test cases with a problem.
  void refreshFilter()
  {
    const QStringList words = this->Search->text().split(' ');
    int shown = 0;
    for (int row = 0; row < this->Table->rowCount(); ++row)
    {
      const QString text = QStringList(
        { this->idOf(row), this->Table->item(row, SplitColumn)->text(), this->Table->item(row, StatusColumn)->text(),
          this->Table->item(row, RatersColumn)->data(Qt::AccessibleTextRole).toString() })
                             .join(' ');
      const bool fits = std::all_of(
        words.begin(), words.end(), [&text](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
      this->Table->setRowHidden(row, !fits);
      shown += fits;
    }
    const int count = this->Table->rowCount();
    const QString all = qRcnStyle::counted(count, "case");
    this->Footer->setText(count == 0 ? qRcnCases::tr("Drop a data list, images with masks, or a DICOM folder here.")
        : shown < count              ? qRcnCases::tr("%1 of %2").arg(shown).arg(all)
                                     : all);
    this->Table->setVisible(count > 0);
    this->Search->setVisible(count > 0);
  }

  /// In a narrow panel the icon tells the status, and the raters' dots move together: names must be told apart.
  void refreshColumns()
  {
    QHeaderView* header = this->Table->horizontalHeader();
    const bool narrow = this->Owner->width() < 300;
    const int raters = std::max(44, header->sectionSizeHint(RatersColumn));
    header->setSectionResizeMode(RatersColumn, narrow ? QHeaderView::Fixed : QHeaderView::ResizeToContents);
    if (narrow)
    {
      header->resizeSection(RatersColumn, raters);
    }
    // In a very narrow one the tool tip tells Dice.
    const int names = std::max(
      static_cast<const QAbstractItemView*>(this->Table)->sizeHintForColumn(NameColumn), header->sectionSizeHint(NameColumn));
    this->Table->setColumnHidden(DiceColumn, false); // a hidden one has no size
    const int room = this->Owner->width() - this->leastWidth() + this->nameWidth() - std::min(names, this->nameWidth());
    this->Table->setColumnHidden(DiceColumn, room < header->sectionSizeHint(DiceColumn));
    this->Table->setColumnHidden(StatusColumn, this->Owner->width() < 420);
    this->Table->setColumnHidden(SplitColumn, narrow || !this->SeveralSplits);
  }

  /// Room for a name of usual length, with its icon.
  int nameWidth() const { return this->Table->fontMetrics().horizontalAdvance(QStringLiteral("training12")) + 34; }

  /// A short name and who answered.
  int leastWidth() const
  {
    return this->nameWidth() + std::max(44, this->Table->horizontalHeader()->sectionSizeHint(RatersColumn)) +
      this->Table->style()->pixelMetric(QStyle::PM_ScrollBarExtent) + 2 * this->Table->frameWidth() + 12;
  }

  /// Shown as the open one at once; who opens cases tells when it could not be opened.
  void activate(int row)
  {
    if (row >= 0)
    {
      this->Owner->setCurrentCase(this->idOf(row));
      emit this->Owner->caseActivated(this->idOf(row));
    }
  }

  qRcnCases* Owner = nullptr;
  QStringList Raters;
  QHash<QString, State> States;
  QString Current;
  bool SeveralSplits = false;
  QLineEdit* Search = nullptr;
  qRcnTable* Table = nullptr;
  QLabel* Footer = nullptr;
};

qRcnCases::qRcnCases(QWidget* parent) : QWidget(parent), d(new qRcnCasesPrivate)
{
  auto* p = this->d.get();
  p->Owner = this;
  p->Search = new QLineEdit(this);
  p->Search->setObjectName("search");
  p->Search->setPlaceholderText(tr("Search"));
  p->Search->setClearButtonEnabled(true);
  qRcnStyle::describe(p->Search, tr("Search cases"), tr("Words of a case's name, set, status or raters."));
  p->Search->installEventFilter(this);
  p->Table = new qRcnTable(this, "cases", tr("Cases"));
  p->Table->setHeadings({ tr("Case"), tr("Raters"), tr("Dice"), tr("Set"), tr("Status") },
    { tr("Click a heading to sort."), tr("Filled: the rater answered this case. Hollow: did not."),
      tr("How far the raters of the case agree: mean Dice of two of them. 1: the same voxels."),
      tr("What the case is for: training, validation or test."), tr("What was done with the case.") });
  p->Table->setRowsOnly();
  p->Table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  p->Table->horizontalHeader()->setSectionResizeMode(NameColumn, QHeaderView::Stretch);
  p->Table->horizontalHeader()->setSectionResizeMode(StatusColumn, QHeaderView::Interactive);
  p->Table->horizontalHeader()->resizeSection(StatusColumn, 120);
  p->Table->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  p->Table->setTextElideMode(Qt::ElideMiddle); // names of cases differ at their ends
  p->Table->setItemDelegateForColumn(RatersColumn, new qRcnDotsDelegate(p->Table));
  p->Table->setVisibleRows(3, 30);
  p->Footer = qRcnStyle::newNote(this, "footer");
  qRcnStyle::newColumn(this, { p->Search, p->Table, p->Footer })->setStretch(1, 1);
  this->setAcceptDrops(true);

  connect(p->Search, &QLineEdit::textChanged, this, [p] { p->refreshFilter(); });
  connect(p->Search, &QLineEdit::returnPressed, this, [this, p] { p->activate(p->rowOf(this->shownCases().value(0))); });
  connect(p->Table, &qRcnTable::rowChosen, this, [p](int row) { p->activate(row); });
  this->setMinimumWidth(p->leastWidth());
  p->refreshFilter();
}

qRcnCases::~qRcnCases() = default;

void qRcnCases::setCases(const std::vector<rcn::Case>& cases, const QStringList& raters)
{
  auto* p = this->d.get();
  p->Raters = raters;
  p->Table->setSortingEnabled(false);
  p->Table->clearContents();
  p->Table->setRowCount(static_cast<int>(cases.size()));
  QHash<QString, qRcnCasesPrivate::State> states;
  QSet<QString> splits;
  for (int row = 0; row < p->Table->rowCount(); ++row)
  {
    const rcn::Case& one = cases[static_cast<size_t>(row)];
    const QString id = QString::fromStdString(one.Id);
    // What was found out about a case stays while it is in the list, whatever is added.
    states[id] = p->States.value(id);
    splits << QString::fromStdString(one.Split);
    auto* name = new QTableWidgetItem(id);
    name->setData(Qt::UserRole, id);
    QStringList names;
    // A bit for each rater of the list; who is not in it has no dot.
    quint64 set = 0;
    for (const rcn::RaterFile& rater : one.Raters)
    {
      names << QString::fromStdString(rater.Name);
      const int index = raters.indexOf(names.last());
      set |= index >= 0 ? quint64(1) << index : 0;
    }
    auto* who = new qRcnNumberItem(QString(), names.size());
    qRcnDotsDelegate::setRaters(who, set, static_cast<int>(raters.size()), names.join(QStringLiteral(", ")));
    p->Table->setItem(row, NameColumn, name);
    p->Table->setItem(row, RatersColumn, who);
    p->Table->setItem(row, SplitColumn, new QTableWidgetItem(QString::fromStdString(one.Split)));
    p->Table->setItem(row, StatusColumn, new QTableWidgetItem);
  }
  p->States = states;
  p->SeveralSplits = splits.size() > 1;
  if (!states.contains(p->Current))
  {
    p->Current.clear();
  }
  for (int row = 0; row < p->Table->rowCount(); ++row)
  {
    p->refreshRow(row);
  }
  p->Table->setSortingEnabled(true);
  p->refreshFilter();
  p->refreshColumns();
  this->setCurrentCase(p->Current);
}

void qRcnCases::setStatus(const QString& id, Status status, const QString& sentence)
{
  const int row = this->d->rowOf(id);
  if (row < 0)
  {
    return;
  }
  this->d->States[id].Status = status;
  this->d->States[id].Sentence = sentence;
  this->d->Table->setSortingEnabled(false); // a row must not move away under the hand that fills it
  this->d->refreshRow(row);
  this->d->Table->setSortingEnabled(true);
  this->d->refreshFilter();
}

void qRcnCases::setAgreement(const QString& id, double meanDice)
{
  const int row = this->d->rowOf(id);
  if (row < 0)
  {
    return;
  }
  this->d->States[id].Dice = meanDice;
  this->d->Table->setSortingEnabled(false);
  this->d->refreshRow(row);
  this->d->Table->setSortingEnabled(true);
  this->d->refreshFilter();
}

QString qRcnCases::currentCase() const
{
  return this->d->Current;
}

qRcnCases::Status qRcnCases::status(const QString& id) const
{
  return this->d->States.value(id).Status;
}

QStringList qRcnCases::shownCases() const
{
  QStringList ids;
  for (int row = 0; row < this->d->Table->rowCount(); ++row)
  {
    if (!this->d->Table->isRowHidden(row))
    {
      ids << this->d->idOf(row);
    }
  }
  return ids;
}

void qRcnCases::setCurrentCase(const QString& id)
{
  auto* p = this->d.get();
  const int before = p->rowOf(p->Current), now = p->rowOf(id);
  p->Current = now >= 0 ? id : QString();
  for (const int row : { before, now })
  {
    if (row >= 0)
    {
      QFont font = p->Table->font();
      font.setBold(row == now);
      p->Table->item(row, NameColumn)->setFont(font);
    }
  }
  p->Table->setCurrentCell(now, now >= 0 ? NameColumn : -1);
}

void qRcnCases::dragEnterEvent(QDragEnterEvent* event)
{
  if (!qRcnStyle::localFiles(event->mimeData()).isEmpty())
  {
    event->acceptProposedAction();
  }
}

void qRcnCases::dropEvent(QDropEvent* event)
{
  const QStringList paths = qRcnStyle::localFiles(event->mimeData());
  if (!paths.isEmpty())
  {
    event->acceptProposedAction();
    emit filesDropped(paths);
  }
}

void qRcnCases::resizeEvent(QResizeEvent* event)
{
  QWidget::resizeEvent(event);
  this->d->refreshColumns();
  // A list that was filled before the window had its size still shows the open case.
  this->layout()->activate();
  this->d->Table->scrollToItem(this->d->Table->currentItem());
}

bool qRcnCases::eventFilter(QObject* watched, QEvent* event)
{
  // From the search box down into the list.
  if (watched == this->d->Search && event->type() == QEvent::KeyPress && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Down)
  {
    const int row = this->d->rowOf(this->shownCases().value(0));
    if (row >= 0)
    {
      this->d->Table->setFocus();
      this->d->Table->setCurrentCell(row, NameColumn);
    }
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

void qRcnCases::changeEvent(QEvent* event)
{
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && this->d->Footer)
  {
    for (int row = 0; row < this->d->Table->rowCount(); ++row)
    {
      this->d->refreshRow(row); // signs in the palette's colors
    }
  }
}
