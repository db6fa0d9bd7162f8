// SPDX-License-Identifier: Apache-2.0
/// What a person can have done with what is open: compare raters, fuse, train, predict, evaluate, recalibrate. Each is one call
/// of rcnActions.h in a job; its result goes into the document, and a signal says that it is there.
#ifndef qRcnTasks_h
#define qRcnTasks_h

#include <memory>

#include <QObject>

#include "qRcnJob.h"
#include "rcnActions.h"
#include "rcnTraining.h"

class qRcnDocument;
class qRcnJobs;

class qRcnTasks : public QObject
{
  Q_OBJECT
public:
  qRcnTasks(qRcnDocument* document, qRcnJobs* jobs, QObject* parent = nullptr);

  /// Judges again when the diagram's region or bins are changed; nothing before the first evaluation.
  void judgeAgain(const std::string& region, int bins);
  /// The voxels of a bin of what was judged light up: the same model, the same readout. Negative: none.
  void highlight(double lower, double upper);

public slots:
  /// Surface distances of this case, and how far raters agree in all others.
  void compareRaters();
  /// How far raters agree over all cases.
  void compareAllCases();
  void fuse(const QString& method);
  /// `from`: name of the model to go on from; empty: a new one.
  void train(rcn::TrainingOptions options, const QString& from);
  void keepModel();
  void discardModel();
  /// The case that is open, or all that have an image.
  void predict(bool all);
  /// Predicts where there is no prediction yet, and judges.
  void evaluate(const rcn::EvaluationChoice& choice);
  /// Stores what was found about the model on test cases in its file.
  void storeJudged();
  /// Fits a correction on the validation cases; where it helps, a copy of the model with it is the model in use.
  void recalibrate(rcn_recalib_method method, const rcn::EvaluationChoice& how);

signals:
  void raterDistancesReady(const rcn::AgreementReport& report);
  /// Null: it failed, or was stopped.
  void allCasesCompared(const std::shared_ptr<const rcn::AgreementOfCases>& agreement);
  void judged(const rcn::Judged& judged, const QString& model);
  /// The record of a model is another one now.
  void recordStored();
  void trainingStarted(const QString& what);
  void trainingProgressed(const rcn::TrainingProgress& progress);
  void epochDone(const rcn::TrainingEpoch& epoch);
  void trained(const rcn::TrainingResult& result);
  void trainingFailed(const QString& sentence);
  /// The person has decided about the trained model.
  void trainingClosed();

private:
  void judge(const rcn::EvaluationChoice& choice, bool predictFirst);
  qRcnJob::Done runTraining(rcn::TrainingOptions options, qRcnJob::Monitor& monitor);
  void predictCases(rcn::Session& session, const std::string& model, const std::vector<std::string>& ids,
    qRcnJob::Monitor& monitor, std::vector<std::string>* remarks = nullptr);
  void showRecalibrated(const rcn::Recalibrated& result, const std::string& model, const rcn::EvaluationChoice& how);

  qRcnDocument* Document;
  qRcnJobs* Jobs;
};

#endif
