// SPDX-License-Identifier: Apache-2.0
#include "qRcnAgreementSet.h"

#include <map>

#include <QHeaderView>
#include <QLabel>
#include <QScrollBar>
#include <QVBoxLayout>

#include "qRcnStyle.h"
#include "rcnReport.h"

namespace
{

QString Text(const std::string& text)
{
  return QString::fromStdString(text);
}

/// A mean with its interval in the hint, where there is no room for it, or beside it.
QTableWidgetItem* CellOf(const rcn::SetFigure* figure, const QString& text)
{
  auto* item = new qRcnNumberItem(text, figure ? figure->Mean.value : NAN);
  if (figure)
  {
    item->setToolTip(qRcnAgreementSet::tr("%1: %2, 95 % interval %3, from %4 to %5 in %6")
        .arg(Text(figure->Name), Text(figure->MeanText()), Text(figure->IntervalText()),
          Text(rcn::Fixed(figure->Lowest, figure->Digits)), Text(rcn::Fixed(figure->Highest, figure->Digits)),
          Text(rcn::Counted(static_cast<int64_t>(figure->Cases), "case"))));
  }
  return item;
}

/// The number of cases where these are not all of the row's.
QString WithCount(const QString& text, const rcn::SetFigure& figure, size_t cases)
{
  const std::string count = figure.CountText(cases);
  return count.empty() ? text : text + QStringLiteral(" (") + Text(count) + ')';
}

/// A heading where there is little room; the hint has the whole name.
QString ShortName(const rcn::SetFigure& figure)
{
  static const std::map<std::string, QString> names = { { "dice_with_others", qRcnAgreementSet::tr("Dice") },
    { "dice_among_others", qRcnAgreementSet::tr("Others' Dice") }, { "dice_to_others", qRcnAgreementSet::tr("Majority") },
    { "staple_sensitivity", qRcnAgreementSet::tr("Sens.") }, { "staple_specificity", qRcnAgreementSet::tr("Spec.") } };
  const auto found = names.find(figure.Key);
  return found == names.end() ? Text(figure.Name) : found->second;
}

/// As high as its rows, and a scroll bar below them.
void Settle(qRcnTable* table)
{
  table->setVisibleRows(1, 12);
  table->setMinimumHeight(table->sizeHint().height() + table->horizontalScrollBar()->sizeHint().height());
}

/// A table of figures that can be sorted and copied.
qRcnTable* NewTable(QWidget* parent, const char* name, const QString& title)
{
  auto* table = new qRcnTable(parent, name, title);
  table->setRowsOnly();
  table->setSelectionMode(QAbstractItemView::ExtendedSelection); // several rows can be copied
  return table;
}

void Fill(qRcnTable* table, const QString& what, const rcn::SetTable& content)
{
  QStringList headings = { what }, hints = { qRcnAgreementSet::tr("Click to sort.") };
  for (const rcn::SetFigure* column : content.Columns)
  {
    headings << ShortName(*column);
    hints << Text(column->Name + ": " + column->Meaning);
  }
  table->setSortingEnabled(false);
  table->clear();
  table->setColumnCount(headings.size());
  table->setHeadings(headings, hints);
  table->setRowCount(static_cast<int>(content.Rows.size()));
  for (int r = 0; r < table->rowCount(); ++r)
  {
    const rcn::SetTable::Row& row = content.Rows[static_cast<size_t>(r)];
    auto* name = new QTableWidgetItem(Text(row.Name) + (row.Marked ? QStringLiteral(" *") : QString()));
    if (row.Marked)
    {
      QFont bold = name->font();
      bold.setBold(true);
      name->setFont(bold);
      name->setToolTip(qRcnAgreementSet::tr("Stands out: agrees less with the others than they do among themselves."));
    }
    table->setItem(r, 0, name);
    for (size_t c = 0; c < row.Cells.size(); ++c)
    {
      const rcn::SetFigure* cell = row.Cells[c];
      table->setItem(r, static_cast<int>(c) + 1,
        CellOf(cell, cell ? WithCount(Text(cell->MeanText()), *cell, row.Cases) : QStringLiteral("–")));
    }
  }
  table->setSortingEnabled(true);
  table->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  Settle(table);
}

} // namespace

qRcnAgreementSet::qRcnAgreementSet(QWidget* parent) : QWidget(parent)
{
  this->Sentence = qRcnStyle::newNote(this, "allCasesSentence");
  this->Figures = NewTable(this, "allCasesFigures", tr("Agreement over all cases"));
  this->Figures->setColumnCount(3);
  this->Figures->setHeadings({ tr("All raters together"), tr("Mean"), tr("95 % interval") });
  this->Figures->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  this->Raters = NewTable(this, "allCasesRaters", tr("Raters over all cases"));
  this->Pairs = NewTable(this, "allCasesPairs", tr("Pairs of raters over all cases"));
  qRcnStyle::newColumn(this, { this->Sentence, this->Figures, this->Raters, this->Pairs })->addStretch(1);
  this->setAgreement(nullptr);
}

void qRcnAgreementSet::setAgreement(const std::shared_ptr<const rcn::AgreementOfCases>& agreement)
{
  this->Agreement = agreement;
  for (QWidget* table : { this->Figures, this->Raters, this->Pairs })
  {
    table->setVisible(agreement != nullptr);
  }
  if (!agreement)
  {
    this->Sentence->setText(tr("The raters of all cases are being compared."));
    return;
  }
  const rcn::AgreementSummary& all = agreement->All;
  QString text = tr("%1%2. ").arg(Text(rcn::Counted(static_cast<int64_t>(all.Cases), "case")),
    all.Patients < all.Cases ? tr(" of %1").arg(Text(rcn::Counted(static_cast<int64_t>(all.Patients), "patient"))) : QString());
  for (const std::string& sentence : all.Sentences())
  {
    text += Text(sentence) + ' ';
  }
  const rcn::SetFigure* without = rcn::FigureOf(agreement->Marked.Figures, "mean_dice");
  if (!agreement->EmptySentence.empty())
  {
    text += Text(agreement->EmptySentence) + (without ? tr(" Without them, Dice is %1.").arg(Text(without->MeanText())) : "");
  }
  text += ' ' + Text(agreement->UndefinedSentence);
  this->Sentence->setText(text.trimmed());
  this->Figures->setRowCount(static_cast<int>(all.Figures.size()));
  for (int r = 0; r < this->Figures->rowCount(); ++r)
  {
    const rcn::SetFigure& figure = all.Figures[static_cast<size_t>(r)];
    auto* name = new QTableWidgetItem(Text(figure.Name));
    name->setToolTip(Text(figure.Meaning));
    this->Figures->setItem(r, 0, name);
    this->Figures->setItem(r, 1, CellOf(&figure, WithCount(Text(figure.MeanText()), figure, all.Cases)));
    this->Figures->setItem(r, 2, CellOf(&figure, Text(figure.IntervalText())));
  }
  Settle(this->Figures);
  Fill(this->Raters, tr("Rater"), rcn::RaterTable(all));
  Fill(this->Pairs, tr("Pair"), rcn::PairTable(all));
  this->layout()->activate(); // or its old height stays until the next event
  this->updateGeometry();
}

QString qRcnAgreementSet::copyText() const
{
  return this->Figures->copyText() + '\n' + this->Raters->copyText() + '\n' + this->Pairs->copyText();
}
