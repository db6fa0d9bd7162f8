// SPDX-License-Identifier: Apache-2.0
/// How far raters agree over all cases: sentences, and tables of all raters together, each rater and each pair, with 95 %
/// intervals.
#ifndef qRcnAgreementSet_h
#define qRcnAgreementSet_h

#include <memory>

#include <QWidget>

#include "rcnAgreementSet.h"

class QLabel;
class qRcnTable;

class qRcnAgreementSet : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnAgreementSet(QWidget* parent = nullptr);

  /// Null: nothing was compared yet.
  void setAgreement(const std::shared_ptr<const rcn::AgreementOfCases>& agreement);
  /// Null before that.
  const rcn::AgreementOfCases* agreement() const { return this->Agreement.get(); }

  /// The tables, tab-separated.
  QString copyText() const;

private:
  std::shared_ptr<const rcn::AgreementOfCases> Agreement;
  QLabel* Sentence = nullptr;
  qRcnTable *Figures = nullptr, *Raters = nullptr, *Pairs = nullptr;
};

#endif
