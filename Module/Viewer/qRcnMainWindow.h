// SPDX-License-Identifier: Apache-2.0
/// The viewer's window: cases on the left, views in the middle, panels on the right, one bar for what a person should know.
/// No pop-ups but file dialogs. It lays out its parts and connects them; what they do is elsewhere:
///
///   qRcnMenus     actions, menus, shortcuts, what is enabled and why
///   qRcnJobs      long work, its progress, Cancel
///   qRcnDocument  what is open, and where it is saved
///   qRcnTasks     compare, fuse, train, predict, evaluate, recalibrate
///   qRcnExport    files for use elsewhere
#ifndef qRcnMainWindow_h
#define qRcnMainWindow_h

#include <memory>

#include <QMainWindow>

#include "rcn/rcn_slice.h"
#include "rcnActions.h"
#include "rcnTraining.h"

class QSettings;
class QStackedWidget;
class QTabWidget;
class qRcnAbout;
class qRcnAgreement;
class qRcnCalibrationPanel;
class qRcnCases;
class qRcnCompareView;
class qRcnConsensusPanel;
class qRcnDisputes;
class qRcnDocument;
class qRcnExport;
class qRcnJobs;
class qRcnMenus;
class qRcnNotice;
class qRcnRecent;
class qRcnScene;
class qRcnShortcuts;
class qRcnSliceCanvas;
class qRcnOrthogonalViews;
class qRcnSurfaceView;
class qRcnTasks;
class qRcnTrainingPanel;

class qRcnMainWindow : public QMainWindow
{
  Q_OBJECT
public:
  /// Where the window remembers things. Empty: where the desktop keeps them.
  struct Places
  {
    QString Settings; ///< an .ini file
    QString Unsaved;  ///< folder for results of workspaces that have no file yet
  };

  explicit qRcnMainWindow(const Places& places = Places(), QWidget* parent = nullptr);
  ~qRcnMainWindow() override;

  qRcnDocument* document() const { return this->Document; }
  qRcnTasks* tasks() const { return this->Tasks; }
  qRcnExport* exporter() const { return this->Exporter; }
  qRcnJobs* jobs() const { return this->Jobs; }
  QSettings* settings() const { return this->Settings.get(); }

  qRcnScene* scene() const;
  qRcnCases* cases() const { return this->Cases; }
  qRcnOrthogonalViews* slices() const { return this->Slices; }
  qRcnCompareView* compare() const { return this->Compare; }
  /// Null: this build has none.
  qRcnSurfaceView* surfaces() const { return this->Surfaces; }
  /// Why there is no 3-D view, as a sentence; empty: there is.
  QString surfacesProblem() const;
  /// Work is under way, or a view is being drawn by another thread.
  bool isBusy() const;
  qRcnConsensusPanel* consensus() const { return this->Consensus; }
  qRcnAgreement* agreement() const { return this->Agreement; }
  qRcnDisputes* disputes() const { return this->Disputes; }
  qRcnCalibrationPanel* calibration() const { return this->Calibration; }
  qRcnTrainingPanel* training() const { return this->Training; }
  qRcnNotice* notice() const { return this->Notice; }
  qRcnShortcuts* shortcuts() const { return this->Shortcuts; }
  qRcnAbout* about() const { return this->About; }
  qRcnRecent* recent() const { return this->Recent; }

  /// "slices" or "compare"
  QString layoutName() const;
  /// The panel in front: "consensus", "agreement", "calibration" or "training".
  QString panelName() const;
  /// The slice that is shown: of the large view, otherwise the axial one.
  rcn_slice shownSlice() const;
  /// The views as they are shown.
  QImage picture() const;
  /// How far raters agree in the open case, as CSV text; empty without raters.
  QString agreementTable() const;
  /// Asks where to save; the next dialog starts there. Empty: nowhere.
  QString askForFile(const QString& title, const QString& name, const QString& filter);

  /// What the training panel does not ask for.
  void setTrainingDefaults(const rcn::TrainingOptions& options) { this->TrainingDefaults = options; }

public slots:
  void setLayoutName(const QString& name);
  void setPanelName(const QString& name);
  void setSurfacesShown(bool shown);
  /// So many cases down the list.
  void goToCase(int step);
  /// The tasks, as the panels are set.
  void train();
  void evaluate();
  void recalibrate();

protected:
  void closeEvent(QCloseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

private:
  void makeCenter();
  void makeSurfaces();
  void makePanels();
  void makeStatusBar();
  void connectDocument();
  void connectPanels();
  void connectTraining();
  void refresh();
  void showCases();
  /// What the model in use says about itself.
  void showRecord();
  void showCase(const rcn::OpenCase& open);
  void showAgreement(const rcn::OpenCase& open);
  void showStructures();
  void showNoCase();
  /// The view that keys act on while none was used; null: none is shown.
  qRcnSliceCanvas* firstView() const;
  void jumpTo(int dispute);

  std::unique_ptr<QSettings> Settings;
  rcn::TrainingOptions TrainingDefaults;
  bool Warned = false, Closing = false;

  qRcnNotice* Notice;
  qRcnJobs* Jobs;
  qRcnDocument* Document;
  qRcnTasks* Tasks;
  QString ShownRecord; ///< of which file, and when that was changed
  qRcnExport* Exporter;
  qRcnMenus* Menus = nullptr;
  QStackedWidget* Center = nullptr;
  QWidget* Welcome = nullptr;
  qRcnOrthogonalViews* Slices = nullptr;
  qRcnCompareView* Compare = nullptr;
  qRcnSurfaceView* Surfaces = nullptr;
  QTabWidget* Panels = nullptr;
  qRcnCases* Cases = nullptr;
  qRcnConsensusPanel* Consensus = nullptr;
  qRcnAgreement* Agreement = nullptr;
  qRcnDisputes* Disputes = nullptr;
  qRcnCalibrationPanel* Calibration = nullptr;
  qRcnTrainingPanel* Training = nullptr;
  qRcnShortcuts* Shortcuts = nullptr;
  qRcnAbout* About = nullptr;
  qRcnRecent* Recent = nullptr;
};

#endif
