// SPDX-License-Identifier: Apache-2.0
#include "qRcnViewKeys.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSlider>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QKeyEvent>
#include <QTabBar>

#include "qRcnSliceCanvas.h"

namespace
{

bool IsLetter(int key)
{
  return (key >= Qt::Key_A && key <= Qt::Key_Z) || key == Qt::Key_Question;
}

bool IsDirection(int key)
{
  return (key >= Qt::Key_Home && key <= Qt::Key_PageDown);
}

/// Whether a key is taken from a widget of Qt that would swallow it without need: a list looks for an entry by its first letter
/// (there are boxes to search in), a box with a number refuses letters, a button would hand the focus on.
bool IsTaken(const QWidget* widget, int key)
{
  if (qobject_cast<const QAbstractSpinBox*>(widget))
  {
    return IsLetter(key);
  }
  if (qobject_cast<const QAbstractButton*>(widget))
  {
    return true;
  }
  const auto* box = qobject_cast<const QComboBox*>(widget);
  const bool moves = (box && !box->isEditable()) || qobject_cast<const QAbstractItemView*>(widget) ||
    qobject_cast<const QAbstractSlider*>(widget) || qobject_cast<const QTabBar*>(widget);
  return moves && !IsDirection(key);
}

} // namespace

qRcnViewKeys::qRcnViewKeys(QWidget* window, std::function<qRcnSliceCanvas*()> first)
  : QObject(window), Window(window), First(std::move(first))
{
  qApp->installEventFilter(this);
}

qRcnSliceCanvas* qRcnViewKeys::canvas() const
{
  return this->Last && this->Last->isVisible() ? this->Last.data() : this->First();
}

bool qRcnViewKeys::eventFilter(QObject* watched, QEvent* event)
{
  auto* widget = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride ||
      event->type() == QEvent::FocusIn || event->type() == QEvent::Enter
    ? qobject_cast<QWidget*>(watched)
    : nullptr;
  if (!widget || widget->window() != this->Window)
  {
    return false;
  }
  if (event->type() == QEvent::FocusIn || event->type() == QEvent::Enter)
  {
    if (auto* view = qobject_cast<qRcnSliceCanvas*>(widget))
    {
      this->Last = view;
    }
    return false;
  }
  // What a widget has no use for goes on to its parents, and comes to the window at last.
  const auto* key = static_cast<QKeyEvent*>(event);
  const bool plain = !(key->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
  if (!plain || QApplication::activePopupWidget() || !(widget == this->Window || IsTaken(widget, key->key())))
  {
    return false;
  }
  if (event->type() == QEvent::ShortcutOverride)
  {
    // A box with a number claims letters that it then refuses: shortcuts of the window get them.
    return qobject_cast<QAbstractSpinBox*>(widget) != nullptr;
  }
  qRcnSliceCanvas* view = this->canvas();
  return view && view->act(key->key());
}
