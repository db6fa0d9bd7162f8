// SPDX-License-Identifier: Apache-2.0
/// The viewer's window: cases on the left, views in the middle, panels on the right, one bar for what a person should know.
/// An action is one call of rcnActions.h in a job; what comes back is shown. No pop-ups but file dialogs.
#ifndef qRcnMainWindow_h
#define qRcnMainWindow_h

#include <memory>

#include <QMainWindow>
#include <QMap>
#include <QStringList>

#include "qRcnJob.h"
#include "qRcnScene.h"
#include "rcnActions.h"
#include "rcnTraining.h"

class QAction;
class QLabel;
class QMenu;
class QProgressBar;
class QSettings;
class QStackedWidget;
class QTabWidget;
class QToolButton;
class qRcnAgreement;
class qRcnCalibrationPanel;
class qRcnCases;
class qRcnCompareView;
class qRcnConsensusPanel;
class qRcnDisputes;
class qRcnNotice;
class qRcnShortcuts;
class qRcnSliceViews;
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

  /// Everything as it is now, also how it is shown.
  rcn::Session session() const;
  /// Whether results were made that no workspace file knows of.
  bool hasUnsavedResults() const { return this->Unsaved; }

  qRcnScene* scene() const { return this->Scene; }
  qRcnCases* cases() const { return this->Cases; }
  qRcnSliceViews* slices() const { return this->Slices; }
  qRcnCompareView* compare() const { return this->Compare; }
  qRcnConsensusPanel* consensus() const { return this->Consensus; }
  qRcnAgreement* agreement() const { return this->Agreement; }
  qRcnDisputes* disputes() const { return this->Disputes; }
  qRcnCalibrationPanel* calibration() const { return this->Calibration; }
  qRcnTrainingPanel* training() const { return this->Training; }
  qRcnNotice* notice() const { return this->Notice; }
  qRcnShortcuts* shortcuts() const { return this->Shortcuts; }
  /// Opening, comparing, predicting, ...; and training, which may run beside them.
  qRcnJob* work() const { return this->Work; }
  qRcnJob* trainingWork() const { return this->TrainingWork; }

  /// "slices" or "compare"
  QString layoutName() const;
  /// The panel in front: "consensus", "agreement", "calibration" or "training".
  QString panelName() const;

  /// What the training panel does not ask for.
  void setTrainingDefaults(const rcn::TrainingOptions& options) { this->TrainingDefaults = options; }

public slots:
  /// Opens or adds files, as rcn::OpenFiles() says. On failure everything stays as it was.
  void openFiles(const QStringList& paths);
  /// Takes this in place of what is open.
  void openSession(const rcn::Session& session);
  void openCase(const QString& id);
  void nextCase();
  void previousCase();
  /// Surface distances of this case, and how far raters agree in all others.
  void compareRaters();
  void fuse(const QString& method);
  void train();
  void keepModel();
  void discardModel();
  /// The case that is open, or all that have an image.
  void predict(bool all);
  void evaluate();
  void recalibrate();
  void useModel(const QString& name);
  void saveWorkspace(const QString& path);
  void exportPicture(const QString& path);
  void exportAgreement(const QString& path);
  void exportOverlay(const QString& path);
  void exportReliability(const QString& path);
  void exportModel(const QString& path);
  void exportReport(const QString& path);
  void setLayoutName(const QString& name);
  void setPanelName(const QString& name);
  void setShortcutsVisible(bool visible);

signals:
  /// A case is before the person.
  void caseShown(const QString& id);

protected:
  void closeEvent(QCloseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

private:
  struct Adopted;
  void makeCenter();
  void makePanels();
  void makeActions();
  void makeStatus();
  void connectPanels();
  QAction* addAction(
    const QString& name, const QString& text, const QString& hint, const QKeySequence& keys, const std::function<void()>& run);
  QMenu* addMenu(const QString& name, const QString& text, const QString& hint);

  bool begin(const QString& what, qRcnJob::Work work);
  /// The same for writing a file, which must be none that the session reads.
  void beginExport(const QString& path, const qRcnJob::Work& write);
  void watch(qRcnJob* job);
  void updateActions();
  void updateTitle();
  void updateModels();
  void say(const std::vector<std::string>& remarks);

  void adopt(const rcn::Session& next, const rcn::OpenCasePointer& open, const std::vector<std::string>& remarks);
  void showCase(const rcn::OpenCasePointer& open);
  void showLayer(const rcn::CaseLayer& layer, bool inFront);
  void restoreView();
  void jumpTo(int dispute);
  void highlight(double lower, double upper);
  void keepPrediction(const rcn::SessionPrediction& prediction);
  void judge(const rcn::SessionJudgement& judgement, bool predictFirst);
  bool isUnsavedPlace(const QString& path) const;
  void keepUnsaved();
  QString newUnsavedFolder() const;
  void reopenUnsaved();
  QString askForFile(const QString& title, const QString& name, const QString& filter);

  Places Where;
  std::unique_ptr<QSettings> Settings;
  rcn::Session Session;
  rcn::OpenCasePointer Open;
  std::shared_ptr<const rcn::Judged> LastJudged;
  rcn::TrainingOptions TrainingDefaults;
  std::shared_ptr<const rcn::TrainingResult> Trained;
  QString PendingCase;
  bool Opening = false, Unsaved = false, Warned = false, Closing = false;

  qRcnScene* Scene;
  qRcnJob* Work;
  qRcnJob* TrainingWork;
  QStackedWidget* Center = nullptr;
  qRcnSliceViews* Slices = nullptr;
  qRcnCompareView* Compare = nullptr;
  QWidget* Welcome = nullptr;
  QTabWidget* Panels = nullptr;
  qRcnCases* Cases = nullptr;
  qRcnConsensusPanel* Consensus = nullptr;
  qRcnAgreement* Agreement = nullptr;
  qRcnDisputes* Disputes = nullptr;
  qRcnCalibrationPanel* Calibration = nullptr;
  qRcnTrainingPanel* Training = nullptr;
  qRcnNotice* Notice = nullptr;
  qRcnShortcuts* Shortcuts = nullptr;
  QToolBar *WorkBar = nullptr, *LookBar = nullptr;
  QProgressBar* Progress = nullptr;
  QLabel* ProgressText = nullptr;
  QToolButton* Cancel = nullptr;
  QMap<QString, QAction*> Actions;
};

#endif
