// SPDX-License-Identifier: Apache-2.0
#include "qRcnDocument.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFileInfo>

#include "qRcnJobs.h"
#include "qRcnStyle.h"
#include "qRcnText.h"
#include "qRcnViewState.h"
#include "rcnViewerWayOut.h"

using qRcnText::Text;
using qRcnText::Texts;

qRcnDocument::qRcnDocument(qRcnJobs* jobs, const QString& unsaved, QObject* parent)
  : QObject(parent), Jobs(jobs), UnsavedFolder(unsaved), Scene(new qRcnScene(this))
{
  this->Session.Folder = this->newUnsavedFolder().toStdString();
  connect(jobs, &qRcnJobs::gaveUp, this, [this](const QString& sentence) {
    // A case did not open: the list shows again the one that is open.
    if (!this->PendingCase.isEmpty())
    {
      emit this->statusChanged(this->PendingCase, sentence.isEmpty() ? qRcnCases::NotRead : qRcnCases::Problem, sentence);
    }
    this->PendingCase.clear();
    this->PendingStructure = 0;
    emit this->currentChanged(Text(this->Session.Current));
    emit this->structuresChanged(); // likewise
  });
  // The predictions behind the one in front are drawn as outlines; another one in front, other outlines.
  connect(this->Scene, &qRcnScene::changed, this, [this](qRcnScene::Changes what) {
    if ((what & (qRcnScene::Overlay | qRcnScene::Predictions)) && this->Scene->shownPrediction() != this->OutlinedBy)
    {
      this->outlineOthers();
    }
  });
}

// How it is looked at is known by the scene alone, and read from there when somebody saves.
rcn::Session qRcnDocument::session() const
{
  rcn::Session session = this->Session;
  qRcnViewState::store(session.View, *this->Scene);
  return session;
}

void qRcnDocument::setShown(const QString& layout, const QString& panel)
{
  this->Session.View.Layout = layout.toStdString();
  this->Session.View.Panel = panel.toStdString();
}

// ---- opening ---------------------------------------------------------------------------------------

void qRcnDocument::openFiles(const QStringList& paths)
{
  if (paths.isEmpty())
  {
    return;
  }
  // With the view as it is now: files that are added must not reset it.
  const rcn::Session base = this->session();
  std::vector<std::string> files;
  for (const QString& path : paths)
  {
    files.push_back(QDir::toNativeSeparators(path).toStdString());
  }
  this->open([=](std::vector<std::string>& remarks) { return rcn::OpenFiles(base, files, &remarks); }, paths);
}

void qRcnDocument::openSession(const rcn::Session& session, const QStringList& paths)
{
  this->open([=](std::vector<std::string>&) { return session; }, paths);
}

void qRcnDocument::open(const std::function<rcn::Session(std::vector<std::string>& remarks)>& read, const QStringList& paths)
{
  const rcn::Session base = this->Session;
  // Asked here, on the GUI thread: the worker must not look at the document.
  const bool keep = this->isForUnsavedFolder();
  this->Jobs->begin(tr("Opening"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    std::vector<std::string> remarks;
    const rcn::Session next = read(remarks);
    const rcn::OpenCasePointer open =
      next.Current.empty() ? nullptr : rcn::LoadCase(next, next.Current, qRcnJobs::progressOf(monitor));
    // What is open goes: its predictions in memory are written here, off the GUI thread.
    const bool goes = keep && next.Folder != base.Folder;
    const rcn::Session kept = goes ? rcn::WritePredictions(base, qRcnJobs::progressOf(monitor)) : base;
    return [=] {
      if (goes)
      {
        this->Session.Predictions = kept.Predictions;
      }
      this->adopt(next, open, remarks);
      if (!paths.isEmpty() && !this->isUnsavedPlace(paths.first()))
      {
        emit this->opened(paths);
      }
    };
  });
}

void qRcnDocument::adopt(const rcn::Session& next, const rcn::OpenCasePointer& open, const std::vector<std::string>& remarks)
{
  // Files that were only added leave the session in its folder.
  const bool another = next.Folder != this->Session.Folder;
  // Its model would belong to cases that are no longer open.
  if (another && this->Jobs->training()->isRunning())
  {
    throw rcn::Error(
      RCN_EINVALID, tr("A model is being trained on the cases that are open. Wait for it, or cancel it first.").toStdString());
  }
  rcn::Session adopted = next;
  // From a file of a workspace, with a view to restore; a data list has none.
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
  // May throw, and then nothing has changed yet but that older results have been kept.
  this->showCase(adopted, open);
  if (another)
  {
    if (!open)
    {
      this->hideCase();
    }
    this->Judged.reset();
    this->Trained.reset();
    this->Unsaved = unsaved;
  }
  emit this->casesChanged();
  emit this->structuresChanged();
  if (open)
  {
    this->announce(*open);
  }
  if (another)
  {
    emit this->replaced();
    if (restored)
    {
      qRcnViewState::restore(*this->Scene, next.View);
      emit this->layoutWanted(Text(next.View.Layout));
      emit this->panelWanted(Text(next.View.Panel));
    }
  }
  emit this->changed();
  this->Jobs->remark(Texts(remarks.empty() && open ? open->Remarks : remarks).join(" "));
}

// The case is read on the worker's thread; until it is there, the list shows that it is being read and the views keep the one
// before.
void qRcnDocument::openCase(const QString& id)
{
  if (id == Text(this->Session.Current))
  {
    return;
  }
  const rcn::Session session = this->Session;
  const std::string name = id.toStdString();
  const qRcnJob::Work work = [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::OpenCasePointer open = rcn::LoadCase(session, name, qRcnJobs::progressOf(monitor));
    return [=] {
      rcn::Session next = this->session(); // with the overlay that is in front now
      next.Current = name;
      this->showCase(next, open);
      if (this->PendingCase == id)
      {
        this->PendingCase.clear();
      }
      this->announce(*open);
      emit this->changed();
      this->Jobs->remark(Texts(open->Remarks).join(" "));
    };
  };
  const QString what = tr("Opening %1").arg(id);
  if (!this->PendingCase.isEmpty())
  {
    // The person has changed their mind: the last of several clicks counts.
    emit this->statusChanged(this->PendingCase, qRcnCases::NotRead, {});
    this->Jobs->beginInstead(what, work);
  }
  else if (!this->Jobs->begin(what, work))
  {
    emit this->currentChanged(Text(this->Session.Current));
    return;
  }
  this->PendingCase = id;
  emit this->statusChanged(id, qRcnCases::Reading, {});
}

// Predictions in memory go with the case: said once, done the second time. There is no dialog to answer.
void qRcnDocument::closeCase()
{
  const std::string id = this->Session.Current;
  const bool lost = std::any_of(this->Session.Predictions.begin(), this->Session.Predictions.end(),
    [&](const rcn::SessionPrediction& one) { return one.Case == id && one.Probability.empty(); });
  if (lost && this->ClosingCase != Text(id))
  {
    this->ClosingCase = Text(id);
    this->Jobs->remark(
      tr("Predictions of %1 have not been saved. Save the workspace, or close the case again to discard them.").arg(Text(id)));
    return;
  }
  this->ClosingCase.clear();
  // The one after it takes its place, as in the list.
  const std::vector<rcn::Case>& cases = this->Session.Cases;
  const auto here = std::find_if(cases.begin(), cases.end(), [&](const rcn::Case& one) { return one.Id == id; });
  QString next;
  if (here != cases.end() && cases.size() > 1)
  {
    next = Text(here + 1 != cases.end() ? (here + 1)->Id : (here - 1)->Id);
  }
  qRcnViewState::store(this->Session.View, *this->Scene);
  this->Session.RemoveCase(id);
  if (this->Judged && std::find(this->Judged->Cases.begin(), this->Judged->Cases.end(), id) != this->Judged->Cases.end())
  {
    this->Judged.reset();
  }
  this->hideCase();
  emit this->casesChanged();
  emit this->changed();
  if (!next.isEmpty())
  {
    this->openCase(next);
  }
}

// An empty session, opened like any other: what is unsaved is kept in the same way.
void qRcnDocument::closeAll()
{
  this->open([](std::vector<std::string>&) { return rcn::Session(); });
}

void qRcnDocument::hideCase()
{
  this->Open.reset();
  this->Scene->clear();
  emit this->caseClosed();
}

/// The scene may refuse a case; then neither the session nor the scene has changed.
void qRcnDocument::showCase(const rcn::Session& session, const rcn::OpenCasePointer& open)
{
  if (open)
  {
    // Held by the scene together with the case it belongs to, so that nobody draws votes that are gone.
    const std::shared_ptr<const rcn_votes> votes = rcn::VotesOf(open);
    const rcn_geometry geometry = votes ? *rcn_votes_geometry(votes.get()) : open->Images.front().Geometry();
    const QStringList raters = votes ? Texts(open->Work.RaterNames()) : QStringList();
    this->OutlinedBy = -1; // the scene forgets predictions and outlines; those of the new case come below
    this->Scene->setCase(open->Images, votes, geometry, raters);
  }
  this->Session = session;
  if (!open)
  {
    return;
  }
  this->Open = open;
  const std::vector<rcn::CaseLayer> layers = open->Layers; // showLayer() adds what is new
  for (const rcn::CaseLayer& layer : layers)
  {
    this->showLayer(layer, layer.Name == session.View.Overlay);
  }
  this->outlineOthers();
  emit this->caseShown(open);
}

/// What the list of cases shows of a case that was read.
void qRcnDocument::announce(const rcn::OpenCase& open)
{
  const QString id = Text(open.Id);
  const bool predicted = this->Session.FindPrediction(open.Id, this->Session.Model) != nullptr;
  emit this->statusChanged(id, predicted ? qRcnCases::Predicted : qRcnCases::Read, {});
  if (open.Agreement.Figures)
  {
    emit this->agreementChanged(id, open.Agreement.Figures->mean_dice);
  }
  emit this->currentChanged(id);
}

// ---- structures ------------------------------------------------------------------------------------

QVector<qRcnStructure> qRcnDocument::structures() const
{
  QVector<qRcnStructure> structures;
  const std::vector<std::string>& hidden = this->Session.View.HiddenStructures;
  for (size_t c = 0; this->Session.HasStructures() && c < this->Session.Structures.size(); ++c)
  {
    const std::string& name = this->Session.Structures[c].Name;
    structures.push_back({ Text(name), qRcnStyle::structureColor(static_cast<int>(c) + 1),
      std::find(hidden.begin(), hidden.end(), name) == hidden.end() });
  }
  return structures;
}

void qRcnDocument::setStructure(int structure)
{
  const int count = static_cast<int>(this->structures().size());
  const int wanted = this->PendingStructure ? this->PendingStructure : this->structure();
  if (structure < 1 || structure > count || structure == wanted)
  {
    return;
  }
  const rcn::OpenCasePointer open = this->Open;
  if (!open)
  {
    this->Session.View.Structure = this->Session.StructureName(structure);
    emit this->structuresChanged();
    emit this->structureShown(open);
    return;
  }
  const rcn::Session session = this->Session;
  const qRcnJob::Work work = [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::CaseStructure found = rcn::LoadStructure(session, *open, structure, qRcnJobs::progressOf(monitor));
    return [=] {
      this->PendingStructure = 0;
      this->showStructure(open, found);
    };
  };
  const QString what = tr("Showing %1").arg(Text(session.StructureName(structure)));
  if (this->PendingStructure)
  {
    this->Jobs->beginInstead(what, work); // the last of several clicks counts
  }
  else if (!this->Jobs->begin(what, work))
  {
    emit this->structuresChanged(); // the list shows again which one it is
    return;
  }
  this->PendingStructure = structure;
}

void qRcnDocument::goToStructure(int step)
{
  const int count = static_cast<int>(this->structures().size());
  if (count > 1)
  {
    const int from = this->PendingStructure ? this->PendingStructure : this->structure();
    // Round and round, from the one that is on its way.
    this->setStructure((from - 1 + step % count + count) % count + 1);
  }
}

void qRcnDocument::setStructureVisible(int structure, bool visible)
{
  if (structure < 1 || structure > static_cast<int>(this->structures().size()))
  {
    return;
  }
  std::vector<std::string>& hidden = this->Session.View.HiddenStructures;
  const std::string name = this->Session.StructureName(structure);
  // Hidden ones are remembered by name: visible is the rule, also for structures that come later.
  hidden.erase(std::remove(hidden.begin(), hidden.end(), name), hidden.end());
  if (!visible)
  {
    hidden.push_back(name);
  }
  this->outlineOthers();
  emit this->structuresChanged();
}

/// The case may have been closed while its structure was made.
void qRcnDocument::showStructure(const rcn::OpenCasePointer& open, const rcn::CaseStructure& found)
{
  static_cast<rcn::CaseStructure&>(*open) = found;
  this->Session.View.Structure = this->Session.StructureName(found.Structure);
  if (this->Open == open)
  {
    this->Scene->setHighlight(-1, -1); // voxels of a bin of the other one
    if (this->Scene->votes())
    {
      this->Scene->setVotes(rcn::VotesOf(open));
    }
    for (const rcn::CaseLayer& layer : found.Layers)
    {
      this->showLayer(layer, false);
    }
    this->outlineOthers();
    // What was found in other cases was about the other one.
    for (const rcn::Case& one : this->Session.Cases)
    {
      const bool here = one.Id == open->Id && found.Agreement.Figures;
      emit this->agreementChanged(Text(one.Id), here ? found.Agreement.Figures->mean_dice : NAN);
    }
  }
  emit this->structuresChanged();
  emit this->structureShown(this->Open);
  emit this->changed();
}

/// Structures beside the one that is shown, by the model whose map is in front, otherwise by the raters.
void qRcnDocument::outlineOthers()
{
  std::vector<qRcnScene::Outline> outlines;
  const QVector<qRcnStructure> structures = this->structures();
  this->OutlinedBy = this->Scene->shownPrediction();
  const rcn::CaseLayer* front = nullptr; // with several structures
  for (size_t i = 0; this->Open && this->OutlinedBy >= 0 && i < this->Open->Layers.size(); ++i)
  {
    const rcn::CaseLayer& layer = this->Open->Layers[i];
    const bool shown = Text(layer.Name) == this->Scene->prediction(this->OutlinedBy).Name;
    front = shown && layer.Structures ? &layer : front;
  }
  for (int c = 1; this->Open && c <= structures.size(); ++c)
  {
    const qRcnStructure& one = structures[c - 1];
    if (c != this->Open->Structure && one.Visible)
    {
      qRcnScene::Outline outline;
      outline.Color = one.Color;
      if (front && front->Structures->Levels.empty())
      {
        outline.Map = front->Means;
        outline.Readout = RCN_SLICE_LEVEL; // the component of the label
        outline.ReadoutNumber = c;
      }
      else if (front)
      {
        outline.Map = front->Structures->Levels[static_cast<size_t>(c) - 1];
      }
      else
      {
        outline.Table = rcn::PluralityOf(this->Scene->context(), *this->Open, c);
      }
      if (front || !outline.Table.empty())
      {
        outlines.push_back(outline);
      }
    }
  }
  this->Scene->setOutlines(outlines);
}

// ---- results ---------------------------------------------------------------------------------------

void qRcnDocument::keepPrediction(const rcn::SessionPrediction& prediction, const std::shared_ptr<const rcn::CaseLayer>& layer)
{
  this->Session.SetPrediction(prediction);
  this->Unsaved = true;
  if (layer && this->Open && this->Open->Id == prediction.Case)
  {
    this->showLayer(*layer, false);
  }
  emit this->statusChanged(Text(prediction.Case), qRcnCases::Predicted, {});
  emit this->changed();
}

void qRcnDocument::showLayer(const rcn::CaseLayer& layer, bool inFront)
{
  std::vector<std::string>& fusions = this->Session.Fusions;
  if (layer.IsFusion && std::find(fusions.begin(), fusions.end(), layer.Name) == fusions.end())
  {
    // Fusions are not kept as maps: another case, or a session that is opened again, makes them anew.
    fusions.push_back(layer.Name);
  }
  try
  {
    const int number = this->Scene->addPrediction(Text(layer.Name), layer.Levels, layer.Probability);
    std::vector<rcn::CaseLayer>& layers = this->Open->Layers;
    const auto known =
      std::find_if(layers.begin(), layers.end(), [&](const rcn::CaseLayer& one) { return one.Name == layer.Name; });
    known == layers.end() ? layers.push_back(layer) : void(*known = layer);
    if (!layer.IsFusion)
    {
      this->Scene->setPredictionVolumes(number, layer.Volumes);
    }
    if (inFront)
    {
      this->Scene->setShownPrediction(number);
    }
  }
  catch (const rcn::Error& error)
  {
    this->Jobs->complain(Text(rcn::ViewerSentenceOf(error)));
  }
}

bool qRcnDocument::showOverlay(const QString& name)
{
  for (int p = 0; p < this->Scene->predictionCount(); ++p)
  {
    if (this->Scene->prediction(p).Name == name)
    {
      this->Scene->setShownPrediction(p);
      return true;
    }
  }
  return false;
}

void qRcnDocument::setJudged(const rcn::EvaluationChoice& choice, const std::shared_ptr<const rcn::Judged>& judged)
{
  this->Session.Evaluation = choice;
  this->Judged = judged;
  emit this->changed();
}

QString qRcnDocument::addModel(const std::string& path)
{
  // A copy: entries of the same file go. It has been trained or changed again, and predictions of the old weights must not be
  // taken for its own.
  const std::vector<rcn::SessionModel> models = this->Session.Models;
  for (const rcn::SessionModel& old : models)
  {
    if (old.Path == path)
    {
      this->Session.RemoveModel(old.Name);
    }
  }
  const std::string name = this->Session.AddModel(path);
  this->Unsaved = true;
  emit this->changed();
  return Text(name);
}

void qRcnDocument::useModel(const QString& name)
{
  if (this->Session.FindModel(name.toStdString()))
  {
    this->Session.Model = name.toStdString();
    emit this->changed();
  }
}

// ---- saving ----------------------------------------------------------------------------------------

void qRcnDocument::saveWorkspace(const QString& path)
{
  const rcn::Session session = this->session();
  // Saving elsewhere moves the folder that the training writes into.
  if (this->Jobs->training()->isRunning() && path != Text(session.Path))
  {
    this->Jobs->remark(tr("Training writes into the workspace's folder. Save it elsewhere when training has ended."));
    return;
  }
  if (this->Trained)
  {
    this->Jobs->remark(tr("Keep or discard the trained model first."));
    emit this->panelWanted("training");
    return;
  }
  const QString temporary =
    this->isUnsavedPlace(Text(session.Folder)) ? QFileInfo(Text(session.Folder)).absolutePath() : QString();
  this->Jobs->begin(tr("Saving"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::Session saved = rcn::SaveSession(session, path.toStdString(), qRcnJobs::progressOf(monitor));
    if (!temporary.isEmpty() && saved.Folder != session.Folder)
    {
      QDir(temporary).removeRecursively(); // everything has been copied
    }
    return [=] {
      this->Session = saved;
      this->Unsaved = false;
      emit this->changed();
      emit this->opened({ Text(saved.Path) });
      this->Jobs->remark(tr("Saved as %1.").arg(Text(saved.Path)));
    };
  });
}

QString qRcnDocument::newUnsavedFolder() const
{
  // By time, so that the newest sorts last, and by process, because two windows may start in one millisecond.
  const QString stamp = QDateTime::currentDateTime().toString("yyyyMMdd-hhmmss-zzz");
  return QString("%1/%2-%3/workspace.rcn").arg(this->UnsavedFolder, stamp).arg(QCoreApplication::applicationPid());
}

bool qRcnDocument::isUnsavedPlace(const QString& path) const
{
  // With the slash: ".../unsaved-old" is another folder.
  return QFileInfo(path).absoluteFilePath().startsWith(QFileInfo(this->UnsavedFolder).absoluteFilePath() + "/");
}

bool qRcnDocument::keepUnsaved()
{
  if (!this->isForUnsavedFolder())
  {
    return true;
  }
  rcn::Session session = this->session();
  std::vector<rcn::SessionPrediction>& all = session.Predictions;
  const auto inMemory =
    std::remove_if(all.begin(), all.end(), [](const rcn::SessionPrediction& one) { return one.Probability.empty(); });
  // Predictions in memory have to be written first, which is work of its own. A person who was told that it failed and closes
  // again loses them.
  if (inMemory != all.end() && !this->CannotKeep)
  {
    this->Jobs->allowWork();
    return !this->Jobs->begin(
      tr("Keeping unsaved results"), [=, open = this->Session](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
        try
        {
          const rcn::Session written = rcn::WritePredictions(open, qRcnJobs::progressOf(monitor));
          return [=] { this->Session.Predictions = written.Predictions; };
        }
        catch (const rcn::Error& error)
        {
          const QString sentence = Text(rcn::ViewerSentenceOf(error));
          return [=] {
            this->CannotKeep = true;
            emit this->cannotKeep(sentence);
          };
        }
      });
  }
  all.erase(inMemory, all.end());
  if (QDir(Text(session.Folder)).exists())
  {
    try
    {
      rcn::SaveSession(session, session.Folder + ".json");
    }
    catch (const rcn::Error& error)
    {
      this->Jobs->complain(Text(rcn::ViewerSentenceOf(error)));
    }
  }
  return true;
}

void qRcnDocument::reopenUnsaved()
{
  const QDir unsaved(this->UnsavedFolder);
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
  this->Jobs->remark(tr("There is no unsaved work."));
}
