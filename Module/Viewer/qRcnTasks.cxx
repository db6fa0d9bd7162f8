// SPDX-License-Identifier: Apache-2.0
#include "qRcnTasks.h"

#include <QElapsedTimer>
#include <QFileInfo>
#include <QTimer>

#include "qRcnDocument.h"
#include "qRcnJobs.h"
#include "qRcnStyle.h"
#include "qRcnText.h"
#include "rcnJson.h"
#include "rcnViewerWayOut.h"

using qRcnText::Text;
using qRcnText::Texts;

namespace
{

/// Which of these cases have an image but no prediction of the model yet.
std::vector<std::string> Unpredicted(const rcn::Session& session, const std::string& model, const std::vector<std::string>& ids)
{
  std::vector<std::string> missing;
  for (const std::string& id : ids)
  {
    if (!session.FindPrediction(id, model) && !session.FindCase(id)->Images.empty())
    {
      missing.push_back(id);
    }
  }
  return missing;
}

#ifdef RCN_HAVE_NETWORKS
/// A name for a new model, under which there are no files of a training yet.
std::string FreeModelName(const rcn::Session& session, const std::string& base)
{
  std::string name = base;
  for (int number = 2;
    session.FindModel(name) || !rcn::TrainingFileInTheWay(session.File("models", name + ".safetensors")).empty(); ++number)
  {
    name = base + "-" + std::to_string(number);
  }
  return name;
}
#endif

} // namespace

qRcnTasks::qRcnTasks(qRcnDocument* document, qRcnJobs* jobs, QObject* parent) : QObject(parent), Document(document), Jobs(jobs)
{
  connect(document, &qRcnDocument::replaced, this, [this] {
    if (!this->Document->stored().Evaluation.Model.empty())
    {
      // A workspace holds what was judged, not its figures. After the job that has opened it they are computed anew.
      QTimer::singleShot(0, this, [this] { this->judge(this->Document->stored().Evaluation, false); });
    }
  });
}

// ---- raters ----------------------------------------------------------------------------------------

void qRcnTasks::compareRaters()
{
  const rcn::OpenCasePointer open = this->Document->shownCase();
  if (!this->Document->hasRaters())
  {
    this->Jobs->remark(tr("Open a case with raters' masks first."));
    return;
  }
  emit this->Document->panelWanted("agreement");
  const rcn::Session session = this->Document->stored();
  this->Jobs->begin(tr("Comparing raters"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::AgreementReport report = rcn::CompareCase(*open, qRcnJobs::progressOf(monitor));
    monitor.throwIfCanceled();
    monitor.post([=] {
      if (this->Document->shownCase() == open)
      {
        open->Agreement = report;
        emit this->raterDistancesReady(report);
      }
    });
    rcn::CompareOtherCases(
      session, open->Id, qRcnJobs::progressOf(monitor), [&](const std::string& id, double dice, const std::string& problem) {
        monitor.post([=] {
          problem.empty() ? emit this->Document->agreementChanged(Text(id), dice)
                          : emit this->Document->statusChanged(Text(id), qRcnCases::Problem, Text(problem));
        });
      });
    return {};
  });
}

void qRcnTasks::compareAllCases()
{
  const rcn::Session session = this->Document->stored();
  const bool begun =
    this->Jobs->begin(tr("Comparing the raters of all cases"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
      try
      {
        const auto agreement =
          rcn::CompareAllCases(session, qRcnJobs::progressOf(monitor), [&](const std::string& id, const std::string& problem) {
            monitor.post([=] { emit this->Document->statusChanged(Text(id), qRcnCases::Problem, Text(problem)); });
          });
        return [=] {
          const bool same = this->Document->stored().Cases.size() == session.Cases.size(); // others may have been opened since
          emit this->allCasesCompared(same ? agreement : nullptr);
        };
      }
      catch (const rcn::Error&)
      {
        monitor.post([=] { emit this->allCasesCompared(nullptr); });
        throw;
      }
    });
  if (!begun)
  {
    emit this->allCasesCompared(nullptr);
  }
}

void qRcnTasks::fuse(const QString& method)
{
  const rcn::OpenCasePointer open = this->Document->shownCase();
  if (!open)
  {
    this->Jobs->remark(tr("Open a case with raters' masks first."));
    return;
  }
  this->Jobs->begin(tr("Fusing"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const rcn::CaseLayer layer = rcn::FuseCase(*open, method.toStdString(), qRcnJobs::progressOf(monitor));
    return [=] {
      if (this->Document->shownCase() == open)
      {
        this->Document->showLayer(layer, true);
        this->Document->scene()->setHeatMapVisible(false); // one color scale at a time
        emit this->Document->panelWanted("consensus");
      }
    };
  });
}

// ---- training --------------------------------------------------------------------------------------

void qRcnTasks::train(rcn::TrainingOptions options, const QString& start)
{
#ifdef RCN_HAVE_NETWORKS
  emit this->Document->panelWanted("training");
  if (this->Jobs->training()->isRunning())
  {
    return;
  }
  const rcn::Session& session = this->Document->stored();
  const rcn::SessionModel* from = session.FindModel(start.toStdString());
  options.List = session.Data();
  options.Init = from ? from->Path : options.Init;
  const std::string name = FreeModelName(session, from ? from->Name + "-retrained" : options.Strategy);
  options.Output = session.File("models", name + ".safetensors");
  this->Document->setTrained(nullptr);
  const QString cases = qRcnStyle::counted(static_cast<int64_t>(options.List.Cases.size()), "case");
  emit this->trainingStarted(from ? tr("Retraining %1 on %2").arg(Text(from->Name), cases) : tr("Training on %1").arg(cases));
  this->Jobs->training()->start(
    tr("Training"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done { return this->runTraining(options, monitor); });
#else
  (void)options;
  (void)start;
#endif
}

/// On the worker's thread. How it ends, well or not, is shown where the training is.
qRcnJob::Done qRcnTasks::runTraining(rcn::TrainingOptions options, qRcnJob::Monitor& monitor)
{
#ifdef RCN_HAVE_NETWORKS
  QElapsedTimer since;
  options.Progress = [&](const rcn::TrainingProgress& progress) {
    // Steps may take microseconds; a person sees no more than twenty pictures a second.
    if (!since.isValid() || since.elapsed() > 50)
    {
      since.start();
      const std::string stage = progress.Stage; // valid during this call only
      monitor.post([=] {
        rcn::TrainingProgress now = progress;
        now.Stage = stage.c_str();
        emit this->trainingProgressed(now);
      });
    }
    return monitor.isStopped();
  };
  options.EpochDone = [&](const rcn::TrainingEpoch& epoch) { monitor.post([=] { emit this->epochDone(epoch); }); };
  options.Remark = [&](const std::string& sentence) { monitor.post([=] { this->Jobs->remark(Text(sentence)); }); };
  try
  {
    rcn::MakeFolder(QFileInfo(Text(options.Output)).absolutePath().toStdString());
    const auto result = std::make_shared<const rcn::TrainingResult>(rcn::TrainModel(options));
    if (result->Interrupted && !QFileInfo::exists(Text(result->Model)))
    {
      rcn::RemoveTraining(result->Model);
      throw rcn::Error(RCN_ECANCELLED, "");
    }
    return [=] {
      this->Document->setTrained(result);
      emit this->trained(*result);
    };
  }
  catch (const rcn::Error& error)
  {
    const QString sentence = error.Status() == RCN_ECANCELLED ? tr("Training was canceled before there was a model.")
                                                              : Text(rcn::ViewerSentenceOf(error));
    return [=] { emit this->trainingFailed(sentence); };
  }
#else
  (void)options;
  (void)monitor;
  return {};
#endif
}

void qRcnTasks::keepModel()
{
  if (this->Document->trained())
  {
    const QString name = this->Document->addModel(this->Document->trained()->Model);
    this->Document->setTrained(nullptr);
    emit this->trainingClosed();
    this->Jobs->remark(tr("%1 is now the model in use. Press Predict to see its predictions.").arg(name));
  }
}

void qRcnTasks::discardModel()
{
  if (this->Document->trained())
  {
#ifdef RCN_HAVE_NETWORKS
    rcn::RemoveTraining(this->Document->trained()->Model);
#endif
    this->Document->setTrained(nullptr);
    emit this->trainingClosed();
  }
}

// ---- predicting ------------------------------------------------------------------------------------

/// On the worker's thread. `session` and the document learn of each prediction as soon as it is there, because a person may
/// cancel after any of them.
void qRcnTasks::predictCases(rcn::Session& session, const std::string& model, const std::vector<std::string>& ids,
  qRcnJob::Monitor& monitor, std::vector<std::string>* remarks)
{
  if (ids.empty())
  {
    return;
  }
  const rcn::Session before = session;
  rcn::PredictCases(
    before, model, ids, qRcnJobs::progressOf(monitor),
    [&](const rcn::SessionPrediction& prediction) {
      session.SetPrediction(prediction);
      // Made here, not on the GUI thread: levels of one of several structures take a moment.
      const bool shown = prediction.Maps && prediction.Case == before.Current;
      const auto layer =
        shown ? std::make_shared<const rcn::CaseLayer>(rcn::LoadLayer(before, prediction, before.ShownStructure())) : nullptr;
      monitor.post([=] { this->Document->keepPrediction(prediction, layer); });
    },
    remarks);
}

void qRcnTasks::predict(bool all)
{
  const rcn::Session session = this->Document->stored();
  std::vector<std::string> ids;
  for (const rcn::Case& one : session.Cases)
  {
    if (all ? !one.Images.empty() : one.Id == session.Current)
    {
      ids.push_back(one.Id);
    }
  }
  this->Jobs->begin(tr("Predicting"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    rcn::Session predicted = session;
    std::vector<std::string> remarks;
    this->predictCases(predicted, session.Model, ids, monitor, &remarks);
    return [=] {
      if (this->Document->showOverlay(Text(session.Model)))
      {
        this->Document->scene()->setHeatMapVisible(false);
        emit this->Document->panelWanted("consensus");
      }
      this->Jobs->remark(Texts(remarks).join(" "));
    };
  });
}

// ---- evaluating ------------------------------------------------------------------------------------

void qRcnTasks::evaluate(const rcn::EvaluationChoice& choice)
{
  emit this->Document->panelWanted("calibration");
  const std::string missing = rcn::CheckEvaluation(this->Document->stored(), choice);
  if (missing.empty())
  {
    this->judge(choice, true);
  }
  else
  {
    this->Jobs->complain(Text(missing));
  }
}

void qRcnTasks::judgeAgain(const std::string& region, int bins)
{
  if (this->Document->judged())
  {
    rcn::EvaluationChoice choice = this->Document->stored().Evaluation;
    choice.Region = region;
    choice.Bins = bins;
    this->judge(choice, false);
  }
}

void qRcnTasks::judge(const rcn::EvaluationChoice& choice, bool predictFirst)
{
  rcn::Session session = this->Document->stored();
  this->Jobs->begin(tr("Evaluating"), [=](qRcnJob::Monitor& monitor) mutable -> qRcnJob::Done {
    if (predictFirst)
    {
      const std::vector<std::string> ids = rcn::CasesOf(session, choice.Split, true);
      this->predictCases(session, choice.Model, Unpredicted(session, choice.Model, ids), monitor);
    }
    const auto judged = std::make_shared<const rcn::Judged>(rcn::Judge(session, choice, qRcnJobs::progressOf(monitor)));
    return [=] {
      this->Document->setJudged(choice, judged);
      emit this->judged(*judged, Text(choice.Model));
      this->Jobs->remark(Texts(judged->Remarks).join(" "));
    };
  });
}

void qRcnTasks::storeJudged()
{
  const rcn::Session session = this->Document->stored();
  const auto judged = this->Document->judged();
  if (!judged)
  {
    return;
  }
  this->Jobs->begin(tr("Storing"), [=](qRcnJob::Monitor&) -> qRcnJob::Done {
    const std::string words = rcn::StoreJudged(session, session.Evaluation, *judged);
    return [=] {
      emit this->recordStored();
      this->Jobs->remark(tr("Stored in %1: %2.").arg(Text(session.Evaluation.Model), Text(words)));
    };
  });
}

void qRcnTasks::recalibrate(rcn_recalib_method method, const rcn::EvaluationChoice& how)
{
  emit this->Document->panelWanted("calibration");
  rcn::Session session = this->Document->stored();
  const std::string model = session.Model;
  if (model.empty())
  {
    this->Jobs->complain(Text(rcn::CheckEvaluation(session, {})));
    return;
  }
  this->Jobs->begin(tr("Recalibrating"), [=](qRcnJob::Monitor& monitor) mutable -> qRcnJob::Done {
    const std::vector<std::string> ids = rcn::CasesOf(session, "validation", true);
    if (ids.empty())
    {
      throw rcn::Error(RCN_EDATA,
        tr("A correction is fitted on validation cases with raters' masks, and there are none; name some in the data list.")
          .toStdString());
    }
    rcn::CheckRecalibration(session, model); // before anybody waits for predictions
    this->predictCases(session, model, Unpredicted(session, model, ids), monitor);
    const auto result = std::make_shared<const rcn::Recalibrated>(
      rcn::RecalibrateModel(session, model, "validation", method, how, qRcnJobs::progressOf(monitor)));
    return [=] { this->showRecalibrated(*result, model, how); };
  });
}

void qRcnTasks::showRecalibrated(const rcn::Recalibrated& result, const std::string& model, const rcn::EvaluationChoice& how)
{
  emit this->judged(result.OnFittedCases, Text(model));
  if (result.Model.empty())
  {
    this->Jobs->remark(tr("%1 was not changed: %2").arg(Text(model), Text(result.Sentence)));
    return;
  }
  const QString corrected = this->Document->addModel(result.Model);
  rcn::EvaluationChoice choice = how;
  choice.Model = model;
  choice.Split = "validation";
  choice.Correction = result.Correction.Path;
  this->Document->setJudged(choice, std::make_shared<const rcn::Judged>(result.OnFittedCases));
  this->Jobs->remark(tr("%1 contains the correction and is now the model in use; evaluate it on test cases. %2")
      .arg(corrected, Text(result.Sentence)));
}

void qRcnTasks::highlight(double lower, double upper)
{
  qRcnScene* scene = this->Document->scene();
  if (lower >= 0 && this->Document->judged())
  {
    const QString model = Text(this->Document->stored().Evaluation.Model);
    if (!this->Document->showOverlay(model))
    {
      this->Jobs->remark(tr("This case has no prediction of %1 yet. Press Predict to see the voxels of this bin.").arg(model));
    }
    else
    {
      rcn_readout readout = RCN_READOUT_MAJORITY;
      int atLeast = 0;
      if (rcn::ParseReadout(readout, atLeast, this->Document->judged()->Readout))
      {
        scene->setReadout(readout, atLeast);
      }
    }
  }
  scene->setHighlight(lower, upper);
}
