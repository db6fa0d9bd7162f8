// SPDX-License-Identifier: Apache-2.0
/// How far the raters of a case agree: a sentence, each pair as a heat map with numbers, each rater in a table.
#ifndef qRcnAgreement_h
#define qRcnAgreement_h

#include <memory>

#include <QStringList>
#include <QWidget>

#include "rcnAgreementSet.h"
#include "rcnReport.h"
#include "rcnWorkspace.h"

class qRcnAgreementPrivate;

class qRcnAgreement : public QWidget
{
  Q_OBJECT
public:
  enum Measure
  {
    Dice,
    Jaccard,
    Kappa,
    Hausdorff95,
    MeanSurface
  };
  Q_ENUM(Measure)

  explicit qRcnAgreement(QWidget* parent = nullptr);
  ~qRcnAgreement() override;

  void setAgreement(const rcn::AgreementReport& report, const QStringList& raters, const rcn::Units& units = rcn::Units());
  void clear();

  /// Whether there is a choice between the case that is open and all cases; not before this is called. What was known of all
  /// cases is forgotten.
  void setAllCasesAvailable(bool available);
  /// The answer to allCasesRequested(); null: there is none, and the case that is open is shown again.
  void setAllCases(const std::shared_ptr<const rcn::AgreementOfCases>& agreement);

  Measure measure() const;
  /// Every figure, for a file: one row per rater (with the others), per pair, and for all of them; of all cases in long form.
  QString csv() const;

public slots:
  void setMeasure(qRcnAgreement::Measure measure);
  /// Both tables to the clipboard, tab-separated.
  void copy() const;

signals:
  /// All cases were chosen and are not compared yet: the owner compares them and calls setAllCases().
  void allCasesRequested();
  /// A person wants csv() in a file.
  void exportRequested();
  /// A person wants to see two raters (the same twice: one) of the matrix; -1, -1: all of them again.
  void pairActivated(int first, int second);
  /// Surface distances were chosen but not measured: the owner may measure and set the report again.
  void surfacesRequested();

protected:
  void changeEvent(QEvent* event) override;

private:
  std::unique_ptr<qRcnAgreementPrivate> d;
};

#endif
