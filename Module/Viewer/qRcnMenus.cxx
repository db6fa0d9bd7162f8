// SPDX-License-Identifier: Apache-2.0
#include "qRcnMenus.h"

#include <QAction>
#include <QActionGroup>
#include <QDir>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QMenuBar>
#include <QSettings>
#include <QToolBar>
#include <QToolButton>

#include "qRcnAbout.h"
#include "qRcnDisputes.h"
#include "qRcnDocument.h"
#include "qRcnExport.h"
#include "qRcnJobs.h"
#include "qRcnMainWindow.h"
#include "qRcnOrthogonalViews.h"
#include "qRcnRecent.h"
#include "qRcnShortcuts.h"
#include "qRcnSliceCanvas.h"
#include "qRcnStyle.h"
#ifdef RCN_HAVE_SURFACES
#include "qRcnSurfaceView.h"
#endif
#include "qRcnTasks.h"
#include "qRcnText.h"
#include "rcnNames.h"

// The order matters: menus and tool bars look actions up by name, so all actions come first; some ask the parts of the window
// for their state, which is why these must be there already.
qRcnMenus::qRcnMenus(qRcnMainWindow* window) : QObject(window), Window(window)
{
  this->addFileActions();
  this->addRaterActions();
  this->addModelActions();
  this->addViewActions();
  this->addExportMenu();
  this->fillMenuBar();
  this->fillToolBars();
  this->listShortcuts();
}

// ---- the table -------------------------------------------------------------------------------------

void qRcnMenus::addFileActions()
{
  const std::vector<Row> rows = {
    { "open", tr("Open"), tr("Open a data list, images, masks, a workspace or a model"), QKeySequence::Open, Idle,
      [this] { this->openFiles(); } },
    { "openFolder", tr("Open folder…"), tr("Open a DICOM folder or a folder of images"), QKeySequence("Ctrl+Shift+O"), Idle,
      [this] { this->openFolder(); } },
    { "reopen", tr("Reopen unsaved work"), tr("Open the newest workspace that was closed without being saved"), {},
      Idle | NoTraining, [this] { this->Window->document()->reopenUnsaved(); } },
    { "closeCase", tr("Close case"), tr("Remove the case from the list; its files are kept"), QKeySequence("Ctrl+W"),
      Case | Idle | NoTraining, [this] { this->Window->document()->closeCase(); } },
    { "closeAll", tr("Close all cases"), tr("Close everything"), QKeySequence("Ctrl+Shift+W"), Cases | Idle | NoTraining,
      [this] { this->Window->document()->closeAll(); } },
    { "save", tr("Save workspace"), tr("Save the cases, results and view to open them again"), QKeySequence::Save, Case | Idle,
      [this] { this->save(false); } },
    { "saveAs", tr("Save workspace as…"), tr("Save everything in another place"), QKeySequence("Ctrl+Shift+S"), Case | Idle,
      [this] { this->save(true); } },
    { "quit", tr("Quit"), tr("Close the window"), QKeySequence::Quit, 0, [this] { this->Window->close(); } },
  };
  for (const Row& row : rows)
  {
    this->add(row);
  }
  // A menu that fills itself (qRcnRecent); it has no row because it needs nothing.
  this->Actions["recent"] = this->Window->recent()->menuAction();
  connect(this->Window->recent(), &qRcnRecent::chosen, this->Window->document(), &qRcnDocument::openFiles);
}

void qRcnMenus::addRaterActions()
{
  const std::vector<Row> rows = {
    { "compareRaters", tr("Compare raters"), tr("Measure the agreement of the raters, with surface distances, in all cases"),
      QKeySequence("Ctrl+R"), Case | Raters | Idle, [this] { this->Window->tasks()->compareRaters(); } },
    { "nextRegion", tr("Next disputed region"), tr("Go to the next place where raters disagree"), QKeySequence("N"),
      Case | Raters, [this] { this->Window->disputes()->next(); } },
    { "previousRegion", tr("Previous disputed region"), tr("Go back to the previous place"), QKeySequence("Shift+N"),
      Case | Raters, [this] { this->Window->disputes()->previous(); } },
    { "nextStructure", tr("Next structure"), tr("Show the next of several structures"), QKeySequence("S"), Structures,
      [this] { this->Window->document()->goToStructure(+1); } },
    { "previousStructure", tr("Previous structure"), tr("Show the previous structure"), QKeySequence("Shift+S"), Structures,
      [this] { this->Window->document()->goToStructure(-1); } },
  };
  for (const Row& row : rows)
  {
    this->add(row);
  }
  // One action for each method of the bridge's table: a new method appears here by itself.
  std::vector<Row> fusions;
  for (const rcn::Choice& method : rcn::Methods())
  {
    fusions.push_back({ QStringLiteral("fuse-") + method.Name, tr(method.Label), tr("Show %1").arg(tr(method.Meaning)), {},
      Case | Raters | Idle, [this, name = QString(method.Name)] { this->Window->tasks()->fuse(name); } });
  }
  this->addMenu("consensus", tr("Consensus"), tr("Fuse the raters' masks into one map"), Case | Raters | Idle, fusions);
}

void qRcnMenus::addModelActions()
{
  const std::vector<Row> rows = {
    { "train", tr("Train"), tr("Train a model on the cases that are open, or continue with one"), QKeySequence("Ctrl+T"), 0,
      [this] { this->Window->setPanelName("training"); } },
    { "evaluate", tr("Evaluate"), tr("Compare the model's probabilities with all raters"), QKeySequence("Ctrl+E"), Model | Idle,
      [this] { this->Window->evaluate(); } },
    { "recalibrate", tr("Recalibrate"), tr("Fit a correction on the validation cases"), {}, Model | Idle,
      [this] { this->Window->recalibrate(); } },
  };
  for (const Row& row : rows)
  {
    this->add(row);
  }
  // The menu needs what its actions need, so that a menu with nothing to choose cannot be opened.
  const int needs = Case | Model | Idle;
  this->addMenu("predict", tr("Predict"), tr("Show the model's probabilities"), needs,
    { { "predictCase", tr("This case"), tr("Predict the case that is open"), QKeySequence("Ctrl+P"), needs,
        [this] { this->Window->tasks()->predict(false); } },
      { "predictAll", tr("All cases"), tr("Predict every case that has an image"), QKeySequence("Ctrl+Shift+P"), needs,
        [this] { this->Window->tasks()->predict(true); } } });
}

void qRcnMenus::addViewActions()
{
  const std::vector<Row> rows = {
    { "slices", tr("Slices"), tr("Three linked slices"), QKeySequence("Ctrl+1"), 0,
      [this] { this->Window->setLayoutName("slices"); } },
    { "compare", tr("Side by side"), tr("Each rater, their consensus and every model on one slice"), QKeySequence("Ctrl+2"), 0,
      [this] { this->Window->setLayoutName("compare"); } },
    { "surfaces", tr("3-D view"), tr("Surfaces of the levels beside the slices"), QKeySequence("Ctrl+3"), Surfaces,
      [this] { this->Window->setSurfacesShown(this->action("surfaces")->isChecked()); } },
    { "nextCase", tr("Next case"), tr("Open the next case"), QKeySequence("Ctrl+Down"), 0,
      [this] { this->Window->goToCase(+1); } },
    { "previousCase", tr("Previous case"), tr("Open the previous case"), QKeySequence("Ctrl+Up"), 0,
      [this] { this->Window->goToCase(-1); } },
    { "about", tr("About Rater Consensus"), tr("Version and license"), {}, 0, [this] { this->Window->about()->toggle(); } },
    { "help", tr("Shortcuts"), tr("Keyboard shortcuts and mouse actions"), QKeySequence("?"), 0,
      [this] { this->Window->shortcuts()->toggle(); } },
  };
  for (const Row& row : rows)
  {
    this->add(row);
  }
  // Slices or side by side, never both; the 3-D view stands beside the slices, and is switched on its own.
  auto* layouts = new QActionGroup(this);
  for (const char* name : { "slices", "compare" })
  {
    this->action(name)->setCheckable(true);
    layouts->addAction(this->action(name));
  }
  this->action("slices")->setChecked(true);
  this->action("surfaces")->setCheckable(true);
  // Remembered from the last time, unless this machine cannot draw in 3-D.
  const bool shown = this->Window->settings()->value("surfaces", true).toBool();
  this->action("surfaces")->setChecked(shown && this->missing(Surfaces).isEmpty());
  this->Window->slices()->setFourthViewWanted(this->action("surfaces")->isChecked());
  qRcnScene* scene = this->Window->scene();
  // F2 and up: automatic first, then the presets in their order.
  std::vector<Row> windows = { { "window-auto", tr("Automatic"), tr("A window that suits the image"), QKeySequence("F2"),
    Case | Gray, [scene] { scene->resetWindow(); } } };
  int key = Qt::Key_F3;
  for (const qRcnScene::WindowPreset& preset : qRcnScene::windowPresets())
  {
    windows.push_back({ QStringLiteral("window-") + preset.Name, tr(preset.Label),
      tr("CT window for %1: %2, level %3 HU").arg(tr(preset.Label).toLower()).arg(preset.Window).arg(preset.Level),
      QKeySequence(key++), Case | Gray, [scene, preset] { scene->setWindowPreset(preset); } });
  }
  this->addMenu("window", tr("Window"), tr("Range of gray values that is shown"), Case | Gray, windows);
}

void qRcnMenus::addExportMenu()
{
  // Exports differ in name, filter and what writes them; that a person is asked for a file first is the same for all.
  struct File
  {
    QString Name, Text, Suggestion, Filter;
    int Needs;
    std::function<void(const QString&)> Write;
  };
  qRcnExport* to = this->Window->exporter();
  const std::vector<File> files = {
    { "exportPicture", tr("Picture of the views…"), "views.png", tr("PNG (*.png);;JPEG (*.jpg *.jpeg)"), Case,
      [this, to](const QString& path) { to->picture(this->Window->picture(), path); } },
    { "exportSlide", tr("Picture for a slide…"), "slide.png", tr("PNG (*.png);;SVG (*.svg)"), Case | Content | Idle,
      [this, to](const QString& path) { to->slide(path, this->Window->shownSlice()); } },
    { "exportSlideAnonymous", tr("Picture for a slide without names…"), "slide.png", tr("PNG (*.png);;SVG (*.svg)"),
      Case | Content | Idle, [this, to](const QString& path) { to->slide(path, this->Window->shownSlice(), true); } },
    { "exportAgreement", tr("Agreement as a table…"), "agreement.csv", tr("CSV (*.csv)"), Case | Raters,
      [this, to](const QString& path) { to->agreement(this->Window->agreementTable(), path); } },
    { "exportReliability", tr("Reliability diagram…"), "reliability.svg", tr("SVG (*.svg);;PNG (*.png);;CSV (*.csv)"), Judged,
      [to](const QString& path) { to->reliability(path); } },
    { "exportOverlay", tr("Overlay as an image…"), "overlay.nrrd",
      tr("NRRD (*.nrrd *.nhdr);;NIfTI (*.nii.gz *.nii);;MetaImage (*.mha *.mhd)"), Overlay | Idle,
      [to](const QString& path) { to->overlay(path); } },
    { "exportModel", tr("Model…"), "model.safetensors", tr("Model (*.safetensors)"), Model | Idle,
      [to](const QString& path) { to->model(path); } },
    { "exportReport", tr("Report…"), "report.html", tr("Web page (*.html *.htm)"), Case | RatersOrModel | Idle,
      [to](const QString& path) { to->report(path); } },
    { "exportReportAnonymous", tr("Report without names…"), "report.html", tr("Web page (*.html *.htm)"),
      Case | RatersOrModel | Idle, [to](const QString& path) { to->report(path, true); } },
  };
  std::vector<Row> rows;
  for (const File& file : files)
  {
    rows.push_back({ file.Name, file.Text, file.Text, {}, file.Needs, [this, file] {
                      const QString path = this->Window->askForFile(file.Text, file.Suggestion, file.Filter);
                      if (!path.isEmpty())
                      {
                        file.Write(path);
                      }
                    } });
  }
  this->addMenu("export", tr("Export"), tr("Pictures, tables, maps, a report"), Case, rows);
}

// ---- dialogs ---------------------------------------------------------------------------------------

void qRcnMenus::openFiles()
{
  const QStringList paths =
    QFileDialog::getOpenFileNames(this->Window, tr("Open"), this->Window->settings()->value("folder").toString(),
      tr("All that can be opened (*.json *.nrrd *.nhdr *.nii *.nii.gz *.mha *.mhd *.png *.tif *.tiff *.jpg *.dcm "
         "*.safetensors);;All files (*)"));
  if (!paths.isEmpty())
  {
    // The next dialog begins where this one ended.
    this->Window->settings()->setValue("folder", QFileInfo(paths.first()).absolutePath());
    this->Window->document()->openFiles(paths);
  }
}

void qRcnMenus::openFolder()
{
  const QString path =
    QFileDialog::getExistingDirectory(this->Window, tr("Open folder"), this->Window->settings()->value("folder").toString());
  if (!path.isEmpty())
  {
    this->Window->document()->openFiles({ path });
  }
}

void qRcnMenus::save(bool elsewhere)
{
  const QString known = qRcnText::Text(this->Window->document()->stored().Path);
  const QString path = elsewhere || known.isEmpty()
    ? this->Window->askForFile(tr("Save workspace"), "workspace.rcn.json", tr("Workspace (*.rcn.json)"))
    : known;
  if (!path.isEmpty())
  {
    this->Window->document()->saveWorkspace(path);
  }
}

// ---- from the table to the window ------------------------------------------------------------------

QAction* qRcnMenus::add(const Row& row)
{
  auto* action = new QAction(row.Text, this->Window);
  action->setObjectName(row.Name);
  action->setToolTip(
    row.Keys.isEmpty() ? row.Hint : QString("%1 (%2)").arg(row.Hint, row.Keys.toString(QKeySequence::NativeText)));
  // update() puts a reason behind the hint, and takes it away again: the hint alone is kept aside.
  action->setProperty("hint", action->toolTip());
  action->setStatusTip(row.Hint);
  action->setShortcut(row.Keys);
  connect(action, &QAction::triggered, this, row.Run);
  this->Actions[row.Name] = action;
  this->Needs[row.Name] = row.Needs;
  // On the window itself, so that the shortcut works while no menu shows it.
  this->Window->addAction(action);
  return action;
}

void qRcnMenus::addMenu(const QString& name, const QString& text, const QString& hint, int needs, const std::vector<Row>& rows)
{
  auto* menu = new QMenu(text, this->Window);
  menu->setObjectName(name);
  // Qt hides tool tips of menus unless told, and they say why an action cannot be used.
  menu->setToolTipsVisible(true);
  menu->menuAction()->setToolTip(hint);
  menu->menuAction()->setProperty("hint", hint);
  this->Actions[name] = menu->menuAction();
  this->Needs[name] = needs;
  for (const Row& row : rows)
  {
    menu->addAction(this->add(row));
  }
}

void qRcnMenus::fill(QWidget* target, const std::vector<QString>& names)
{
  for (const QString& name : names)
  {
    QAction* action = this->Actions.value(name);
    if (!action)
    {
      action = new QAction(target);
      action->setSeparator(true);
    }
    target->addAction(action);
  }
}

void qRcnMenus::fillMenuBar()
{
  QMenuBar* bar = this->Window->menuBar();
  this->fill(bar->addMenu(tr("&File")),
    { "open", "openFolder", "recent", "reopen", "-", "closeCase", "closeAll", "-", "save", "saveAs", "export", "-", "quit" });
  this->fill(bar->addMenu(tr("&Raters")),
    { "compareRaters", "consensus", "-", "nextRegion", "previousRegion", "-", "nextStructure", "previousStructure" });
  this->fill(bar->addMenu(tr("&Model")), { "train", "predict", "evaluate", "recalibrate" });
  QMenu* view = bar->addMenu(tr("&View"));
  this->fill(view, { "slices", "compare", "surfaces", "-", "window", "-", "nextCase", "previousCase", "-" });
  // Docks bring an action of their own that shows and hides them.
  for (QDockWidget* dock : this->Window->findChildren<QDockWidget*>())
  {
    view->addAction(dock->toggleViewAction());
  }
  this->fill(bar->addMenu(tr("&Help")), { "help", "about" });
}

QToolBar* qRcnMenus::newBar(const QString& name, const QString& title)
{
  QToolBar* bar = this->Window->addToolBar(title);
  bar->setObjectName(name);
  // A bar that was dragged away by mistake is hard to get back for somebody who does not know that it can be dragged.
  bar->setMovable(false);
  bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
  return bar;
}

void qRcnMenus::fillToolBars()
{
  // In the order of a person's work.
  this->WorkBar = this->newBar("workBar", tr("Work"));
  this->fill(this->WorkBar,
    { "open", "-", "compareRaters", "consensus", "-", "train", "predict", "evaluate", "recalibrate", "-", "export", "save" });
  // A menu in a tool bar would need a long press; these open at once, for they do nothing by themselves.
  for (const char* name : { "consensus", "predict", "export" })
  {
    if (auto* button = qobject_cast<QToolButton*>(this->WorkBar->widgetForAction(this->action(name))))
    {
      button->setPopupMode(QToolButton::InstantPopup);
    }
  }
  this->LookBar = this->newBar("lookBar", tr("Layout"));
  // Takes the room that is left, so that the layouts stand on the right.
  auto* gap = new QWidget;
  gap->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  this->LookBar->addWidget(gap);
  this->fill(this->LookBar, { "slices", "compare", "surfaces", "-", "help" });
}

void qRcnMenus::arrangeBars()
{
  const bool narrow = this->WorkBar->sizeHint().width() + this->LookBar->sizeHint().width() > this->Window->width();
  // Only on a change: moving a bar lays out the window anew.
  if (narrow != this->Window->toolBarBreak(this->LookBar))
  {
    narrow ? this->Window->insertToolBarBreak(this->LookBar) : this->Window->removeToolBarBreak(this->LookBar);
  }
}

void qRcnMenus::listShortcuts()
{
  qRcnShortcuts::List keys;
  // Those that a person would look for, in the order of work.
  for (const char* name : { "open", "closeCase", "save", "compareRaters", "train", "predictCase", "predictAll", "evaluate",
         "slices", "compare", "surfaces", "nextRegion", "previousRegion", "nextStructure", "previousStructure", "window-auto",
         "window-lung", "window-bone", "window-brain", "window-abdomen", "nextCase", "previousCase", "help" })
  {
    keys.emplace_back(this->action(name)->shortcut().toString(QKeySequence::NativeText), this->action(name)->statusTip());
  }
  qRcnShortcuts::List views = qRcnSliceCanvas::shortcuts();
#ifdef RCN_HAVE_SURFACES
  const qRcnShortcuts::List surfaces = qRcnSurfaceView::shortcuts();
  views.insert(views.end(), surfaces.begin(), surfaces.end());
#endif
  this->Window->shortcuts()->setLists({ { tr("In the window"), keys }, { tr("In the views"), views } });
}

// ---- what can be used ------------------------------------------------------------------------------

// The first thing that is missing, most basic first: who has no case open is not told to evaluate a model. Asked of the
// document each time, so that nothing here can be out of date.
QString qRcnMenus::missing(int needs) const
{
  const qRcnDocument& document = *this->Window->document();
  const qRcnJobs& jobs = *this->Window->jobs();
  if ((needs & Case) && !document.shownCase())
  {
    return needs & Raters ? tr("Open a case with raters' masks first.") : tr("Open a case first.");
  }
  if ((needs & Surfaces) && !this->Window->surfacesProblem().isEmpty())
  {
    return this->Window->surfacesProblem();
  }
  if ((needs & Cases) && document.stored().Cases.empty() && document.stored().Models.empty())
  {
    return tr("Nothing is open.");
  }
  if ((needs & Structures) && document.structures().isEmpty())
  {
    return tr("There is one structure here; a data list can name several.");
  }
  if ((needs & Gray) && !document.scene()->hasGrayImage())
  {
    return tr("This case has no image of gray values.");
  }
  if ((needs & Raters) && !document.hasRaters())
  {
    return tr("This case has no raters' masks; open them first.");
  }
  if ((needs & RatersOrModel) && !document.hasRaters() && document.stored().Model.empty())
  {
    return tr("This case has no raters' masks; open them, or a model, first.");
  }
  if ((needs & Model) && document.stored().Model.empty())
  {
    return tr("Train a model or open one first.");
  }
  if ((needs & Judged) && !document.judged())
  {
    return tr("Evaluate a model first.");
  }
  if ((needs & Overlay) && document.scene()->shownPrediction() < 0)
  {
    return tr("Choose an overlay first: a fusion or a model's prediction.");
  }
  if ((needs & Content) && !document.hasRaters() && document.scene()->shownPrediction() < 0)
  {
    return tr("Open a case with raters' masks, or show a model's prediction first.");
  }
  if ((needs & Idle) && jobs.work()->isRunning())
  {
    return tr("Wait until this is done: %1.").arg(jobs.work()->what());
  }
  if ((needs & NoTraining) && jobs.training()->isRunning())
  {
    return tr("Wait until training is done, or cancel it.");
  }
  return QString();
}

void qRcnMenus::update()
{
  for (auto row = this->Needs.constBegin(); row != this->Needs.constEnd(); ++row)
  {
    QAction* action = this->Actions[row.key()];
    const QString why = this->missing(row.value());
    const QString hint = action->property("hint").toString();
    action->setEnabled(why.isEmpty());
    action->setToolTip(why.isEmpty() ? hint : hint + ".\n" + why);
  }
}
