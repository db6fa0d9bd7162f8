// SPDX-License-Identifier: Apache-2.0
/// A sheet laid over the window in place of a dialog: Esc or a click closes it.
#ifndef qRcnSheet_h
#define qRcnSheet_h

#include <QFrame>

class qRcnSheet : public QFrame
{
  Q_OBJECT
public:
  qRcnSheet(const QString& name, const QString& title, QWidget* parent);

  /// Shows it in the middle of the parent, in front of everything, or hides it.
  void toggle();

protected:
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
};

#endif
