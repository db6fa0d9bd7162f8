// SPDX-License-Identifier: Apache-2.0
/// What the program is, its version and those of the libraries it runs on: what a bug report should name.
#ifndef qRcnAbout_h
#define qRcnAbout_h

#include "qRcnSheet.h"

class QLabel;

class qRcnAbout : public qRcnSheet
{
  Q_OBJECT
public:
  explicit qRcnAbout(QWidget* parent);

  /// What the 3-D view stands on; empty: there is none.
  void setGraphics(const QString& graphics);
  QString text() const;

private:
  QLabel* Label;
};

#endif
