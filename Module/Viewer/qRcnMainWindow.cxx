// SPDX-License-Identifier: Apache-2.0
#include "qRcnMainWindow.h"

#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QCloseEvent>
#include <QDateTime>
#include <QDir>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QElapsedTimer>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>
#include <QStandardPaths>
#include <QStatusBar>
#include <QStyle>
#include <QTabWidget>
#include <QTimer>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "qRcnAgreement.h"
#include "qRcnCalibrationPanel.h"
#include "qRcnCases.h"
#include "qRcnCompareView.h"
#include "qRcnConsensusPanel.h"
#include "qRcnDisputes.h"
#include "qRcnNotice.h"
#include "qRcnStyle.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnShortcuts.h"
#include "qRcnSliceCanvas.h"
#include "qRcnSliceView.h"
#include "qRcnSliceViews.h"
#include "qRcnTrainingMonitor.h"
#include "qRcnTrainingPanel.h"
#include "qRcnVoxelProbe.h"
#include "rcnJson.h"
#include "rcnReport.h"

namespace
{

QString Text(const std::string& text)
{
  return QString::fromStdString(text);
}

QStringList Texts(const std::vector<std::string>& texts)
{
  QStringList list;
  for (const std::string& text : texts)
  {
    list << Text(text);
  }
  return list;
}

/// A job's monitor as the actions want it.
rcn::SessionProgress ProgressOf(qRcnJob::Monitor& monitor)
{
  return [&monitor](double fraction, const char* stage) { return monitor.report(fraction, QString::fromUtf8(stage)); };
}

/// Scrolls up and down, and is as wide as its panel needs: nothing is cut at the side.
class Scroller : public QScrollArea
{
public:
  QSize minimumSizeHint() const override
  {
    const int bar = this->style()->pixelMetric(QStyle::PM_ScrollBarExtent);
    return QSize(
      this->widget() ? this->widget()->minimumSizeHint().width() + bar : bar, QScrollArea::minimumSizeHint().height());
  }

protected:
  bool eventFilter(QObject* watched, QEvent* event) override
  {
    if (event->type() == QEvent::LayoutRequest)
    {
      this->updateGeometry();
    }
    return QScrollArea::eventFilter(watched, event);
  }
};

QWidget* Scrolled(QWidget* widget)
{
  auto* area = new Scroller;
  area->setWidget(widget);
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  return area;
}

/// Names as the settings and workspaces hold them.
const QStringList PanelNames = { "consensus", "agreement", "calibration", "training" };

/// In the order of the numbers of rcn_palette.
QString PaletteText(rcn_palette palette)
{
  const char* name = rcn_palette_name(palette);
  return name ? name : "";
}

} // namespace

qRcnMainWindow::qRcnMainWindow(const Places& places, QWidget* parent)
  : QMainWindow(parent), Where(places), Scene(new qRcnScene(this)), Work(new qRcnJob(this)), TrainingWork(new qRcnJob(this))
{
  if (this->Where.Unsaved.isEmpty())
  {
    this->Where.Unsaved = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + "/unsaved";
  }
  this->Settings.reset(
    this->Where.Settings.isEmpty() ? new QSettings : new QSettings(this->Where.Settings, QSettings::IniFormat));
  this->Session.Folder = this->newUnsavedFolder().toStdString();
  this->TrainingDefaults.Epochs = 1000000; // the time decides
  this->setAcceptDrops(true);
  this->makeCenter();
  this->makePanels();
  this->makeActions();
  this->makeStatus();
  this->connectPanels();
  this->watch(this->Work);
  this->watch(this->TrainingWork);
  this->resize(1440, 900);
  this->restoreGeometry(this->Settings->value("geometry").toByteArray());
  this->restoreState(this->Settings->value("state").toByteArray());
  this->setPanelName(this->Settings->value("panel", PanelNames.front()).toString());
  this->updateModels();
  this->updateActions();
  this->updateTitle();
}

qRcnMainWindow::~qRcnMainWindow()
{
  // Work that still runs must not meet half a window.
  delete this->TrainingWork;
  delete this->Work;
}

// ---- the window ------------------------------------------------------------------------------------

void qRcnMainWindow::makeCenter()
{
  auto* middle = new QWidget;
  auto* layout = new QVBoxLayout(middle);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  this->Center = new QStackedWidget;
  this->Welcome = new QLabel(tr("<div align='center'><p style='font-size:x-large'>Open or drop cases here</p>"
                                "<p>a data list (.json), an image with its raters' masks, a DICOM folder, "
                                "a saved workspace (.rcn.json) or a model (.safetensors)</p>"
                                "<p style='color:gray'>For research, not for clinical use.</p></div>"));
  static_cast<QLabel*>(this->Welcome)->setAlignment(Qt::AlignCenter);
  static_cast<QLabel*>(this->Welcome)->setWordWrap(true);
  this->Slices = new qRcnSliceViews(this->Scene);
  this->Compare = new qRcnCompareView(this->Scene);
  this->Center->addWidget(this->Welcome);
  this->Center->addWidget(this->Slices);
  this->Center->addWidget(this->Compare);
  this->Notice = new qRcnNotice;
  this->Notice->setObjectName("notice");
  layout->addWidget(this->Center, 1);
  layout->addWidget(this->Notice);
  this->setCentralWidget(middle);
  this->Shortcuts = new qRcnShortcuts(this);
}

void qRcnMainWindow::makePanels()
{
  this->Cases = new qRcnCases;
  auto* left = new QDockWidget(tr("Cases"), this);
  left->setObjectName("casesDock");
  auto* leftSide = new QWidget;
  auto* leftLayout = new QVBoxLayout(leftSide);
  leftLayout->setContentsMargins(0, 0, 0, 0);
  leftLayout->setSpacing(0);
  leftLayout->addWidget(this->Cases, 1);
  left->setWidget(leftSide);
  this->addDockWidget(Qt::LeftDockWidgetArea, left);

  this->Consensus = new qRcnConsensusPanel(this->Scene);
  // Beside whatever panel is in front.
  leftLayout->addWidget(this->Consensus->probe());
  this->Consensus->probe()->show();
  this->Agreement = new qRcnAgreement;
  this->Disputes = new qRcnDisputes;
  this->Calibration = new qRcnCalibrationPanel;
  this->Training = new qRcnTrainingPanel;
  auto* agreement = new QSplitter(Qt::Vertical);
  agreement->addWidget(this->Agreement);
  agreement->addWidget(this->Disputes);
  agreement->setStretchFactor(0, 3);
  agreement->setStretchFactor(1, 2);
  this->Panels = new QTabWidget;
  this->Panels->setObjectName("panels");
  this->Panels->setDocumentMode(true);
  this->Panels->setElideMode(Qt::ElideNone);
  this->Panels->setUsesScrollButtons(false);
  this->Panels->addTab(Scrolled(this->Consensus), tr("Consensus"));
  this->Panels->addTab(agreement, tr("Agreement"));
  this->Panels->addTab(Scrolled(this->Calibration), tr("Calibration"));
  this->Panels->addTab(Scrolled(this->Training), tr("Training"));
  auto* right = new QDockWidget(tr("Panels"), this);
  right->setObjectName("panelsDock");
  right->setWidget(this->Panels);
  right->setTitleBarWidget(new QWidget(right)); // the tabs say what it is
  this->addDockWidget(Qt::RightDockWidgetArea, right);
  this->resizeDocks({ left, right }, { 280, 400 }, Qt::Horizontal);
}

QAction* qRcnMainWindow::addAction(
  const QString& name, const QString& text, const QString& hint, const QKeySequence& keys, const std::function<void()>& run)
{
  auto* action = new QAction(text, this);
  action->setObjectName(name);
  action->setToolTip(keys.isEmpty() ? hint : QString("%1 (%2)").arg(hint, keys.toString(QKeySequence::NativeText)));
  action->setProperty("hint", action->toolTip());
  action->setStatusTip(hint);
  action->setShortcut(keys);
  connect(action, &QAction::triggered, this, run);
  this->Actions[name] = action;
  QMainWindow::addAction(action);
  return action;
}

QMenu* qRcnMainWindow::addMenu(const QString& name, const QString& text, const QString& hint)
{
  auto* menu = new QMenu(text, this);
  menu->setObjectName(name);
  menu->setToolTipsVisible(true);
  menu->menuAction()->setToolTip(hint);
  menu->menuAction()->setProperty("hint", hint);
  this->Actions[name] = menu->menuAction();
  return menu;
}

void qRcnMainWindow::makeActions()
{
  QAction* open = this->addAction(
    "open", tr("Open"), tr("Open a data list, images, masks, a workspace or a model"), QKeySequence::Open, [this] {
      const QStringList paths = QFileDialog::getOpenFileNames(this, tr("Open"), this->Settings->value("folder").toString(),
        tr("All that can be opened (*.json *.nrrd *.nhdr *.nii *.nii.gz *.mha *.mhd *.png *.tif *.tiff *.jpg *.dcm "
           "*.safetensors);;All files (*)"));
      if (!paths.isEmpty())
      {
        this->Settings->setValue("folder", QFileInfo(paths.first()).absolutePath());
        this->openFiles(paths);
      }
    });
  QAction* openFolder = this->addAction(
    "openFolder", tr("Open folder…"), tr("Open a DICOM folder or a folder of images"), QKeySequence("Ctrl+Shift+O"), [this] {
      const QString path =
        QFileDialog::getExistingDirectory(this, tr("Open folder"), this->Settings->value("folder").toString());
      if (!path.isEmpty())
      {
        this->openFiles({ path });
      }
    });
  QAction* reopen = this->addAction("reopen", tr("Reopen unsaved work"), tr("Open the newest workspace that was never saved"),
    {}, [this] { this->reopenUnsaved(); });
  QAction* compare = this->addAction("compareRaters", tr("Compare raters"),
    tr("Measure how far the raters agree, with surface distances, in all cases"), QKeySequence("Ctrl+R"),
    [this] { this->compareRaters(); });
  QMenu* consensus = this->addMenu("consensus", tr("Consensus"), tr("Fuse the raters' masks into one map"));
  const std::vector<std::pair<const char*, QString>> methods = {
    { "soft", tr("Share of raters") },
    { "median", tr("Majority") },
    { "staple", tr("STAPLE (probability of the hidden truth)") },
    { "simple", tr("SIMPLE (raters who agree well)") },
    { "soft-gaussian", tr("Share of raters, smoothed") },
    { "svls", tr("Share of raters, smoothed near borders (SVLS)") },
    { "random", tr("One rater, drawn at random") },
    { "orc", tr("Levels (how many raters)") },
  };
  for (const auto& method : methods)
  {
    const QString name = method.first;
    QAction* fuse = this->addAction(
      "fuse-" + name, method.second, tr("Show this fusion over the image"), {}, [this, name] { this->fuse(name); });
    consensus->addAction(fuse);
  }
  QAction* train = this->addAction("train", tr("Train"), tr("Train a model on the cases that are open, or go on from one"),
    QKeySequence("Ctrl+T"), [this] { this->setPanelName("training"); });
  QMenu* predict = this->addMenu("predict", tr("Predict"), tr("What the model says"));
  predict->addAction(this->addAction("predictCase", tr("This case"), tr("Predict the case that is open"),
    QKeySequence("Ctrl+P"), [this] { this->predict(false); }));
  predict->addAction(this->addAction("predictAll", tr("All cases"), tr("Predict every case that has an image"),
    QKeySequence("Ctrl+Shift+P"), [this] { this->predict(true); }));
  QAction* evaluate = this->addAction(
    "evaluate", tr("Evaluate"), tr("Judge the model against all raters"), QKeySequence("Ctrl+E"), [this] { this->evaluate(); });
  QAction* recalibrate = this->addAction(
    "recalibrate", tr("Recalibrate"), tr("Fit a correction on the validation cases"), {}, [this] { this->recalibrate(); });
  QMenu* share = this->addMenu("export", tr("Export"), tr("Pictures, tables, maps, a report"));
  const auto exporter = [this, share](const QString& name, const QString& text, const QString& file, const QString& filter,
                          void (qRcnMainWindow::*slot)(const QString&)) {
    share->addAction(this->addAction(name, text, text, {}, [=] {
      const QString path = this->askForFile(text, file, filter);
      if (!path.isEmpty())
      {
        (this->*slot)(path);
      }
    }));
  };
  exporter("exportPicture", tr("Picture of the views…"), "views.png", tr("PNG (*.png);;JPEG (*.jpg *.jpeg)"),
    &qRcnMainWindow::exportPicture);
  exporter(
    "exportAgreement", tr("Agreement as a table…"), "agreement.csv", tr("CSV (*.csv)"), &qRcnMainWindow::exportAgreement);
  exporter("exportReliability", tr("Reliability diagram…"), "reliability.svg", tr("SVG (*.svg);;PNG (*.png);;CSV (*.csv)"),
    &qRcnMainWindow::exportReliability);
  exporter("exportOverlay", tr("Overlay as an image…"), "overlay.nrrd",
    tr("NRRD (*.nrrd *.nhdr);;NIfTI (*.nii.gz *.nii);;MetaImage (*.mha *.mhd)"), &qRcnMainWindow::exportOverlay);
  exporter("exportModel", tr("Model…"), "model.safetensors", tr("Model (*.safetensors)"), &qRcnMainWindow::exportModel);
  exporter("exportReport", tr("Report…"), "report.html", tr("Web page (*.html *.htm)"), &qRcnMainWindow::exportReport);
  QAction* save =
    this->addAction("save", tr("Save workspace"), tr("Save everything, to open it again as it is"), QKeySequence::Save, [this] {
      const QString path = this->Session.Path.empty()
        ? this->askForFile(tr("Save workspace"), "workspace.rcn.json", tr("Workspace (*.rcn.json)"))
        : Text(this->Session.Path);
      if (!path.isEmpty())
      {
        this->saveWorkspace(path);
      }
    });
  QAction* saveAs = this->addAction(
    "saveAs", tr("Save workspace as…"), tr("Save everything in another place"), QKeySequence("Ctrl+Shift+S"), [this] {
      const QString path = this->askForFile(tr("Save workspace"), "workspace.rcn.json", tr("Workspace (*.rcn.json)"));
      if (!path.isEmpty())
      {
        this->saveWorkspace(path);
      }
    });
  QAction* quit = this->addAction("quit", tr("Quit"), tr("Close the window"), QKeySequence::Quit, [this] { this->close(); });
  QAction* slices = this->addAction(
    "slices", tr("Slices"), tr("Three linked slices"), QKeySequence("Ctrl+1"), [this] { this->setLayoutName("slices"); });
  QAction* side = this->addAction("compare", tr("Side by side"), tr("Each rater, their consensus and every model on one slice"),
    QKeySequence("Ctrl+2"), [this] { this->setLayoutName("compare"); });
  auto* layouts = new QActionGroup(this);
  for (QAction* layout : { slices, side })
  {
    layout->setCheckable(true);
    layouts->addAction(layout);
  }
  slices->setChecked(true);
  QAction* next = this->addAction("nextRegion", tr("Next disputed region"), tr("Go to the next place where raters disagree"),
    QKeySequence("N"), [this] { this->Disputes->next(); });
  QAction* previous = this->addAction("previousRegion", tr("Previous disputed region"), tr("Go back to the place before"),
    QKeySequence("Shift+N"), [this] { this->Disputes->previous(); });
  QAction* nextCase = this->addAction(
    "nextCase", tr("Next case"), tr("Open the next case"), QKeySequence("Ctrl+Down"), [this] { this->nextCase(); });
  QAction* previousCase = this->addAction(
    "previousCase", tr("Previous case"), tr("Open the case before"), QKeySequence("Ctrl+Up"), [this] { this->previousCase(); });
  QAction* help = this->addAction("help", tr("Short-cuts"), tr("What keys and mouse do"), QKeySequence("?"),
    [this] { this->setShortcutsVisible(!this->Shortcuts->isVisible()); });

  QMenu* file = this->menuBar()->addMenu(tr("&File"));
  file->addActions({ open, openFolder, reopen });
  file->addSeparator();
  file->addActions({ save, saveAs });
  file->addMenu(share);
  file->addSeparator();
  file->addAction(quit);
  QMenu* raters = this->menuBar()->addMenu(tr("&Raters"));
  raters->addAction(compare);
  raters->addMenu(consensus);
  raters->addSeparator();
  raters->addActions({ next, previous });
  QMenu* model = this->menuBar()->addMenu(tr("&Model"));
  model->addAction(train);
  model->addMenu(predict);
  model->addActions({ evaluate, recalibrate });
  QMenu* view = this->menuBar()->addMenu(tr("&View"));
  view->addActions({ slices, side });
  view->addSeparator();
  view->addActions({ nextCase, previousCase });
  view->addSeparator();
  for (QDockWidget* dock : this->findChildren<QDockWidget*>())
  {
    view->addAction(dock->toggleViewAction());
  }
  this->menuBar()->addMenu(tr("&Help"))->addAction(help);

  // In the order of a person's work.
  auto* bar = this->addToolBar(tr("Work"));
  bar->setObjectName("workBar");
  bar->setMovable(false);
  bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
  bar->addAction(open);
  bar->addSeparator();
  bar->addAction(compare);
  bar->addAction(consensus->menuAction());
  bar->addSeparator();
  bar->addAction(train);
  bar->addAction(predict->menuAction());
  bar->addAction(evaluate);
  bar->addAction(recalibrate);
  bar->addSeparator();
  bar->addAction(share->menuAction());
  bar->addAction(save);
  for (QMenu* menu : { consensus, predict, share })
  {
    if (auto* button = qobject_cast<QToolButton*>(bar->widgetForAction(menu->menuAction())))
    {
      button->setPopupMode(QToolButton::InstantPopup);
    }
  }
  this->WorkBar = bar;
  this->LookBar = this->addToolBar(tr("Layout"));
  this->LookBar->setObjectName("lookBar");
  this->LookBar->setMovable(false);
  this->LookBar->setToolButtonStyle(Qt::ToolButtonTextOnly);
  auto* gap = new QWidget;
  gap->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  this->LookBar->addWidget(gap);
  this->LookBar->addActions({ slices, side });
  this->LookBar->addSeparator();
  this->LookBar->addAction(help);

  qRcnShortcuts::List keys;
  for (const char* name : { "open", "save", "compareRaters", "train", "predictCase", "predictAll", "evaluate", "slices",
         "compare", "nextRegion", "previousRegion", "nextCase", "previousCase", "help" })
  {
    const QAction* action = this->Actions[name];
    keys.emplace_back(action->shortcut().toString(QKeySequence::NativeText), action->statusTip());
  }
  this->Shortcuts->setLists({ { tr("In the window"), keys }, { tr("In the views"), qRcnSliceCanvas::shortcuts() } });
}

void qRcnMainWindow::makeStatus()
{
  this->Progress = new QProgressBar;
  this->Progress->setObjectName("progress");
  this->Progress->setRange(0, 1000);
  this->Progress->setFixedWidth(220);
  this->Progress->setTextVisible(false);
  this->ProgressText = new QLabel;
  this->ProgressText->setObjectName("progressText");
  this->ProgressText->setTextFormat(Qt::PlainText);
  this->Cancel = new QToolButton;
  this->Cancel->setObjectName("cancel");
  this->Cancel->setText(tr("Cancel"));
  connect(this->Cancel, &QToolButton::clicked, this, [this] {
    this->Work->cancel();
    this->ProgressText->setText(tr("Stopping…"));
  });
  auto* research = new QLabel(tr("For research, not for clinical use"));
  research->setObjectName("research");
  this->statusBar()->addWidget(this->ProgressText);
  this->statusBar()->addWidget(this->Progress);
  this->statusBar()->addWidget(this->Cancel);
  this->statusBar()->addPermanentWidget(research);
  for (QWidget* widget : std::initializer_list<QWidget*>{ this->Progress, this->ProgressText, this->Cancel })
  {
    widget->hide();
  }
}

void qRcnMainWindow::connectPanels()
{
  connect(this->Cases, &qRcnCases::caseActivated, this, &qRcnMainWindow::openCase);
  connect(this->Cases, &qRcnCases::filesDropped, this, &qRcnMainWindow::openFiles);
  connect(this->Disputes, &qRcnDisputes::regionActivated, this, &qRcnMainWindow::jumpTo);
  connect(this->Slices, &qRcnSliceViews::cursorMoved, this->Consensus, &qRcnConsensusPanel::showVoxel);
  connect(this->Compare, &qRcnCompareView::cursorMoved, this->Consensus, &qRcnConsensusPanel::showVoxel);
  connect(this->Agreement, &qRcnAgreement::exportRequested, this->Actions["exportAgreement"], &QAction::trigger);
  connect(this->Agreement, &qRcnAgreement::surfacesRequested, this, &qRcnMainWindow::compareRaters);
  connect(this->Agreement, &qRcnAgreement::pairActivated, this, [this](int first, int second) {
    for (int r = 0; r < this->Scene->raterCount(); ++r)
    {
      this->Scene->setRaterVisible(r, r == first || r == second);
    }
  });
  connect(this->Calibration, &qRcnCalibrationPanel::evaluateRequested, this, &qRcnMainWindow::evaluate);
  connect(this->Calibration, &qRcnCalibrationPanel::recalibrateRequested, this, &qRcnMainWindow::recalibrate);
  connect(this->Calibration, &qRcnCalibrationPanel::modelChosen, this, &qRcnMainWindow::useModel);
  const auto again = [this] {
    if (this->LastJudged)
    {
      rcn::SessionJudgement judgement = this->Session.Judgement;
      const rcn::SessionJudgement chosen = this->Calibration->judgement();
      judgement.Region = chosen.Region;
      judgement.Bins = chosen.Bins;
      this->judge(judgement, false);
    }
  };
  connect(this->Calibration->diagram(), &qRcnReliabilityDiagram::regionChanged, this, again);
  connect(this->Calibration->diagram(), &qRcnReliabilityDiagram::binsChanged, this, again);
  connect(this->Calibration->diagram(), &qRcnReliabilityDiagram::binSelected, this, &qRcnMainWindow::highlight);
  connect(this->Training, &qRcnTrainingPanel::trainRequested, this, &qRcnMainWindow::train);
  connect(this->Training->monitor(), &qRcnTrainingMonitor::cancelRequested, this->TrainingWork, &qRcnJob::stop);
  connect(this->Training->monitor(), &qRcnTrainingMonitor::keepRequested, this, &qRcnMainWindow::keepModel);
  connect(this->Training->monitor(), &qRcnTrainingMonitor::discardRequested, this, &qRcnMainWindow::discardModel);
}

// ---- jobs ------------------------------------------------------------------------------------------

void qRcnMainWindow::watch(qRcnJob* job)
{
  const bool training = job == this->TrainingWork;
  connect(job, &qRcnJob::started, this, [this] { this->updateActions(); });
  connect(job, &qRcnJob::idle, this, [this] {
    this->updateActions();
    if (this->Closing && !this->Work->isRunning() && !this->TrainingWork->isRunning())
    {
      this->close();
    }
  });
  if (training)
  {
    return; // its monitor shows the rest
  }
  connect(job, &qRcnJob::started, this, [this](const QString& what) {
    this->ProgressText->setText(what + "…");
    this->Progress->setValue(0);
    for (QWidget* widget : std::initializer_list<QWidget*>{ this->Progress, this->ProgressText, this->Cancel })
    {
      widget->show();
    }
  });
  connect(job, &qRcnJob::progressed, this, [this](double fraction, const QString& stage) {
    this->Progress->setValue(static_cast<int>(1000 * fraction));
    if (!this->Work->what().isEmpty())
    {
      this->ProgressText->setText(QString("%1: %2").arg(this->Work->what(), stage));
    }
  });
  connect(job, &qRcnJob::failed, this, [this](const QString& sentence) {
    if (!this->PendingCase.isEmpty())
    {
      this->Cases->setStatus(this->PendingCase, qRcnCases::Problem, sentence);
    }
    this->Notice->showError(sentence);
  });
  const auto back = [this] {
    // What was wished for did not come: the list shows again what is open.
    this->PendingCase.clear();
    this->Cases->setCurrentCase(Text(this->Session.Current));
  };
  connect(job, &qRcnJob::failed, this, back);
  connect(job, &qRcnJob::cancelled, this, [this, back] {
    if (!this->PendingCase.isEmpty() && !this->Work->isRunning())
    {
      this->Cases->setStatus(this->PendingCase, qRcnCases::NotRead);
    }
    back();
    this->Notice->showRemark(tr("Cancelled; everything is as it was."));
  });
  connect(job, &qRcnJob::idle, this, [this] {
    this->Opening = false;
    for (QWidget* widget : std::initializer_list<QWidget*>{ this->Progress, this->ProgressText, this->Cancel })
    {
      widget->hide();
    }
  });
}

bool qRcnMainWindow::begin(const QString& what, qRcnJob::Work work)
{
  if (this->Closing)
  {
    return false;
  }
  if (this->Work->isRunning())
  {
    this->Notice->showRemark(tr("%1 is not done yet. Wait for it, or press Cancel below.").arg(this->Work->what()));
    return false;
  }
  this->Notice->clear();
  this->Warned = false;
  return this->Work->start(what, std::move(work));
}

void qRcnMainWindow::updateActions()
{
  const bool busy = this->Work->isRunning();
  const bool training = this->TrainingWork->isRunning();
  const bool open = this->Open != nullptr;
  const bool raters = open && this->Open->Work.Votes();
  const bool model = !this->Session.Model.empty();
  // A reason why not: what a person reads when the pointer rests on it.
  const auto enable = [this](const QString& name, const QString& missing) {
    QAction* action = this->Actions[name];
    action->setEnabled(missing.isEmpty());
    const QString hint = action->property("hint").toString();
    action->setToolTip(missing.isEmpty() ? hint : hint + ".\n" + missing);
  };
  const QString none;
  const QString wait = busy ? tr("Wait until it is done: %1.").arg(this->Work->what()) : none;
  const QString noCase = open ? wait : tr("Open a case first.");
  const QString noRaters = raters ? wait
    : open                        ? tr("This case has no raters' masks; open them first.")
                                  : tr("Open a case with raters' masks first.");
  const QString noModel = model ? wait : tr("Train a model or open one first.");
  enable("open", wait);
  enable("openFolder", wait);
  enable("reopen", training && wait.isEmpty() ? tr("Wait until training is done, or cancel it.") : wait);
  enable("compareRaters", noRaters);
  enable("consensus", noRaters);
  for (const QString& name : this->Actions.keys())
  {
    if (name.startsWith("fuse-"))
    {
      enable(name, noRaters);
    }
  }
  for (const char* name : { "predict", "predictCase", "predictAll" })
  {
    enable(name, open ? noModel : noCase);
  }
  enable("evaluate", noModel);
  enable("recalibrate", noModel);
  enable("export", open ? none : noCase);
  enable("exportPicture", open ? none : noCase);
  enable("exportAgreement", raters ? none : noRaters);
  enable("exportReliability", this->LastJudged ? none : tr("Evaluate a model first."));
  enable("exportOverlay",
    this->Scene->shownPrediction() >= 0 ? wait : tr("Choose an overlay first: a fusion or a model's prediction."));
  enable("exportModel", noModel);
  enable("exportReport", noRaters);
  enable("save", noCase);
  enable("saveAs", noCase);
  enable("nextRegion", raters ? none : noRaters);
  enable("previousRegion", raters ? none : noRaters);
  this->Calibration->setBusy(busy);
  this->Training->setBusy(training);
}

void qRcnMainWindow::updateTitle()
{
  const QString workspace = this->Session.Path.empty() ? QString() : QFileInfo(Text(this->Session.Path)).fileName();
  QStringList parts;
  if (!this->Session.Current.empty())
  {
    parts << Text(this->Session.Current);
  }
  if (!workspace.isEmpty())
  {
    parts << workspace;
  }
  parts << tr("Rater Consensus");
  this->setWindowTitle((this->Unsaved ? "*" : "") + parts.join(" – "));
}

void qRcnMainWindow::updateModels()
{
  QStringList names;
  for (const rcn::SessionModel& model : this->Session.Models)
  {
    names << Text(model.Name);
  }
  this->Calibration->setModels(names, Text(this->Session.Model));
  this->Training->setModels(names);
  const rcn::DataList list = this->Session.Data();
  int training = 0, validation = 0;
  for (const rcn::Case& one : list.Cases)
  {
    training += one.Split == "training" && !one.Images.empty();
    validation += one.Split == "validation" && !one.Images.empty();
  }
  this->Training->setCases(training, validation, false);
}

void qRcnMainWindow::say(const std::vector<std::string>& remarks)
{
  if (!remarks.empty())
  {
    this->Notice->showRemark(Texts(remarks).join(" "));
  }
}

// ---- opening ---------------------------------------------------------------------------------------

void qRcnMainWindow::openFiles(const QStringList& paths)
{
  if (paths.isEmpty())
  {
    return;
  }
  const rcn::Session base = this->session();
  std::vector<std::string> files;
  for (const QString& path : paths)
  {
    files.push_back(QDir::toNativeSeparators(path).toStdString());
  }
  this->begin(tr("Opening"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    std::vector<std::string> remarks;
    const rcn::Session next = rcn::OpenFiles(base, files, &remarks);
    // Where cases were only added or a model came, the case that is open may be the same.
    const rcn::OpenCasePointer open = next.Current.empty() ? nullptr : rcn::LoadCase(next, next.Current, ProgressOf(monitor));
    return [=] { this->adopt(next, open, remarks); };
  });
}

void qRcnMainWindow::openSession(const rcn::Session& session)
{
  this->begin(tr("Opening"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::OpenCasePointer open =
      session.Current.empty() ? nullptr : rcn::LoadCase(session, session.Current, ProgressOf(monitor));
    return [=] { this->adopt(session, open, {}); };
  });
}

void qRcnMainWindow::adopt(const rcn::Session& next, const rcn::OpenCasePointer& open, const std::vector<std::string>& remarks)
{
  const bool another = next.Folder != this->Session.Folder;
  const std::string before = this->Session.Current;
  if (another && this->TrainingWork->isRunning())
  {
    throw rcn::Error(
      RCN_EINVALID, tr("A model is being trained on what is open; wait for it, or cancel it first.").toStdString());
  }
  rcn::Session adopted = next;
  const bool restored = another && !next.Path.empty();
  const bool unsaved = restored && this->isUnsavedPlace(Text(next.Path));
  if (another)
  {
    this->keepUnsaved();
    if (unsaved)
    {
      adopted.Path.clear(); // the person has not given it a place yet
    }
    if (adopted.Folder.empty())
    {
      adopted.Folder = this->newUnsavedFolder().toStdString();
    }
  }
  const rcn::Session old = this->Session;
  this->Session = adopted;
  try
  {
    if (open)
    {
      this->showCase(open);
    }
  }
  catch (const rcn::Error&)
  {
    this->Session = old;
    throw;
  }
  this->Cases->setCases(this->Session.Cases, Texts(this->Session.Raters));
  this->Cases->setCurrentCase(Text(this->Session.Current));
  for (const rcn::SessionPrediction& prediction : this->Session.Predictions)
  {
    this->Cases->setStatus(Text(prediction.Case), qRcnCases::Predicted);
  }
  if (open)
  {
    const bool predicted = this->Session.FindPrediction(open->Id, this->Session.Model) != nullptr;
    this->Cases->setStatus(Text(open->Id), predicted ? qRcnCases::Predicted : qRcnCases::Read);
    if (open->Agreement.Figures)
    {
      this->Cases->setAgreement(Text(open->Id), open->Agreement.Figures->mean_dice);
    }
  }
  if (another)
  {
    this->LastJudged.reset();
    this->Calibration->clear();
    this->Trained.reset();
    this->Training->monitor()->clear();
    this->Unsaved = unsaved;
    if (restored)
    {
      this->restoreView();
    }
  }
  this->updateModels();
  if (another)
  {
    this->Calibration->setJudgement(this->Session.Judgement);
    if (this->Session.Judgement.Model.empty())
    {
      // Cases it did not learn from, where there are any.
      rcn::SessionJudgement judgement = this->Session.Judgement;
      for (const char* split : { "test", "validation", "" })
      {
        judgement.Split = split;
        if (!rcn::CasesOf(this->Session, split, true).empty())
        {
          break;
        }
      }
      this->Calibration->setJudgement(judgement);
    }
  }
  this->updateActions();
  this->updateTitle();
  this->say(remarks.empty() && open ? open->Remarks : remarks);
  if (another && !this->Session.Judgement.Model.empty())
  {
    // After this job: what was judged is computed anew from the files.
    QTimer::singleShot(0, this, [this] { this->judge(this->Session.Judgement, false); });
  }
}

void qRcnMainWindow::openCase(const QString& id)
{
  if (this->Closing || id == Text(this->Session.Current))
  {
    return;
  }
  const rcn::Session session = this->Session;
  const std::string name = id.toStdString();
  const qRcnJob::Work work = [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::OpenCasePointer open = rcn::LoadCase(session, name, ProgressOf(monitor));
    return [=] {
      const std::string before = this->Session.Current;
      this->Session.View.Overlay = this->session().View.Overlay;
      this->Session.Current = name;
      try
      {
        this->showCase(open);
      }
      catch (const rcn::Error&)
      {
        this->Session.Current = before;
        throw;
      }
      this->PendingCase.clear();
      const bool predicted = this->Session.FindPrediction(name, this->Session.Model) != nullptr;
      this->Cases->setStatus(Text(name), predicted ? qRcnCases::Predicted : qRcnCases::Read);
      if (open->Agreement.Figures)
      {
        this->Cases->setAgreement(Text(name), open->Agreement.Figures->mean_dice);
      }
      this->Cases->setCurrentCase(Text(name));
      this->updateActions();
      this->updateTitle();
      this->say(open->Remarks);
    };
  };
  const QString what = tr("Opening %1").arg(id);
  if (this->Work->isRunning() && this->Opening)
  {
    // The person has changed their mind.
    this->Cases->setStatus(this->PendingCase, qRcnCases::NotRead);
    this->PendingCase = id;
    this->Cases->setStatus(id, qRcnCases::Reading);
    this->Work->startInstead(what, work);
    return;
  }
  if (!this->begin(what, work))
  {
    this->Cases->setCurrentCase(Text(this->Session.Current));
    return;
  }
  this->Opening = true;
  this->PendingCase = id;
  this->Cases->setStatus(id, qRcnCases::Reading);
}

void qRcnMainWindow::nextCase()
{
  const QStringList ids = this->Cases->shownCases();
  const int at = static_cast<int>(ids.indexOf(Text(this->Session.Current)));
  if (at + 1 < ids.size())
  {
    this->openCase(ids[at + 1]);
  }
}

void qRcnMainWindow::previousCase()
{
  const QStringList ids = this->Cases->shownCases();
  const int at = static_cast<int>(ids.indexOf(Text(this->Session.Current)));
  if (at > 0)
  {
    this->openCase(ids[at - 1]);
  }
}

void qRcnMainWindow::showCase(const rcn::OpenCasePointer& open)
{
  const rcn_votes* votes = open->Work.Votes();
  const rcn_geometry geometry = votes ? *rcn_votes_geometry(votes) : open->Images.front().Geometry();
  const QStringList raters = votes ? Texts(open->Work.RaterNames()) : QStringList();
  const bool first = this->Scene->isEmpty();
  this->Scene->setCase(open->Images, std::shared_ptr<const rcn_votes>(open, votes), geometry, raters);
  this->Open = open;
  for (const rcn::CaseLayer& layer : open->Layers)
  {
    this->showLayer(layer, layer.Name == this->Session.View.Overlay);
  }
  if (open->Agreement.Figures)
  {
    this->Agreement->setAgreement(open->Agreement, raters);
    this->Disputes->setRegions(open->Agreement.Regions, raters, open->Agreement.Geometry);
    if (!open->Agreement.Regions.empty())
    {
      // Where a reader would look first.
      this->Disputes->setCurrent(0);
      this->jumpTo(0);
    }
  }
  else
  {
    this->Agreement->clear();
    this->Disputes->clear();
  }
  if (first || this->Center->currentWidget() == this->Welcome)
  {
    this->setLayoutName(this->layoutName());
  }
  emit this->caseShown(Text(open->Id));
}

void qRcnMainWindow::showLayer(const rcn::CaseLayer& layer, bool inFront)
{
  try
  {
    const int number = this->Scene->addPrediction(Text(layer.Name), layer.Levels, layer.Probability);
    if (inFront)
    {
      this->Scene->setShownPrediction(number);
    }
  }
  catch (const rcn::Error& error)
  {
    this->Notice->showError(QString::fromUtf8(error.what()));
  }
}

void qRcnMainWindow::jumpTo(int dispute)
{
  if (this->Open && dispute >= 0 && dispute < static_cast<int>(this->Open->Agreement.Regions.size()))
  {
    const rcn_dispute& region = this->Open->Agreement.Regions[static_cast<size_t>(dispute)];
    this->Scene->visit({ region.at[0], region.at[1], region.at[2] });
  }
}

// ---- raters ----------------------------------------------------------------------------------------

void qRcnMainWindow::compareRaters()
{
  const rcn::OpenCasePointer open = this->Open;
  if (!open || !open->Work.Votes())
  {
    this->Notice->showRemark(tr("Open a case with raters' masks first."));
    return;
  }
  this->setPanelName("agreement");
  const rcn::Session session = this->Session;
  this->begin(tr("Comparing raters"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::AgreementReport report = rcn::CompareCase(*open, ProgressOf(monitor));
    monitor.throwIfCancelled();
    monitor.post([=] {
      if (this->Open == open)
      {
        open->Agreement = report;
        this->Agreement->setAgreement(report, Texts(open->Work.RaterNames()));
      }
    });
    const std::vector<std::string> ids = rcn::CasesOf(session, "", true);
    rcn::Workspace work;
    for (size_t i = 0; i < ids.size(); ++i)
    {
      monitor.report(static_cast<double>(i + 1) / static_cast<double>(ids.size() + 1), Text(ids[i]));
      monitor.throwIfCancelled();
      const QString id = Text(ids[i]);
      if (ids[i] == open->Id)
      {
        continue;
      }
      rcn::Case masks = *session.FindCase(ids[i]);
      masks.Images.clear();
      try
      {
        work.LoadCase(masks, session.Raters);
        const double dice = work.Agree(false).Figures->mean_dice;
        monitor.post([=] { this->Cases->setAgreement(id, dice); });
      }
      catch (const rcn::Error& error)
      {
        const QString sentence = QString::fromUtf8(error.what());
        monitor.post([=] { this->Cases->setStatus(id, qRcnCases::Problem, sentence); });
      }
    }
    return {};
  });
}

void qRcnMainWindow::fuse(const QString& method)
{
  const rcn::OpenCasePointer open = this->Open;
  if (!open)
  {
    this->Notice->showRemark(tr("Open a case with raters' masks first."));
    return;
  }
  this->begin(tr("Fusing"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::CaseLayer layer = rcn::FuseCase(*open, method.toStdString(), ProgressOf(monitor));
    return [=] {
      if (this->Open != open)
      {
        return;
      }
      std::vector<std::string>& fusions = this->Session.Fusions;
      if (std::find(fusions.begin(), fusions.end(), layer.Name) == fusions.end())
      {
        fusions.push_back(layer.Name);
      }
      this->showLayer(layer, true);
      this->Scene->setHeatMapVisible(false); // one color scale at a time
      this->setPanelName("consensus");
      this->updateActions();
    };
  });
}

// ---- models ----------------------------------------------------------------------------------------

void qRcnMainWindow::useModel(const QString& name)
{
  if (this->Session.FindModel(name.toStdString()))
  {
    this->Session.Model = name.toStdString();
    this->updateModels();
    this->updateActions();
  }
}

void qRcnMainWindow::train()
{
#ifdef RCN_HAVE_NETWORKS
  const auto list = std::make_shared<const rcn::DataList>(this->Session.Data());
  const rcn::SessionModel* from = this->Session.FindModel(this->Training->startFrom().toStdString());
  rcn::TrainingOptions options = this->TrainingDefaults;
  this->Training->apply(options);
  options.List = list.get();
  options.Init = from ? from->Path : options.Init;
  const std::string base = from ? from->Name + "-retrained" : options.Strategy;
  std::string name = base;
  for (int number = 2;
    this->Session.FindModel(name) || !rcn::TrainingFileInTheWay(this->Session.File("models", name + ".safetensors")).empty();
    ++number)
  {
    name = base + "-" + std::to_string(number);
  }
  options.Output = this->Session.File("models", name + ".safetensors");
  this->setPanelName("training");
  if (this->TrainingWork->isRunning())
  {
    return;
  }
  this->Notice->clear();
  this->Trained.reset();
  qRcnTrainingMonitor* monitorWidget = this->Training->monitor();
  const QString cases = qRcnStyle::counted(static_cast<int64_t>(list->Cases.size()), "case");
  monitorWidget->start(from ? tr("Retraining %1 on %2").arg(Text(from->Name), cases) : tr("Training on %1").arg(cases));
  this->TrainingWork->start(tr("Training"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const std::shared_ptr<const rcn::DataList> kept = list; // as long as it is used
    rcn::TrainingOptions own = options;
    QElapsedTimer since;
    own.Progress = [&](const rcn::TrainingProgress& progress) {
      if (!since.isValid() || since.elapsed() > 50)
      {
        since.start();
        const std::string stage = progress.Stage;
        monitor.post([=] {
          rcn::TrainingProgress now = progress;
          now.Stage = stage.c_str();
          monitorWidget->setProgress(now);
        });
      }
      return monitor.isStopped();
    };
    own.EpochDone = [&](const rcn::TrainingEpoch& epoch) { monitor.post([=] { monitorWidget->addEpoch(epoch); }); };
    own.Remark = [&](const std::string& sentence) { monitor.post([=] { this->Notice->showRemark(Text(sentence)); }); };
    try
    {
      rcn::MakeFolder(QFileInfo(Text(own.Output)).absolutePath().toStdString());
      const auto result = std::make_shared<const rcn::TrainingResult>(rcn::TrainModel(own));
      if (result->Interrupted && !QFileInfo::exists(Text(result->Model)))
      {
        rcn::RemoveTraining(result->Model);
        throw rcn::Error(RCN_ECANCELLED, "");
      }
      return [=] {
        this->Trained = result;
        monitorWidget->finish(*result);
      };
    }
    catch (const rcn::Error& error)
    {
      const QString sentence = error.Status() == RCN_ECANCELLED ? tr("Training was cancelled before there was a model.")
                                                                : QString::fromUtf8(error.what());
      return [=] { monitorWidget->fail(sentence); };
    }
  });
#endif
}

void qRcnMainWindow::keepModel()
{
  if (!this->Trained)
  {
    return;
  }
  const std::string name = this->Session.AddModel(this->Trained->Model);
  this->Trained.reset();
  this->Training->monitor()->clear();
  this->Unsaved = true;
  this->updateModels();
  this->updateActions();
  this->updateTitle();
  this->Notice->showRemark(tr("%1 is the model in use now. Predict shows what it says.").arg(Text(name)));
}

void qRcnMainWindow::discardModel()
{
  if (!this->Trained)
  {
    return;
  }
#ifdef RCN_HAVE_NETWORKS
  rcn::RemoveTraining(this->Trained->Model);
#endif
  this->Trained.reset();
  this->Training->monitor()->clear();
}

void qRcnMainWindow::keepPrediction(const rcn::SessionPrediction& prediction)
{
  this->Session.SetPrediction(prediction);
  this->Unsaved = true;
  this->Cases->setStatus(Text(prediction.Case), qRcnCases::Predicted);
  this->updateTitle();
}

void qRcnMainWindow::predict(bool all)
{
  const rcn::Session session = this->Session;
  const rcn::OpenCasePointer open = this->Open;
  std::vector<std::string> ids;
  for (const rcn::Case& one : session.Cases)
  {
    if (all ? !one.Images.empty() : one.Id == session.Current)
    {
      ids.push_back(one.Id);
    }
  }
  this->begin(tr("Predicting"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    std::vector<std::string> remarks;
    std::shared_ptr<rcn::CaseLayer> layer;
    rcn::PredictCases(
      session, session.Model, ids, ProgressOf(monitor),
      [&](const rcn::SessionPrediction& prediction) {
        monitor.post([=] { this->keepPrediction(prediction); });
        if (open && prediction.Case == open->Id)
        {
          layer = std::make_shared<rcn::CaseLayer>(rcn::LoadLayer(prediction));
        }
      },
      &remarks);
    return [=] {
      if (layer && this->Open == open)
      {
        this->showLayer(*layer, true);
        this->Scene->setHeatMapVisible(false);
        this->setPanelName("consensus");
      }
      this->updateActions();
      this->say(remarks);
    };
  });
}

void qRcnMainWindow::evaluate()
{
  this->setPanelName("calibration");
  const std::string missing = rcn::CheckJudgement(this->Session, this->Calibration->judgement());
  if (!missing.empty())
  {
    this->Notice->showError(Text(missing));
    return;
  }
  this->judge(this->Calibration->judgement(), true);
}

void qRcnMainWindow::judge(const rcn::SessionJudgement& judgement, bool predictFirst)
{
  rcn::Session session = this->Session;
  const rcn::OpenCasePointer open = this->Open;
  this->begin(tr("Evaluating"), [=](qRcnJob::Monitor& monitor) mutable -> qRcnJob::Done {
    std::vector<std::string> missing;
    for (const std::string& id : rcn::CasesOf(session, judgement.Split, true))
    {
      if (predictFirst && !session.FindPrediction(id, judgement.Model) && !session.FindCase(id)->Images.empty())
      {
        missing.push_back(id);
      }
    }
    std::shared_ptr<rcn::CaseLayer> layer;
    if (!missing.empty())
    {
      rcn::Session* known = &session;
      rcn::PredictCases(
        rcn::Session(session), judgement.Model, missing, ProgressOf(monitor), [&](const rcn::SessionPrediction& prediction) {
          known->SetPrediction(prediction);
          monitor.post([=] { this->keepPrediction(prediction); });
          if (open && prediction.Case == open->Id)
          {
            layer = std::make_shared<rcn::CaseLayer>(rcn::LoadLayer(prediction));
          }
        });
    }
    const auto judged = std::make_shared<const rcn::Judged>(rcn::Judge(session, judgement, ProgressOf(monitor)));
    return [=] {
      this->Session.Judgement = judgement;
      this->LastJudged = judged;
      if (layer && this->Open == open)
      {
        this->showLayer(*layer, false);
      }
      this->Calibration->showJudged(*judged, Text(judgement.Model));
      this->updateActions();
      this->say(judged->Remarks);
    };
  });
}

void qRcnMainWindow::recalibrate()
{
  this->setPanelName("calibration");
  if (this->Session.Model.empty())
  {
    this->Notice->showError(tr("There is no model yet; open one or train one."));
    return;
  }
  rcn::Session session = this->Session;
  const rcn_recalib_method method = this->Calibration->method();
  rcn::SessionJudgement how = this->Calibration->judgement();
  const std::string model = this->Session.Model;
  this->begin(tr("Recalibrating"), [=](qRcnJob::Monitor& monitor) mutable -> qRcnJob::Done {
    std::vector<std::string> missing;
    for (const std::string& id : rcn::CasesOf(session, "validation", true))
    {
      if (!session.FindPrediction(id, model))
      {
        missing.push_back(id);
      }
    }
    rcn::Session* known = &session;
    if (!missing.empty())
    {
      rcn::PredictCases(
        rcn::Session(session), model, missing, ProgressOf(monitor), [&](const rcn::SessionPrediction& prediction) {
          known->SetPrediction(prediction);
          monitor.post([=] { this->keepPrediction(prediction); });
        });
    }
    if (rcn::CasesOf(session, "validation", true).empty())
    {
      throw rcn::Error(RCN_EDATA,
        tr("A correction is fitted on validation cases with raters' masks, and there are none; name some in the data list.")
          .toStdString());
    }
    const auto result = std::make_shared<const rcn::Recalibrated>(
      rcn::RecalibrateModel(session, model, "validation", method, how, ProgressOf(monitor)));
    return [=] {
      if (result->Model.empty())
      {
        this->Calibration->showJudged(result->OnFittedCases, Text(model));
        this->updateActions();
        this->Notice->showRemark(tr("%1 stays as it is: %2").arg(Text(model), Text(result->Sentence)));
        return;
      }
      for (const rcn::SessionModel& old : std::vector<rcn::SessionModel>(this->Session.Models))
      {
        if (old.Path == result->Model)
        {
          this->Session.RemoveModel(old.Name); // another fit by the same method takes its place
        }
      }
      const std::string corrected = this->Session.AddModel(result->Model);
      rcn::SessionJudgement judgement = how;
      judgement.Model = model;
      judgement.Split = "validation";
      judgement.Correction = result->Correction.Path;
      this->Session.Judgement = judgement;
      this->LastJudged = std::make_shared<const rcn::Judged>(result->OnFittedCases);
      this->Unsaved = true;
      this->updateModels();
      this->Calibration->showJudged(result->OnFittedCases, Text(model));
      this->updateActions();
      this->updateTitle();
      this->Notice->showRemark(tr("%1 carries the correction and is the model in use now; evaluate it on test cases. %2")
          .arg(Text(corrected), Text(result->Sentence)));
    };
  });
}

void qRcnMainWindow::highlight(double lower, double upper)
{
  this->Scene->setHighlight(lower, upper);
  if (lower < 0 || !this->LastJudged)
  {
    return;
  }
  // The voxels of what was judged: the same model, the same readout.
  const QString model = Text(this->Session.Judgement.Model);
  for (int p = 0; p < this->Scene->predictionCount(); ++p)
  {
    if (this->Scene->prediction(p).Name == model)
    {
      rcn_readout readout = RCN_READOUT_MAJORITY;
      int atLeast = 0;
      if (rcn::ParseReadout(readout, atLeast, this->LastJudged->Readout))
      {
        this->Scene->setReadout(readout, atLeast);
      }
      this->Scene->setShownPrediction(p);
      this->Scene->setHighlight(lower, upper);
      return;
    }
  }
  this->Notice->showRemark(
    tr("There is no prediction of %1 for this case yet; Predict makes one, and the bin's voxels light up.").arg(model));
}

// ---- the workspace's file --------------------------------------------------------------------------

rcn::Session qRcnMainWindow::session() const
{
  rcn::Session session = this->Session;
  rcn::SessionView& view = session.View;
  view.Layout = this->layoutName().toStdString();
  view.Panel = this->panelName().toStdString();
  if (this->Scene->isEmpty())
  {
    return session;
  }
  view.HasCursor = true;
  const std::array<double, 3> ras = this->Scene->cursorRas();
  std::copy(ras.begin(), ras.end(), view.Cursor);
  view.HasWindow = !this->Scene->images().empty();
  view.Window = this->Scene->white() - this->Scene->black();
  view.Level = (this->Scene->white() + this->Scene->black()) / 2;
  view.HiddenRaters.clear();
  for (int r = 0; r < this->Scene->raterNames().size(); ++r)
  {
    if (!this->Scene->isRaterVisible(r))
    {
      view.HiddenRaters.push_back(this->Scene->raterNames()[r].toStdString());
    }
  }
  view.HeatMap = this->Scene->isHeatMapVisible();
  view.Contours = this->Scene->areContoursVisible();
  view.IsolatedLevel = this->Scene->isolatedLevel();
  view.Palette = PaletteText(this->Scene->levelPalette()).toStdString();
  const int shown = this->Scene->shownPrediction();
  view.Overlay = shown < 0 ? "" : this->Scene->prediction(shown).Name.toStdString();
  view.Readout = this->Scene->readout() == RCN_SLICE_LEVEL
    ? "level:" + std::to_string(this->Scene->readoutNumber())
    : rcn::ReadoutText(static_cast<rcn_readout>(this->Scene->readout()), this->Scene->readoutNumber());
  view.Opacity = this->Scene->predictionOpacity();
  view.Threshold = this->Scene->threshold();
  view.ThresholdContour = this->Scene->isThresholdContourVisible();
  view.LevelContours = this->Scene->areLevelContoursVisible();
  return session;
}

void qRcnMainWindow::restoreView()
{
  const rcn::SessionView& view = this->Session.View;
  for (int r = 0; r < this->Scene->raterNames().size(); ++r)
  {
    const std::string name = this->Scene->raterNames()[r].toStdString();
    this->Scene->setRaterVisible(
      r, std::find(view.HiddenRaters.begin(), view.HiddenRaters.end(), name) == view.HiddenRaters.end());
  }
  this->Scene->setHeatMapVisible(view.HeatMap);
  this->Scene->setContoursVisible(view.Contours);
  this->Scene->setIsolatedLevel(view.IsolatedLevel);
  for (int palette = 0; rcn_palette_name(static_cast<rcn_palette>(palette)); ++palette)
  {
    if (view.Palette == rcn_palette_name(static_cast<rcn_palette>(palette)))
    {
      this->Scene->setLevelPalette(static_cast<rcn_palette>(palette));
    }
  }
  rcn_readout readout = RCN_READOUT_MAJORITY;
  int number = 0;
  if (rcn::ParseReadout(readout, number, view.Readout))
  {
    this->Scene->setReadout(readout, number);
  }
  else if (view.Readout.rfind("level:", 0) == 0)
  {
    this->Scene->setReadout(RCN_SLICE_LEVEL, Text(view.Readout).mid(6).toInt());
  }
  this->Scene->setPredictionOpacity(view.Opacity);
  this->Scene->setThreshold(view.Threshold);
  this->Scene->setThresholdContourVisible(view.ThresholdContour);
  this->Scene->setLevelContoursVisible(view.LevelContours);
  if (view.HasWindow)
  {
    this->Scene->setWindow(view.Level - view.Window / 2, view.Level + view.Window / 2);
  }
  if (view.HasCursor)
  {
    this->Scene->setCursorRas({ view.Cursor[0], view.Cursor[1], view.Cursor[2] });
  }
  this->setLayoutName(Text(view.Layout));
  this->setPanelName(Text(view.Panel));
}

void qRcnMainWindow::saveWorkspace(const QString& path)
{
  const rcn::Session session = this->session();
  if (this->TrainingWork->isRunning() && path != Text(session.Path))
  {
    this->Notice->showRemark(tr("Training writes into the workspace's folder; save it elsewhere when training has ended."));
    return;
  }
  if (this->Trained)
  {
    this->Notice->showRemark(tr("Keep or discard the trained model first."));
    this->setPanelName("training");
    return;
  }
  const std::string file = path.toStdString();
  const QString temporary =
    this->isUnsavedPlace(Text(session.Folder)) ? QFileInfo(Text(session.Folder)).absolutePath() : QString();
  this->begin(tr("Saving"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::Session saved = rcn::SaveSession(session, file, ProgressOf(monitor));
    if (!temporary.isEmpty() && saved.Folder != session.Folder)
    {
      // Everything has been copied: nobody needs it there any more.
      QDir(temporary).removeRecursively();
    }
    return [=] {
      this->Session = saved;
      this->Unsaved = false;
      this->updateTitle();
      this->Notice->showRemark(tr("Saved as %1.").arg(Text(saved.Path)));
    };
  });
}

QString qRcnMainWindow::newUnsavedFolder() const
{
  const QString stamp = QDateTime::currentDateTime().toString("yyyyMMdd-hhmmss-zzz");
  return QString("%1/%2-%3/workspace.rcn").arg(this->Where.Unsaved, stamp).arg(QCoreApplication::applicationPid());
}

bool qRcnMainWindow::isUnsavedPlace(const QString& path) const
{
  return QFileInfo(path).absoluteFilePath().startsWith(QFileInfo(this->Where.Unsaved).absoluteFilePath() + "/");
}

void qRcnMainWindow::keepUnsaved()
{
  // Results that have no workspace stay where they are, with a workspace file that knows them.
  if (this->Unsaved && this->Session.Path.empty() && QDir(Text(this->Session.Folder)).exists())
  {
    try
    {
      rcn::SaveSession(this->session(), this->Session.Folder + ".json");
    }
    catch (const rcn::Error& error)
    {
      this->Notice->showError(QString::fromUtf8(error.what()));
    }
  }
}

void qRcnMainWindow::reopenUnsaved()
{
  const QDir unsaved(this->Where.Unsaved);
  const QStringList folders = unsaved.entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name | QDir::Reversed);
  for (const QString& folder : folders)
  {
    const QString file = unsaved.filePath(folder + "/workspace.rcn.json");
    if (QFileInfo::exists(file))
    {
      this->openFiles({ file });
      return;
    }
  }
  this->Notice->showRemark(tr("There is no unsaved work."));
}

void qRcnMainWindow::closeEvent(QCloseEvent* event)
{
  if (this->Unsaved && !this->Warned && !this->Closing)
  {
    this->Warned = true;
    this->Notice->showRemark(this->Session.Path.empty()
        ? tr("There are results that no workspace knows of. Save the workspace, or close again; “Reopen unsaved work” finds "
             "them later.")
        : tr("There are results that the workspace does not know of yet. Save it, or close again to leave them."));
    event->ignore();
    return;
  }
  if (this->Work->isRunning() || this->TrainingWork->isRunning())
  {
    // The window stays alive, and closes when the last job has stopped.
    this->Closing = true;
    this->setEnabled(false);
    this->Notice->showRemark(tr("Stopping what is under way, then closing…"));
    this->Work->cancel();
    this->TrainingWork->cancel();
    event->ignore();
    return;
  }
  this->keepUnsaved();
  this->Settings->setValue("geometry", this->saveGeometry());
  this->Settings->setValue("state", this->saveState());
  this->Settings->setValue("panel", this->panelName());
  this->Settings->sync();
  QMainWindow::closeEvent(event);
}

// ---- export ----------------------------------------------------------------------------------------

QString qRcnMainWindow::askForFile(const QString& title, const QString& name, const QString& filter)
{
  const QString folder = this->Settings->value("exportFolder", QDir::homePath()).toString();
  const QString path = qRcnStyle::askForFile(this, title, QDir(folder).filePath(name), filter);
  if (!path.isEmpty())
  {
    this->Settings->setValue("exportFolder", QFileInfo(path).absolutePath());
  }
  return path;
}

void qRcnMainWindow::beginExport(const QString& path, const qRcnJob::Work& write)
{
  const rcn::Session session = this->Session;
  this->begin(tr("Exporting"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    rcn::CheckExport(session, path.toStdString());
    return write(monitor);
  });
}

void qRcnMainWindow::exportPicture(const QString& path)
{
  const QImage picture = this->layoutName() == "compare" ? this->Compare->picture() : this->Slices->picture();
  this->beginExport(path, [=](qRcnJob::Monitor&) -> qRcnJob::Done {
    if (!picture.save(path))
    {
      throw rcn::Error(
        RCN_EIO, tr("%1 cannot be written; choose another folder, and a name that ends in .png.").arg(path).toStdString());
    }
    return [=] { this->Notice->showRemark(tr("Saved as %1.").arg(path)); };
  });
}

void qRcnMainWindow::exportAgreement(const QString& path)
{
  if (this->Agreement->csv().isEmpty())
  {
    this->Notice->showRemark(tr("Open a case with raters' masks first."));
    return;
  }
  const std::string text = this->Agreement->csv().toStdString();
  this->beginExport(path, [=](qRcnJob::Monitor&) -> qRcnJob::Done {
    rcn::WriteText(path.toStdString(), text);
    return [=] { this->Notice->showRemark(tr("Saved as %1.").arg(path)); };
  });
}

void qRcnMainWindow::exportReliability(const QString& path)
{
  const std::shared_ptr<const rcn::Judged> judged = this->LastJudged;
  const std::string title = this->Session.Judgement.Model;
  if (!judged)
  {
    this->Notice->showRemark(tr("Evaluate a model first."));
    return;
  }
  this->beginExport(path, [=](qRcnJob::Monitor&) -> qRcnJob::Done {
    if (path.endsWith(".csv"))
    {
      std::string text = rcn::CsvRow({ "lower", "upper", "votes", "model_says", "raters_say" });
      for (const rcn_calib_bin& bin : judged->Report.Bins)
      {
        text += rcn::CsvRow({ rcn::CsvNumber(bin.lower), rcn::CsvNumber(bin.upper), std::to_string(bin.count),
          rcn::CsvNumber(bin.confidence), rcn::CsvNumber(bin.frequency) });
      }
      rcn::WriteText(path.toStdString(), text);
    }
    else
    {
      rcn::ReliabilityDiagram(judged->Report, title, judged->HasBefore ? &judged->Before : nullptr).Save(path.toStdString());
    }
    return [=] { this->Notice->showRemark(tr("Saved as %1.").arg(path)); };
  });
}

void qRcnMainWindow::exportOverlay(const QString& path)
{
  const int shown = this->Scene->shownPrediction();
  if (shown < 0)
  {
    this->Notice->showRemark(tr("Choose an overlay first: a fusion or a model's prediction."));
    return;
  }
  const qRcnScene::Prediction prediction = this->Scene->prediction(shown);
  this->beginExport(path, [=](qRcnJob::Monitor&) -> qRcnJob::Done {
    const rcn::Volume& map = prediction.Probability.Data() ? prediction.Probability : prediction.Levels;
    const std::string remark = rcn::WriteImage(path.toStdString(), map.View(), rcn::Content::Probability, {}, map.Note());
    return [=] { this->Notice->showRemark(tr("Saved as %1. %2").arg(path, Text(remark)).trimmed()); };
  });
}

void qRcnMainWindow::exportModel(const QString& path)
{
  const rcn::SessionModel* model = this->Session.FindModel(this->Session.Model);
  if (!model)
  {
    this->Notice->showRemark(tr("Train a model or open one first."));
    return;
  }
  const std::string from = model->Path;
  this->beginExport(path, [=](qRcnJob::Monitor&) -> qRcnJob::Done {
    rcn::CopyFile(from, path.toStdString());
    return [=] { this->Notice->showRemark(tr("Saved as %1.").arg(path)); };
  });
}

void qRcnMainWindow::exportReport(const QString& path)
{
  const rcn::Session session = this->Session;
  // What was judged, where something was; otherwise everything.
  const std::vector<std::string> ids = this->LastJudged ? this->LastJudged->Cases : rcn::CasesOf(session, "", true);
  if (ids.empty())
  {
    this->Notice->showRemark(tr("Open a case with raters' masks first."));
    return;
  }
  this->begin(tr("Writing the report"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    std::vector<std::string> remarks;
    rcn::ReportOn(session, ids, path.toStdString(), ProgressOf(monitor), &remarks);
    return [=] { this->Notice->showRemark(tr("Saved as %1. %2").arg(path, Texts(remarks).join(" ")).trimmed()); };
  });
}

// ---- what is in front ------------------------------------------------------------------------------

QString qRcnMainWindow::layoutName() const
{
  return this->Actions["compare"]->isChecked() ? "compare" : "slices";
}

void qRcnMainWindow::setLayoutName(const QString& name)
{
  const bool compare = name == "compare";
  this->Actions[compare ? "compare" : "slices"]->setChecked(true);
  this->Center->setCurrentWidget(!this->Open ? this->Welcome : compare ? static_cast<QWidget*>(this->Compare) : this->Slices);
}

QString qRcnMainWindow::panelName() const
{
  return PanelNames.value(this->Panels->currentIndex(), PanelNames.front());
}

void qRcnMainWindow::setPanelName(const QString& name)
{
  const int index = static_cast<int>(PanelNames.indexOf(name));
  if (index >= 0)
  {
    this->Panels->setCurrentIndex(index);
  }
}

void qRcnMainWindow::setShortcutsVisible(bool visible)
{
  if (visible)
  {
    this->Shortcuts->popUp();
  }
  else
  {
    this->Shortcuts->hide();
  }
}

void qRcnMainWindow::resizeEvent(QResizeEvent* event)
{
  // In a narrow window the second tool bar stands below the first: no button hides behind an arrow.
  const bool narrow = this->WorkBar->sizeHint().width() + this->LookBar->sizeHint().width() > this->width();
  if (narrow != this->toolBarBreak(this->LookBar))
  {
    narrow ? this->insertToolBarBreak(this->LookBar) : this->removeToolBarBreak(this->LookBar);
  }
  QMainWindow::resizeEvent(event);
}

void qRcnMainWindow::dragEnterEvent(QDragEnterEvent* event)
{
  if (!qRcnStyle::localFiles(event->mimeData()).isEmpty())
  {
    event->acceptProposedAction();
  }
}

void qRcnMainWindow::dropEvent(QDropEvent* event)
{
  event->acceptProposedAction();
  this->openFiles(qRcnStyle::localFiles(event->mimeData()));
}
