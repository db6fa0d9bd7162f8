// SPDX-License-Identifier: Apache-2.0
/// What is open in the window: the session (cases, models, predictions), the case that is shown with its scene, what was
/// judged and trained last, and where all of it is saved. Knows no widget: others listen to its signals.
///
/// Reading and writing run as jobs (qRcnJobs.h); until a job has succeeded, everything stays as it was.
#ifndef qRcnDocument_h
#define qRcnDocument_h

#include <memory>

#include <QObject>
#include <QStringList>

#include "qRcnCases.h"
#include "qRcnScene.h"
#include "qRcnStructures.h"
#include "rcnActions.h"
#include "rcnTraining.h"

class qRcnJobs;

class qRcnDocument : public QObject
{
  Q_OBJECT
public:
  /// `unsaved`: a folder for results of workspaces that have no file yet.
  qRcnDocument(qRcnJobs* jobs, const QString& unsaved, QObject* parent = nullptr);

  qRcnScene* scene() const { return this->Scene; }
  /// Everything as it is now, also how it is shown.
  rcn::Session session() const;
  /// The same without a look at the scene.
  const rcn::Session& stored() const { return this->Session; }
  /// Null: no case is open.
  const rcn::OpenCasePointer& shownCase() const { return this->Open; }
  bool hasRaters() const { return this->Open && this->Scene->votes(); }
  /// What evaluating found last; null: nothing was evaluated.
  const std::shared_ptr<const rcn::Judged>& judged() const { return this->Judged; }
  /// A trained model that waits for the person's decision; null: none.
  const std::shared_ptr<const rcn::TrainingResult>& trained() const { return this->Trained; }
  /// Whether there are results that no workspace file contains.
  bool isUnsaved() const { return this->Unsaved; }

  /// What raters tell apart; empty: there is one structure.
  QVector<qRcnStructure> structures() const;
  /// The one that everything is about: the scene, agreement, what was judged. 1, 2, ...; 0: there is one.
  int structure() const { return this->Session.ShownStructure(); }

  /// Which layout and panel are in front, for the session.
  void setShown(const QString& layout, const QString& panel);

  /// For a window that closes: results that have no workspace go to the unsaved folder, with a workspace file for them. False:
  /// a job writes predictions first; ask again when it has ended. If it fails, cannotKeep() is sent, and the next time these
  /// predictions are left out.
  bool keepUnsaved();

  // ---- results of tasks (qRcnTasks.h)

  /// `layer`: its map, which is shown if it is of the open case; null: none.
  void keepPrediction(const rcn::SessionPrediction& prediction, const std::shared_ptr<const rcn::CaseLayer>& layer);
  /// Lays a map over the open case; a fusion is shown again with each case.
  void showLayer(const rcn::CaseLayer& layer, bool inFront);
  /// Brings the map of this name to the front; false when the open case has none.
  bool showOverlay(const QString& name);
  void setJudged(const rcn::EvaluationChoice& choice, const std::shared_ptr<const rcn::Judged>& judged);
  void setTrained(const std::shared_ptr<const rcn::TrainingResult>& trained) { this->Trained = trained; }
  /// In place of models that came from the same file. Returns its name; it is the model in use.
  QString addModel(const std::string& path);

public slots:
  /// Opens or adds files, as rcn::OpenFiles() says.
  void openFiles(const QStringList& paths);
  /// Takes this in place of what is open; `paths` are the files that hold it.
  void openSession(const rcn::Session& session, const QStringList& paths = QStringList());
  void openCase(const QString& id);
  /// Takes the shown case off the list, and shows the next one. Where its predictions are in memory only, the first call says
  /// so, and the second one does it.
  void closeCase();
  /// Nothing is open then; results that have no workspace are kept, as when something else is opened.
  void closeAll();
  /// From now on everything is about this structure (1, 2, ...), in all cases.
  void setStructure(int structure);
  /// So many further in the list; after the last comes the first.
  void goToStructure(int step);
  /// Whether its outline is drawn while another one is chosen.
  void setStructureVisible(int structure, bool visible);
  void useModel(const QString& name);
  void saveWorkspace(const QString& path);
  /// Opens the newest of the workspaces that keepUnsaved() left.
  void reopenUnsaved();

signals:
  /// Title, menus and lists of models may show something else now.
  void changed();
  /// Other cases, or more of them.
  void casesChanged();
  /// Another session took the place of what was open.
  void replaced();
  void caseShown(const rcn::OpenCasePointer& open);
  /// Other structures, another choice among them, or other eyes.
  void structuresChanged();
  /// Everything is about another structure now; null: no case is open.
  void structureShown(const rcn::OpenCasePointer& open);
  /// No case is shown any more.
  void caseClosed();
  /// These were opened, or saved, and can be opened again.
  void opened(const QStringList& paths);
  void currentChanged(const QString& id);
  void statusChanged(const QString& id, qRcnCases::Status status, const QString& sentence);
  void agreementChanged(const QString& id, double meanDice);
  void cannotKeep(const QString& sentence);
  void layoutWanted(const QString& name);
  void panelWanted(const QString& name);

private:
  /// Whether the unsaved folder is where results go when what is open goes.
  bool isForUnsavedFolder() const { return this->Unsaved && this->Session.Path.empty(); }
  void open(
    const std::function<rcn::Session(std::vector<std::string>& remarks)>& read, const QStringList& paths = QStringList());
  void hideCase();
  void adopt(const rcn::Session& next, const rcn::OpenCasePointer& open, const std::vector<std::string>& remarks);
  void showCase(const rcn::Session& session, const rcn::OpenCasePointer& open);
  void announce(const rcn::OpenCase& open);
  void showStructure(const rcn::OpenCasePointer& open, const rcn::CaseStructure& found);
  void outlineOthers();
  bool isUnsavedPlace(const QString& path) const;
  QString newUnsavedFolder() const;

  qRcnJobs* Jobs;
  QString UnsavedFolder;
  qRcnScene* Scene;
  rcn::Session Session;
  rcn::OpenCasePointer Open;
  std::shared_ptr<const rcn::Judged> Judged;
  std::shared_ptr<const rcn::TrainingResult> Trained;
  QString ClosingCase;      ///< closeCase() has said what would be lost
  QString PendingCase;      ///< being read by openCase(); empty: none
  int PendingStructure = 0; ///< being made by setStructure(); 0: none
  int OutlinedBy = -1;      ///< the prediction that outlineOthers() was about; -1: the raters
  bool Unsaved = false;
  bool CannotKeep = false; ///< predictions could not be written to the unsaved folder
};

#endif
