// SPDX-License-Identifier: Apache-2.0
/// A bar inside the window for one sentence: an error, or something a person should know. No pop-up ever.
#ifndef qRcnNotice_h
#define qRcnNotice_h

#include <QFrame>

class QLabel;

class qRcnNotice : public QFrame
{
  Q_OBJECT
public:
  explicit qRcnNotice(QWidget* parent = nullptr);

  /// The sentence that is shown; empty when the bar is hidden.
  QString text() const;
  bool isError() const { return this->Error; }

public slots:
  void showError(const QString& sentence);
  void showRemark(const QString& sentence);
  void clear();

private:
  void show(const QString& sentence, bool error);

  QLabel* Label;
  bool Error = false;
};

#endif
