// SPDX-License-Identifier: Apache-2.0
/// The list under `?`: what keys and mouse do, laid over the window. Esc or a click closes it.
#ifndef qRcnShortcuts_h
#define qRcnShortcuts_h

#include <utility>
#include <vector>

#include <QFrame>

class qRcnShortcuts : public QFrame
{
  Q_OBJECT
public:
  using List = std::vector<std::pair<QString, QString>>;

  explicit qRcnShortcuts(QWidget* parent);

  /// Key or gesture, and what it does, under headings.
  void setLists(const std::vector<std::pair<QString, List>>& lists);
  /// Shows it in the middle of the parent, in front of everything, or hides it.
  void toggle();

protected:
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
};

#endif
