// SPDX-License-Identifier: Apache-2.0
/// Keys of the views work wherever the focus is in the window: a key that the widget in focus has no use for goes to the view
/// that was used last.
#ifndef qRcnViewKeys_h
#define qRcnViewKeys_h

#include <functional>

#include <QObject>
#include <QPointer>

class QKeyEvent;
class QWidget;
class qRcnSliceCanvas;

class qRcnViewKeys : public QObject
{
  Q_OBJECT
public:
  /// `first`: the view to act on while none was used; null: none is shown.
  qRcnViewKeys(QWidget* window, std::function<qRcnSliceCanvas*()> first);

protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

private:
  qRcnSliceCanvas* canvas() const;

  QWidget* Window;
  std::function<qRcnSliceCanvas*()> First;
  QPointer<qRcnSliceCanvas> Last;
};

#endif
