// SPDX-License-Identifier: Apache-2.0
/// The cases: who answered them, how far these agree, what was done with them. Files can be dropped on the list.
#ifndef qRcnCases_h
#define qRcnCases_h

#include <memory>
#include <vector>

#include <QStringList>
#include <QWidget>

#include "rcnDataList.h"

class qRcnCasesPrivate;

class qRcnCases : public QWidget
{
  Q_OBJECT
public:
  enum Status
  {
    NotRead,
    Reading,
    Read,
    Predicted,
    Problem
  };
  Q_ENUM(Status)

  explicit qRcnCases(QWidget* parent = nullptr);
  ~qRcnCases() override;

  /// All cases anew; status, agreement and the current case are kept where the id stays.
  void setCases(const std::vector<rcn::Case>& cases, const QStringList& raters);

  /// `sentence`: what is wrong, for a problem.
  void setStatus(const QString& id, qRcnCases::Status status, const QString& sentence = QString());
  /// Mean Dice of the case's pairs of raters; NaN: not known.
  void setAgreement(const QString& id, double meanDice);

  /// Empty: none.
  QString currentCase() const;
  Status status(const QString& id) const;
  /// The ids that pass the search, in the order shown.
  QStringList shownCases() const;
  /// The list takes the room there is, whatever the words below it would like to have.
  bool hasHeightForWidth() const override { return false; }

public slots:
  /// Marks the case that is open; sends no signal.
  void setCurrentCase(const QString& id);

signals:
  /// A person wants to see this case: click, Enter.
  void caseActivated(const QString& id);
  void filesDropped(const QStringList& paths);

protected:
  void changeEvent(QEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

private:
  std::unique_ptr<qRcnCasesPrivate> d;
};

#endif
