// SPDX-License-Identifier: Apache-2.0
#include "qRcnAgreement.h"

#include <algorithm>
#include <cmath>

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include "qRcnAgreementSet.h"
#include "qRcnStyle.h"
#include "rcnAgreementFigures.h"
#include "rcnReport.h"

namespace
{

/// In the order of qRcnAgreement::Measure.
const std::vector<rcn::AgreementFigure<rcn_pair_agreement>>& Measures()
{
  return rcn::PairFigures();
}

QString Text(const std::string& text)
{
  return QString::fromStdString(text);
}

/// A table of a narrow panel shows a digit less than a page does.
constexpr int FewerDigits = 1;

/// The figures of RaterFigures() in the table of raters; the others are in its hints.
constexpr size_t RaterColumns = 3;

/// With a true minus sign, which is as wide as a digit.
QString Number(double value, int digits)
{
  return QString::fromStdString(rcn::Fixed(value, digits)).replace('-', QChar(0x2212));
}

/// "poor below 0, slight to 0.20, ... , then almost perfect"
QString KappaScale()
{
  QStringList steps;
  double upTo = 0;
  for (int i = 0; const char* words = rcn_kappa_scale(&upTo, i); ++i)
  {
    steps << (upTo < 0 ? qRcnAgreement::tr("%1 below 0").arg(words)
        : upTo < 1     ? qRcnAgreement::tr("%1 to %2").arg(words, Number(upTo, 2))
                       : qRcnAgreement::tr("then %1").arg(words));
  }
  return steps.join(QStringLiteral(", "));
}

} // namespace

class qRcnAgreementPrivate
{
public:
  const rcn_agreement* figures() const { return this->Report.Figures.get(); }

  rcn::Extent extent() const { return rcn::Extent(this->Report.Geometry, this->Units); }
  QString extentText(int64_t voxels) const
  {
    return qRcnStyle::extent(static_cast<double>(voxels) * this->extent().PerVoxel, Text(this->extent().Unit));
  }

  const rcn_pair_agreement& pair(int a, int b) const
  {
    return this->figures()->pair[static_cast<int64_t>(a) * this->figures()->raters + b];
  }

  QString name(int rater) const { return this->Raters.value(rater, QString::number(rater + 1)); }

  void makeTables();

  /// What a person should take from the tables, in words; the scale behind the words is in the tool tip.
  void refreshSentence()
  {
    const rcn_agreement* all = this->figures();
    if (!all)
    {
      this->Sentence->setText(qRcnAgreement::tr("Open a case with two or more raters to see how far they agree."));
      return;
    }
    if (all->present_count < 2)
    {
      this->Sentence->setText(qRcnAgreement::tr("Only one rater answered this case: there is nothing to compare."));
      return;
    }
    QString text = std::isnan(all->whole.fleiss_kappa)
      ? qRcnAgreement::tr("Overall agreement is not defined: all raters marked everything, or nothing.")
      : qRcnAgreement::tr("Overall agreement is %1 (Fleiss' κ %2, Krippendorff's α %3).")
          .arg(rcn_kappa_words(all->whole.fleiss_kappa), Number(all->whole.fleiss_kappa, 2),
            Number(all->whole.krippendorff_alpha, 2));
    text += qRcnAgreement::tr(" Two raters have a Dice of %1 on average.").arg(Number(all->mean_dice, 2));
    if (all->union_voxels > 0)
    {
      text += qRcnAgreement::tr(" %1 of what anybody marked is disputed (%2).")
                .arg(qRcnStyle::percent(static_cast<double>(all->disputed_voxels) / static_cast<double>(all->union_voxels)),
                  this->extentText(all->disputed_voxels));
    }
    const std::string majority = rcn::MajorityRemark(all->present_count);
    this->Sentence->setText(majority.empty() ? text : text + ' ' + Text(majority));
    this->Sentence->setToolTip(qRcnAgreement::tr(
      "κ and α compare how often raters agree with how often they would by chance: 1 is perfect, 0 is chance. "
      "Words after Landis and Koch: %1. They count the whole image, and easy background lifts them; only where anybody "
      "marked, Fleiss' κ is %2 and Gwet's AC1 %3.")
        .arg(KappaScale(), Number(all->on_union.fleiss_kappa, 2), Number(all->on_union.gwet_ac1, 2)));
  }

  void refreshMatrix()
  {
    const rcn_agreement* all = this->figures();
    const int count = all ? all->raters : 0;
    const auto& measure = Measures()[static_cast<size_t>(this->Choice->currentIndex())];
    const bool distance = measure.IsDistance(); // less is better
    const double factor = distance ? this->extent().PerMm : 1;
    // The range of the colors, of half of the matrix: it is symmetric.
    double least = INFINITY, most = -INFINITY;
    for (int a = 0; a < count; ++a)
    {
      for (int b = 0; b < a; ++b)
      {
        const double value = measure.Of(this->pair(a, b)) * factor;
        if (std::isfinite(value))
        {
          least = std::min(least, value);
          most = std::max(most, value);
        }
      }
    }
    this->Matrix->clear();
    this->Matrix->setRowCount(count);
    this->Matrix->setColumnCount(count);
    const QColor base = this->Owner->palette().color(QPalette::Base);
    for (int a = 0; a < count; ++a)
    {
      // Two items, because a table owns its headings one by one: the first becomes the row's, the second the column's.
      for (QTableWidgetItem* heading : { new QTableWidgetItem(this->name(a)), new QTableWidgetItem(this->name(a)) })
      {
        heading->setToolTip(this->name(a));
        const bool row = !this->Matrix->verticalHeaderItem(a);
        if (row)
        {
          heading->setIcon(qRcnStyle::dotIcon(qRcnStyle::raterColor(a)));
          this->Matrix->setVerticalHeaderItem(a, heading);
        }
        else
        {
          this->Matrix->setHorizontalHeaderItem(a, heading);
        }
      }
      for (int b = 0; b < count; ++b)
      {
        const double value = a == b ? NAN : measure.Of(this->pair(a, b)) * factor;
        auto* item = new qRcnNumberItem(Number(value, measure.Digits - FewerDigits), value);
        item->setTextAlignment(Qt::AlignCenter);
        if (std::isfinite(value))
        {
          // Bright is good. Agreement is colored from half of the way below the worst pair, so that differences are seen.
          const double range = distance ? most : 1 - std::min(least, 0.9);
          const double share = range > 0 ? (distance ? 1 - value / (range * 1.25) : 1 - 0.75 * (1 - value) / range) : 1;
          const QColor color = qRcnStyle::levelColor(RCN_PALETTE_GREEN, share);
          item->setBackground(color);
          item->setForeground(qRcnStyle::textOn(color));
          item->setToolTip(qRcnAgreement::tr("%1 and %2: %3 %4%5\n%6")
              .arg(this->name(a), this->name(b), Text(measure.Name), Number(value, measure.Digits),
                distance ? Text(" " + this->extent().Length) : QString(), Text(measure.Meaning)));
        }
        else
        {
          item->setForeground(qRcnStyle::mixed(base, this->Owner->palette().color(QPalette::Text), 0.4));
          item->setToolTip(a == b ? qRcnAgreement::tr("%1 against %1: nothing to compare").arg(this->name(a))
                                  : qRcnAgreement::tr("Not defined or not measured"));
        }
        this->Matrix->setItem(a, b, item);
      }
    }
    this->Matrix->setVisibleRows(std::min(std::max(count, 2), 8), 16);
    const bool missing = distance && all && all->present_count > 1 && !this->Report.HasSurfaces && !this->AllCases->isChecked();
    this->Missing->setVisible(missing);
    this->Measure->setVisible(missing);
    this->Choice->setToolTip(Text(measure.Meaning));
  }

  void refreshTable()
  {
    const rcn_agreement* all = this->figures();
    const int count = all ? all->raters : 0;
    // Otherwise a row would move while its cells are being filled.
    this->Table->setSortingEnabled(false);
    this->Table->setRowCount(count);
    this->Table->horizontalHeaderItem(1)->setText(Text(this->extent().Name));
    for (int r = 0; r < count; ++r)
    {
      const rcn_rater_agreement& rater = all->rater[r];
      auto* name = new QTableWidgetItem(qRcnStyle::dotIcon(qRcnStyle::raterColor(r)), this->name(r));
      name->setToolTip(rater.present ? this->name(r) : qRcnAgreement::tr("%1 did not answer this case").arg(this->name(r)));
      this->Table->setItem(r, 0, name);
      this->Table->setItem(r, 1,
        new qRcnNumberItem(rater.present ? this->extentText(rater.voxels) : Number(NAN, 0),
          rater.present ? static_cast<double>(rater.voxels) : NAN));
      for (size_t c = 0; c < RaterColumns; ++c)
      {
        const auto& figure = rcn::RaterFigures()[c];
        const double value = rater.present ? figure.Of(rater) : NAN;
        auto* item = new qRcnNumberItem(Number(value, figure.Digits - FewerDigits), value);
        if (c > 0)
        {
          item->setToolTip(qRcnAgreement::tr("By STAPLE's estimate of the hidden truth: sensitivity %1, specificity %2")
              .arg(Number(rater.staple_sensitivity, 3), Number(rater.staple_specificity, 4)));
        }
        this->Table->setItem(r, static_cast<int>(c) + 2, item);
      }
    }
    this->Table->setSortingEnabled(true);
    this->Table->setVisibleRows(std::min(std::max(count, 2), 8), 16);
    // All columns have room; of a long name as much as tells it from others.
    const QHeaderView* header = this->Table->horizontalHeader();
    const int longest = this->Table->fontMetrics().horizontalAdvance(QStringLiteral("Rater name")) + 30;
    int width = std::min(
      std::max(static_cast<const QAbstractItemView*>(this->Table)->sizeHintForColumn(0), header->sectionSizeHint(0)), longest);
    for (int c = 1; c < 5; ++c)
    {
      width += std::max(static_cast<const QAbstractItemView*>(this->Table)->sizeHintForColumn(c), header->sectionSizeHint(c));
    }
    this->Table->setMinimumWidth(
      width + 2 * this->Table->frameWidth() + this->Table->style()->pixelMetric(QStyle::PM_ScrollBarExtent));
  }

  void refresh()
  {
    this->refreshSentence();
    this->refreshMatrix();
    this->refreshTable();
    const bool any = this->figures() && this->figures()->present_count > 0, all = this->AllCases->isChecked();
    for (QWidget* widget : { static_cast<QWidget*>(this->Matrix), static_cast<QWidget*>(this->Table) })
    {
      widget->setVisible(any && !all);
    }
    this->Tools->setVisible(any || all);
    this->Choice->setVisible(!all);
    this->Sentence->setVisible(!all);
    this->Set->setVisible(all);
  }

  qRcnAgreement* Owner = nullptr;
  rcn::AgreementReport Report;
  rcn::Units Units;
  QStringList Raters;
  QLabel *Sentence = nullptr, *Missing = nullptr;
  QWidget* Tools = nullptr;
  QComboBox* Choice = nullptr;
  QToolButton *Measure = nullptr, *AllCases = nullptr, *Everybody = nullptr;
  qRcnAgreementSet* Set = nullptr;
  qRcnTable *Matrix = nullptr, *Table = nullptr;
};

void qRcnAgreementPrivate::makeTables()
{
  this->Matrix = new qRcnTable(this->Owner, "matrix", qRcnAgreement::tr("Agreement of each pair of raters"));
  this->Matrix->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  this->Matrix->horizontalHeader()->setMinimumSectionSize(34);
  this->Matrix->setCornerButtonEnabled(false);

  QStringList headings = { qRcnAgreement::tr("Rater"), qRcnAgreement::tr("Volume") };
  QStringList hints = { qRcnAgreement::tr("Click to sort."), qRcnAgreement::tr("How much the rater marked.") };
  for (size_t c = 0; c < RaterColumns; ++c)
  {
    headings << Text(rcn::RaterFigures()[c].Short);
    hints << Text(rcn::RaterFigures()[c].Meaning);
  }
  this->Table = new qRcnTable(this->Owner, "raters", qRcnAgreement::tr("Raters"));
  this->Table->setHeadings(headings, hints);
  this->Table->setRowsOnly();
  this->Table->setSelectionMode(QAbstractItemView::ExtendedSelection); // several rows can be copied
  this->Table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  this->Table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  this->Table->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
}

qRcnAgreement::qRcnAgreement(QWidget* parent) : QWidget(parent), d(new qRcnAgreementPrivate)
{
  auto* p = this->d.get();
  p->Owner = this;
  p->Sentence = qRcnStyle::newNote(this, "sentence");

  p->Tools = new QWidget(this);
  p->Choice = new QComboBox(p->Tools);
  p->Choice->setObjectName("measure");
  p->Choice->setAccessibleName(tr("Measure of two raters"));
  for (const auto& measure : Measures())
  {
    p->Choice->addItem(Text(measure.Name));
  }
  QToolButton* copy = qRcnStyle::newTool(
    p->Tools, "copy", tr("Copy"), tr("Copy both tables, for a spreadsheet (Ctrl+C in a table copies that one)."));
  QToolButton* save =
    qRcnStyle::newTool(p->Tools, "export", tr("Export ..."), tr("Save every figure of every rater and pair as a CSV file."));
  auto* tools = new QHBoxLayout(p->Tools);
  tools->setContentsMargins(0, 0, 0, 0);
  p->AllCases = qRcnStyle::newTool(p->Tools, "allCases", tr("All cases"),
    tr("Compare the raters of all cases: means with 95 % intervals, each rater and pair, and who stands out."));
  p->AllCases->setCheckable(true);
  p->AllCases->hide();
  tools->addWidget(p->AllCases);
  tools->addWidget(p->Choice, 1);
  tools->addWidget(copy);
  tools->addWidget(save);

  p->makeTables();
  p->Missing = qRcnStyle::newNote(this, "missing", tr("Distances of outlines have not been measured yet."));
  p->Measure =
    qRcnStyle::newTool(this, "measureSurfaces", tr("Measure"), tr("Measure how far the outlines are apart; takes a moment."));
  auto* missing = new QHBoxLayout;
  missing->addWidget(p->Missing, 1);
  missing->addWidget(p->Measure);

  p->Everybody = qRcnStyle::newTool(this, "everybody", tr("Show all raters"), tr("Show the outlines of all raters again."));
  p->Everybody->hide();
  p->Set = new qRcnAgreementSet(this);
  auto* layout = qRcnStyle::newColumn(this, { p->Sentence, p->Tools, p->Set, p->Matrix, p->Everybody });
  layout->setSpacing(6);
  layout->addLayout(missing);
  layout->addWidget(p->Table);
  layout->addStretch(1);

  connect(p->Choice, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [p] { p->refreshMatrix(); });
  connect(p->Measure, &QToolButton::clicked, this, &qRcnAgreement::surfacesRequested);
  connect(p->AllCases, &QToolButton::toggled, this, [this, p](bool all) {
    p->refresh();
    // Computed when it is asked for the first time, and kept until cases or the structure change.
    if (all && !p->Set->agreement())
    {
      emit this->allCasesRequested();
    }
  });
  connect(save, &QToolButton::clicked, this, &qRcnAgreement::exportRequested);
  connect(copy, &QToolButton::clicked, this, &qRcnAgreement::copy);
  connect(p->Matrix, &QTableWidget::cellClicked, this, [this, p](int first, int second) {
    p->Everybody->show();
    emit this->pairActivated(first, second);
  });
  connect(p->Everybody, &QToolButton::clicked, this, [this, p] {
    p->Everybody->hide();
    p->Matrix->clearSelection();
    emit this->pairActivated(-1, -1);
  });
  p->refresh();
}

qRcnAgreement::~qRcnAgreement() = default;

void qRcnAgreement::setAgreement(const rcn::AgreementReport& report, const QStringList& raters, const rcn::Units& units)
{
  this->d->Report = report;
  this->d->Units = units;
  this->d->Raters = raters;
  this->d->refresh();
}

void qRcnAgreement::setAllCasesAvailable(bool available)
{
  this->setAllCases(nullptr);
  this->d->AllCases->setVisible(available);
}

void qRcnAgreement::setAllCases(const std::shared_ptr<const rcn::AgreementOfCases>& agreement)
{
  this->d->Set->setAgreement(agreement);
  if (!agreement)
  {
    this->d->AllCases->setChecked(false);
  }
}

void qRcnAgreement::clear()
{
  this->setAgreement(rcn::AgreementReport(), QStringList());
}

qRcnAgreement::Measure qRcnAgreement::measure() const
{
  return static_cast<Measure>(this->d->Choice->currentIndex());
}

void qRcnAgreement::setMeasure(Measure measure)
{
  this->d->Choice->setCurrentIndex(measure);
}

// Without a selection both tables are copied as a whole.
void qRcnAgreement::copy() const
{
  if (this->d->AllCases->isChecked())
  {
    qRcnStyle::copy(this->d->Set->copyText());
    return;
  }
  this->d->Matrix->clearSelection();
  this->d->Table->clearSelection();
  qRcnStyle::copy(this->d->Choice->currentText() + '\n' + this->d->Matrix->copyText() + '\n' + this->d->Table->copyText());
}

QString qRcnAgreement::csv() const
{
  if (this->d->AllCases->isChecked() && this->d->Set->agreement())
  {
    return Text(this->d->Set->agreement()->Csv);
  }
  const rcn_agreement* all = this->d->figures();
  if (!all)
  {
    return QString();
  }
  std::vector<std::string> names;
  for (int r = 0; r < all->raters; ++r)
  {
    names.push_back(this->d->name(r).toStdString());
  }
  return Text(rcn::AgreementCsv(this->d->Report, names));
}

void qRcnAgreement::changeEvent(QEvent* event)
{
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && this->d->Table)
  {
    this->d->refresh(); // in the palette's colors
  }
}
