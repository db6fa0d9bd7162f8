// SPDX-License-Identifier: Apache-2.0
/// Menus, tool bars and shortcuts of the window: a table of actions, each with what it needs. An action that cannot be used
/// says in its tool tip what is missing.
#ifndef qRcnMenus_h
#define qRcnMenus_h

#include <functional>
#include <vector>

#include <QKeySequence>
#include <QMap>
#include <QObject>
#include <QString>

class QAction;
class QMenu;
class QToolBar;
class QWidget;
class qRcnMainWindow;

class qRcnMenus : public QObject
{
  Q_OBJECT
public:
  /// The window's parts must be there.
  explicit qRcnMenus(qRcnMainWindow* window);

  QAction* action(const QString& name) const { return this->Actions.value(name); }
  /// Enables what can be used now.
  void update();
  /// In a narrow window the second tool bar stands below the first: no button hides behind an arrow.
  void arrangeBars();

private:
  /// What an action needs before it can be used.
  enum Need
  {
    Case = 1,
    Raters = 2, ///< of the case
    Model = 4,
    Judged = 8,
    Overlay = 16,
    Idle = 32, ///< no other work runs
    NoTraining = 64,
    Cases = 128, ///< anything that is open
    Gray = 256,  ///< an image of gray values
    Surfaces = 512,
    Content = 1024,       ///< raters of the case, or an overlay
    RatersOrModel = 2048, ///< of the case
    Structures = 4096     ///< several of them
  };
  struct Row
  {
    QString Name, Text, Hint;
    QKeySequence Keys;
    int Needs;
    std::function<void()> Run;
  };

  QAction* add(const Row& row);
  /// A menu of its own, which can stand in other menus and in a tool bar.
  void addMenu(const QString& name, const QString& text, const QString& hint, int needs, const std::vector<Row>& rows);
  void addFileActions();
  void addRaterActions();
  void addModelActions();
  void addViewActions();
  void addExportMenu();
  void fillMenuBar();
  void fillToolBars();
  QToolBar* newBar(const QString& name, const QString& title);
  /// Actions by name, "-" for a line between them.
  void fill(QWidget* target, const std::vector<QString>& names);
  void listShortcuts();
  /// Why an action cannot be used now; empty: it can.
  QString missing(int needs) const;
  void openFiles();
  void openFolder();
  void save(bool elsewhere);

  qRcnMainWindow* Window;
  QMap<QString, QAction*> Actions;
  QMap<QString, int> Needs;
  QToolBar *WorkBar = nullptr, *LookBar = nullptr;
};

#endif
