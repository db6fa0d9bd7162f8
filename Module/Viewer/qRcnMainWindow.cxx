// SPDX-License-Identifier: Apache-2.0
#include "qRcnMainWindow.h"

#include <QAction>
#include <QCloseEvent>
#include <QDateTime>
#include <QDir>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QScrollArea>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>
#include <QStandardPaths>
#include <QStatusBar>
#include <QStyle>
#include <QTabWidget>
#include <QVBoxLayout>

#include "qRcnAbout.h"
#include "qRcnAgreement.h"
#include "qRcnCalibrationPanel.h"
#include "qRcnCases.h"
#include "qRcnCompareView.h"
#include "qRcnConsensusPanel.h"
#include "qRcnDisputes.h"
#include "qRcnDocument.h"
#include "qRcnExport.h"
#include "qRcnJobs.h"
#include "qRcnMenus.h"
#include "qRcnNotice.h"
#include "qRcnRecent.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnShortcuts.h"
#include "qRcnOrthogonalViews.h"
#include "qRcnSliceCanvas.h"
#include "qRcnSliceView.h"
#include "qRcnStructures.h"
#include "qRcnStyle.h"
#ifdef RCN_HAVE_SURFACES
#include "qRcnSurfaceView.h"
#endif
#include "qRcnTasks.h"
#include "qRcnText.h"
#include "qRcnTrainingMonitor.h"
#include "qRcnTrainingPanel.h"
#include "qRcnViewKeys.h"
#include "qRcnVoxelProbe.h"
#include "rcnViewerWayOut.h"

using qRcnText::Text;
using qRcnText::Texts;

namespace
{

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

} // namespace

qRcnMainWindow::qRcnMainWindow(const Places& places, QWidget* parent)
  : QMainWindow(parent),
    Settings(places.Settings.isEmpty() ? new QSettings : new QSettings(places.Settings, QSettings::IniFormat)),
    Notice(new qRcnNotice),
    Jobs(new qRcnJobs(this->Notice)),
    Document(new qRcnDocument(this->Jobs,
      places.Unsaved.isEmpty() ? QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + "/unsaved"
                               : places.Unsaved,
      this)),
    Tasks(new qRcnTasks(this->Document, this->Jobs, this)),
    Exporter(new qRcnExport(this->Document, this->Jobs, this))
{
  // First the parts, then the menus, which look at the parts, then the connections between them; the window's size and state
  // last, because restoring the state needs docks and bars to be there, by name.
  this->setAcceptDrops(true);
  this->makeCenter();
  this->makePanels();
  this->makeStatusBar();
  this->Menus = new qRcnMenus(this);
  this->connectDocument();
  this->connectPanels();
  this->connectTraining();
  this->resize(1440, 900);
  this->restoreGeometry(this->Settings->value("geometry").toByteArray());
  this->restoreState(this->Settings->value("state").toByteArray());
  this->setPanelName(this->Settings->value("panel", PanelNames.front()).toString());
  this->refresh();
}

qRcnMainWindow::~qRcnMainWindow()
{
  // Work that still runs must not meet half a window.
  delete this->Jobs;
}

// ---- the parts -------------------------------------------------------------------------------------

void qRcnMainWindow::makeCenter()
{
  auto* middle = new QWidget;
  auto* layout = new QVBoxLayout(middle);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  this->Center = new QStackedWidget;
  // Shown while nothing is open: what can be opened, and what this is not for.
  auto* welcome = new QLabel(tr("<div align='center'><p style='font-size:x-large'>Open or drop cases here</p>"
                                "<p>a data list (.json), an image with its raters' masks, a DICOM folder, "
                                "a saved workspace (.rcn.json) or a model (.safetensors)</p>"
                                "<p style='color:gray'>For research, not for clinical use.</p></div>"));
  welcome->setAlignment(Qt::AlignCenter);
  welcome->setWordWrap(true);
  this->Welcome = welcome;
  this->Slices = new qRcnOrthogonalViews(this->scene());
  this->Compare = new qRcnCompareView(this->scene());
  this->Center->addWidget(this->Welcome);
  this->Center->addWidget(this->Slices);
  this->Center->addWidget(this->Compare);
  this->Notice->setObjectName("notice");
  layout->addWidget(this->Center, 1);
  layout->addWidget(this->Notice);
  this->setCentralWidget(middle);
  this->Shortcuts = new qRcnShortcuts(this);
  this->About = new qRcnAbout(this);
  this->Recent = new qRcnRecent(this->Settings.get(), this);
  new qRcnViewKeys(this, [this] { return this->firstView(); });
  this->makeSurfaces();
}

void qRcnMainWindow::makeSurfaces()
{
#ifdef RCN_HAVE_SURFACES
  this->Surfaces = new qRcnSurfaceView(this->scene());
  this->About->setGraphics(this->Surfaces->problem().isEmpty() ? this->Surfaces->description() : this->Surfaces->problem());
  // No usable OpenGL: the window works without the 3-D view, and About says why there is none. The view stays a hidden child,
  // because others ask it for its problem.
  if (!this->Surfaces->problem().isEmpty())
  {
    this->Surfaces->setParent(this);
    this->Surfaces->hide();
    return;
  }
  this->Slices->setFourthView(this->Surfaces);
  connect(this->Surfaces, &qRcnSurfaceView::doubleClicked, this,
    [this] { this->Slices->setMaximized(this->Slices->maximized() < 0 ? qRcnOrthogonalViews::FourthView : -1); });
  // OpenGL may also give up later, for instance when a driver runs out of memory.
  connect(this->Surfaces, &qRcnSurfaceView::failed, this, [this](const QString& sentence) {
    this->About->setGraphics(sentence);
    this->Slices->setFourthViewWanted(false);
    this->Menus->action("surfaces")->setChecked(false);
    this->Menus->update();
  });
#endif
}

QString qRcnMainWindow::surfacesProblem() const
{
#ifdef RCN_HAVE_SURFACES
  return this->Surfaces->problem();
#else
  return tr("This build has no 3-D view; it needs VTK with OpenGL.");
#endif
}

bool qRcnMainWindow::isBusy() const
{
#ifdef RCN_HAVE_SURFACES
  return this->Jobs->isRunning() || this->Surfaces->isBusy();
#else
  return this->Jobs->isRunning();
#endif
}

// What the person wants is remembered even where this machine cannot show it.
void qRcnMainWindow::setSurfacesShown(bool shown)
{
  this->Settings->setValue("surfaces", shown);
  this->Slices->setFourthViewWanted(shown && this->surfacesProblem().isEmpty());
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

  this->Consensus = new qRcnConsensusPanel(this->scene());
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
  // Four short names fit: none is cut, and none hides behind an arrow.
  this->Panels->setElideMode(Qt::ElideNone);
  this->Panels->setUsesScrollButtons(false);
  this->Panels->addTab(Scrolled(this->Consensus), tr("Consensus"));
  this->Panels->addTab(agreement, tr("Agreement"));
  this->Panels->addTab(Scrolled(this->Calibration), tr("Calibration"));
  this->Panels->addTab(Scrolled(this->Training), tr("Training"));
  auto* right = new QDockWidget(tr("Panels"), this);
  right->setObjectName("panelsDock");
  right->setWidget(this->Panels);
  right->setTitleBarWidget(new QWidget(right)); // the tabs are titles enough
  this->addDockWidget(Qt::RightDockWidgetArea, right);
  this->resizeDocks({ left, right }, { 280, 400 }, Qt::Horizontal);
}

void qRcnMainWindow::makeStatusBar()
{
  auto* research = new QLabel(tr("For research, not for clinical use"));
  research->setObjectName("research");
  this->statusBar()->addWidget(this->Jobs);
  this->statusBar()->addPermanentWidget(research);
  this->Jobs->hide(); // the bar has shown it
}

// ---- connections -----------------------------------------------------------------------------------

void qRcnMainWindow::connectDocument()
{
  connect(this->Jobs, &qRcnJobs::changed, this, &qRcnMainWindow::refresh);
  // Somebody who goes on working after the warning about unsaved results is warned again when closing.
  connect(this->Jobs->work(), &qRcnJob::started, this, [this] { this->Warned = false; });
  connect(this->Jobs, &qRcnJobs::idle, this, [this] {
    if (this->Closing)
    {
      this->close();
    }
  });
  // The window was about to close, and is opened again, so that a person can save elsewhere. Closing once more loses the
  // predictions, as said.
  connect(this->Document, &qRcnDocument::cannotKeep, this, [this](const QString& sentence) {
    this->Closing = false;
    this->Warned = true;
    this->setEnabled(true);
    this->Notice->showError(tr("%1 Save the workspace elsewhere, or close again to discard its predictions.").arg(sentence));
  });
  connect(this->Document, &qRcnDocument::changed, this, &qRcnMainWindow::refresh);
  connect(this->Document, &qRcnDocument::casesChanged, this, &qRcnMainWindow::showCases);
  connect(this->Document, &qRcnDocument::caseShown, this, [this](const rcn::OpenCasePointer& open) { this->showCase(*open); });
  connect(this->Document, &qRcnDocument::structuresChanged, this, &qRcnMainWindow::showStructures);
  connect(this->Document, &qRcnDocument::structureShown, this, [this](const rcn::OpenCasePointer& open) {
    this->Agreement->setAllCases(nullptr); // of the other structure
    if (open)
    {
      this->showAgreement(*open);
    }
  });
  connect(this->Document, &qRcnDocument::caseClosed, this, &qRcnMainWindow::showNoCase);
  connect(this->Document, &qRcnDocument::opened, this->Recent, &qRcnRecent::add);
  connect(this->Document, &qRcnDocument::statusChanged, this->Cases, &qRcnCases::setStatus);
  connect(this->Document, &qRcnDocument::agreementChanged, this->Cases, &qRcnCases::setAgreement);
  connect(this->Document, &qRcnDocument::currentChanged, this->Cases, &qRcnCases::setCurrentCase);
  connect(this->Document, &qRcnDocument::layoutWanted, this, &qRcnMainWindow::setLayoutName);
  connect(this->Document, &qRcnDocument::panelWanted, this, &qRcnMainWindow::setPanelName);
  connect(this->Document, &qRcnDocument::replaced, this, [this] {
    this->Calibration->clear();
    this->Calibration->setChoice(rcn::NextEvaluation(this->Document->stored()));
    this->Training->monitor()->clear();
  });
  connect(this->scene(), &qRcnScene::changed, this, [this](qRcnScene::Changes what) {
    if (what & (qRcnScene::Case | qRcnScene::Overlay | qRcnScene::Predictions))
    {
      this->Menus->update();
    }
  });
}

void qRcnMainWindow::connectPanels()
{
  connect(this->Panels, &QTabWidget::currentChanged, this,
    [this] { this->Document->setShown(this->layoutName(), this->panelName()); });
  connect(this->Cases, &qRcnCases::caseActivated, this->Document, &qRcnDocument::openCase);
  connect(this->Cases, &qRcnCases::filesDropped, this->Document, &qRcnDocument::openFiles);
  connect(this->Disputes, &qRcnDisputes::regionActivated, this, &qRcnMainWindow::jumpTo);
  connect(this->Consensus->structures(), &qRcnStructures::structureChosen, this->Document, &qRcnDocument::setStructure);
  connect(
    this->Consensus->structures(), &qRcnStructures::visibilityChanged, this->Document, &qRcnDocument::setStructureVisible);
  connect(this->Slices, &qRcnOrthogonalViews::cursorMoved, this->Consensus, &qRcnConsensusPanel::showVoxel);
  connect(this->Compare, &qRcnCompareView::cursorMoved, this->Consensus, &qRcnConsensusPanel::showVoxel);
  connect(this->Agreement, &qRcnAgreement::exportRequested, this->Menus->action("exportAgreement"), &QAction::trigger);
  connect(this->Agreement, &qRcnAgreement::surfacesRequested, this->Tasks, &qRcnTasks::compareRaters);
  connect(this->Agreement, &qRcnAgreement::allCasesRequested, this->Tasks, &qRcnTasks::compareAllCases);
  connect(this->Tasks, &qRcnTasks::allCasesCompared, this->Agreement, &qRcnAgreement::setAllCases);
  // Only the two raters of the pair stay visible; negative: all of them again.
  connect(this->Agreement, &qRcnAgreement::pairActivated, this, [this](int first, int second) {
    for (int r = 0; r < this->scene()->raterCount(); ++r)
    {
      this->scene()->setRaterVisible(r, first < 0 || r == first || r == second);
    }
  });
  // The same figures with distances, which take longer, and come later, than the first ones.
  connect(this->Tasks, &qRcnTasks::raterDistancesReady, this, [this](const rcn::AgreementReport& report) {
    this->Agreement->setAgreement(report, Texts(this->Document->shownCase()->Work.RaterNames()));
  });
  connect(this->Calibration, &qRcnCalibrationPanel::evaluateRequested, this, &qRcnMainWindow::evaluate);
  connect(this->Calibration, &qRcnCalibrationPanel::recalibrateRequested, this, &qRcnMainWindow::recalibrate);
  connect(this->Calibration, &qRcnCalibrationPanel::modelChosen, this->Document, &qRcnDocument::useModel);
  connect(this->Calibration, &qRcnCalibrationPanel::structureChosen, this->Document, &qRcnDocument::setStructure);
  connect(this->Tasks, &qRcnTasks::judged, this->Calibration, &qRcnCalibrationPanel::showJudged);
  connect(this->Tasks, &qRcnTasks::judged, this, [this](const rcn::Judged& judged) {
    const bool isOpen = &judged == this->Document->judged().get(); // not what a correction was fitted to
    this->Calibration->setStorable(isOpen && rcn::CheckStoring(this->Document->stored().Evaluation).empty());
  });
  connect(this->Calibration, &qRcnCalibrationPanel::storeRequested, this->Tasks, &qRcnTasks::storeJudged);
  connect(this->Tasks, &qRcnTasks::recordStored, this, &qRcnMainWindow::showRecord);
  // Region and bins need a pass over the maps, so what was judged is judged again as soon as they change.
  const auto again = [this] {
    const rcn::EvaluationChoice chosen = this->Calibration->choice();
    this->Tasks->judgeAgain(chosen.Region, chosen.Bins);
  };
  connect(this->Calibration->diagram(), &qRcnReliabilityDiagram::regionChanged, this, again);
  connect(this->Calibration->diagram(), &qRcnReliabilityDiagram::binsChanged, this, again);
  connect(this->Calibration->diagram(), &qRcnReliabilityDiagram::binSelected, this->Tasks, &qRcnTasks::highlight);
}

void qRcnMainWindow::connectTraining()
{
  qRcnTrainingMonitor* monitor = this->Training->monitor();
  connect(this->Training, &qRcnTrainingPanel::trainRequested, this, &qRcnMainWindow::train);
  // stop, not cancel: the best model so far is kept, if there is one.
  connect(monitor, &qRcnTrainingMonitor::cancelRequested, this->Jobs->training(), &qRcnJob::stop);
  connect(monitor, &qRcnTrainingMonitor::keepRequested, this->Tasks, &qRcnTasks::keepModel);
  connect(monitor, &qRcnTrainingMonitor::discardRequested, this->Tasks, &qRcnTasks::discardModel);
  connect(this->Tasks, &qRcnTasks::trainingStarted, monitor, &qRcnTrainingMonitor::start);
  connect(this->Tasks, &qRcnTasks::trainingStarted, this->Notice, &qRcnNotice::clear);
  connect(this->Tasks, &qRcnTasks::trainingProgressed, monitor, &qRcnTrainingMonitor::setProgress);
  connect(this->Tasks, &qRcnTasks::epochDone, monitor, &qRcnTrainingMonitor::addEpoch);
  connect(this->Tasks, &qRcnTasks::trained, monitor, &qRcnTrainingMonitor::finish);
  connect(this->Tasks, &qRcnTasks::trainingFailed, monitor, &qRcnTrainingMonitor::fail);
  connect(this->Tasks, &qRcnTasks::trainingClosed, monitor, &qRcnTrainingMonitor::clear);
}

// ---- what is shown ---------------------------------------------------------------------------------

qRcnScene* qRcnMainWindow::scene() const
{
  return this->Document->scene();
}

// Everything that follows from what is open, shown anew: cheap, and so called for every change, instead of one function for
// each.
void qRcnMainWindow::refresh()
{
  const rcn::Session& session = this->Document->stored();
  QStringList title = { Text(session.Current), Text(session.StructureName(session.ShownStructure())),
    QFileInfo(Text(session.Path)).fileName(), tr("Rater Consensus") };
  // The case first, because a task bar shows the beginning of a title.
  title.removeAll(QString());
  this->setWindowTitle((this->Document->isUnsaved() ? "*" : "") + title.join(" – "));
  QStringList models;
  for (const rcn::SessionModel& model : session.Models)
  {
    models << Text(model.Name);
  }
  this->Calibration->setModels(models, Text(session.Model));
  this->showRecord();
  this->Training->setModels(models);
  int training = 0, validation = 0;
  // As training will count them: with an image, and with raters (Data() leaves out the others).
  for (const rcn::Case& one : session.Data().Cases)
  {
    training += one.Split == "training" && !one.Images.empty();
    validation += one.Split == "validation" && !one.Images.empty();
  }
  this->Training->setCases(training, validation);
  this->Calibration->setBusy(this->Jobs->work()->isRunning());
  this->Training->setBusy(this->Jobs->training()->isRunning());
  this->Menus->update();
}

// Only when the model in use or its file has changed.
void qRcnMainWindow::showRecord()
{
  const rcn::SessionModel* model = this->Document->stored().FindModel(this->Document->stored().Model);
  const QFileInfo file(model ? Text(model->Path) : QString());
  const QString version = model ? file.filePath() + file.lastModified().toString(Qt::ISODateWithMs) : QString();
  if (version == this->ShownRecord)
  {
    return; // reading it takes the weights
  }
  this->ShownRecord = version;
  QString summary, all;
  try
  {
    const rcn::ModelWords words = model ? rcn::DescribeModel(*model) : rcn::ModelWords();
    summary = Text(words.Summary);
    for (const auto& line : words.Lines)
    {
      all += (all.isEmpty() ? "" : "\n") + Text(line.first) + ": " + Text(line.second);
    }
  }
  catch (const rcn::Error& error)
  {
    summary = Text(rcn::ViewerSentenceOf(error));
  }
  this->Calibration->setRecord(summary, all);
}

void qRcnMainWindow::showCases()
{
  const rcn::Session& session = this->Document->stored();
  this->Cases->setCases(session.Cases, Texts(session.Raters));
  this->Cases->setCurrentCase(Text(session.Current));
  this->Agreement->setAllCasesAvailable(rcn::CasesOf(session, "", true).size() > 1);
  for (const rcn::SessionPrediction& prediction : session.Predictions)
  {
    this->Cases->setStatus(Text(prediction.Case), qRcnCases::Predicted);
  }
}

void qRcnMainWindow::showStructures()
{
  QStringList names;
  for (const qRcnStructure& structure : this->Document->structures())
  {
    names << structure.Name;
  }
  this->Consensus->structures()->setStructures(this->Document->structures(), this->Document->structure());
  this->Calibration->setStructures(names, this->Document->structure());
  this->Training->setSeveralStructures(!names.isEmpty());
}

void qRcnMainWindow::showAgreement(const rcn::OpenCase& open)
{
  if (open.Agreement.Figures)
  {
    const QStringList raters = Texts(open.Work.RaterNames());
    this->Agreement->setAgreement(open.Agreement, raters);
    this->Disputes->setRegions(open.Agreement.Regions, raters, open.Agreement.Geometry);
  }
  else
  {
    this->Agreement->clear();
    this->Disputes->clear();
  }
}

void qRcnMainWindow::showCase(const rcn::OpenCase& open)
{
  this->showAgreement(open);
  if (!open.Agreement.Regions.empty())
  {
    // Where a reader would look first.
    this->Disputes->setCurrent(0);
    this->jumpTo(0);
  }
  this->setLayoutName(this->layoutName()); // the first case takes the place of the welcome
}

void qRcnMainWindow::showNoCase()
{
  this->Agreement->clear();
  this->Disputes->clear();
  this->setLayoutName(this->layoutName()); // the welcome again
}

qRcnSliceCanvas* qRcnMainWindow::firstView() const
{
  if (this->Center->currentWidget() == this->Compare)
  {
    return this->Compare->canvas();
  }
  // A view that is maximized hides the others.
  for (const rcn_view view : { RCN_VIEW_AXIAL, RCN_VIEW_CORONAL, RCN_VIEW_SAGITTAL })
  {
    if (this->Slices->view(view)->isVisible())
    {
      return this->Slices->view(view)->canvas();
    }
  }
  return nullptr;
}

void qRcnMainWindow::jumpTo(int dispute)
{
  const rcn::OpenCasePointer& open = this->Document->shownCase();
  if (open && dispute >= 0 && dispute < static_cast<int>(open->Agreement.Regions.size()))
  {
    const rcn_dispute& region = open->Agreement.Regions[static_cast<size_t>(dispute)];
    this->scene()->visit({ region.at[0], region.at[1], region.at[2] });
  }
}

QImage qRcnMainWindow::picture() const
{
  return this->layoutName() == "compare" ? this->Compare->picture() : this->Slices->picture();
}

rcn_slice qRcnMainWindow::shownSlice() const
{
  const qRcnSliceCanvas* view = this->firstView();
  view = view ? view : this->Slices->view(RCN_VIEW_AXIAL)->canvas();
  return { view->plane().axis, view->slice() };
}

QString qRcnMainWindow::agreementTable() const
{
  return this->Agreement->csv();
}

QString qRcnMainWindow::askForFile(const QString& title, const QString& name, const QString& filter)
{
  // Exports have a folder of their own: results are seldom wanted among the data.
  const QString folder = this->Settings->value("exportFolder", QDir::homePath()).toString();
  const QString path = qRcnStyle::askForFile(this, title, QDir(folder).filePath(name), filter);
  if (!path.isEmpty())
  {
    this->Settings->setValue("exportFolder", QFileInfo(path).absolutePath());
  }
  return path;
}

QString qRcnMainWindow::layoutName() const
{
  return this->Menus->action("compare")->isChecked() ? "compare" : "slices";
}

void qRcnMainWindow::setLayoutName(const QString& name)
{
  const bool compare = name == "compare";
  this->Menus->action(compare ? "compare" : "slices")->setChecked(true);
  QWidget* views = compare ? static_cast<QWidget*>(this->Compare) : this->Slices;
  this->Center->setCurrentWidget(this->Document->shownCase() ? views : this->Welcome);
  this->Document->setShown(this->layoutName(), this->panelName());
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
  this->Document->setShown(this->layoutName(), this->panelName());
}

// ---- what a person does ----------------------------------------------------------------------------

void qRcnMainWindow::goToCase(int step)
{
  // As they stand in the list, sorted and filtered: "next" is the one below.
  const QStringList ids = this->Cases->shownCases();
  const QString id = ids.value(static_cast<int>(ids.indexOf(Text(this->Document->stored().Current))) + step);
  if (!id.isEmpty())
  {
    this->Document->openCase(id);
  }
}

void qRcnMainWindow::train()
{
  rcn::TrainingOptions options = this->TrainingDefaults;
  this->Training->apply(options);
  this->Tasks->train(options, this->Training->startFrom());
}

void qRcnMainWindow::evaluate()
{
  this->Tasks->evaluate(this->Calibration->choice());
}

void qRcnMainWindow::recalibrate()
{
  this->Tasks->recalibrate(this->Calibration->method(), this->Calibration->choice());
}

void qRcnMainWindow::closeEvent(QCloseEvent* event)
{
  // Three reasons not to close yet, each met once: results that nobody has saved, work that has to stop, and results in memory
  // that go to the folder of unsaved work first.
  if (this->Document->isUnsaved() && !this->Warned && !this->Closing)
  {
    this->Warned = true;
    this->Notice->showRemark(this->Document->stored().Path.empty()
        ? tr("Some results have not been saved. Save the workspace, or close again: “Reopen unsaved work” opens them later.")
        : tr("Some results have not been saved. Save the workspace, or close again to discard them."));
    event->ignore();
    return;
  }
  if (this->Jobs->isRunning())
  {
    // The window stays alive, and closes when the last job has stopped.
    this->Closing = true;
    this->setEnabled(false);
    this->Notice->showRemark(tr("Stopping the work under way, then closing…"));
    this->Jobs->cancelAll();
    event->ignore();
    return;
  }
  if (!this->Document->keepUnsaved())
  {
    this->Closing = true;
    this->setEnabled(false);
    this->Notice->showRemark(tr("Keeping unsaved results, then closing…"));
    event->ignore();
    return;
  }
  this->Settings->setValue("geometry", this->saveGeometry());
  this->Settings->setValue("state", this->saveState());
  this->Settings->setValue("panel", this->panelName());
  this->Settings->sync();
  QMainWindow::closeEvent(event);
}

void qRcnMainWindow::resizeEvent(QResizeEvent* event)
{
  this->Menus->arrangeBars();
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
  this->Document->openFiles(qRcnStyle::localFiles(event->mimeData()));
}
