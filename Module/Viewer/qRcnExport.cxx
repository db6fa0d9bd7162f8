// SPDX-License-Identifier: Apache-2.0
#include "qRcnExport.h"

#include <cmath>

#include "qRcnDocument.h"
#include "qRcnJobs.h"
#include "qRcnStyle.h"
#include "qRcnText.h"
#include "rcnFigure.h"
#include "rcnJson.h"
#include "rcnNames.h"
#include "rcnReport.h"
#include "rcnSlide.h"

using qRcnText::Text;
using qRcnText::Texts;

// Every export has the same shape: what is missing is a remark and ends it; what is needed is copied out of the document, here
// on the GUI thread; the file is written on the worker's thread from those copies alone, so that a person may go on working.
qRcnExport::qRcnExport(qRcnDocument* document, qRcnJobs* jobs, QObject* parent)
  : QObject(parent), Document(document), Jobs(jobs)
{
}

void qRcnExport::write(const QString& path, const std::function<std::string(const rcn::SessionProgress&)>& write)
{
  const rcn::Session session = this->Document->stored();
  this->Jobs->begin(tr("Exporting"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    // Before a byte is written: a file that the session reads must not be replaced by what was made of it.
    rcn::CheckExport(session, path.toStdString());
    const QString remark = Text(write(qRcnJobs::progressOf(monitor)));
    return [=] { this->Jobs->remark(tr("Saved as %1. %2").arg(path, remark).trimmed()); };
  });
}

// The picture has been taken by the window already: widgets can be painted on the GUI thread only.
void qRcnExport::picture(const QImage& picture, const QString& path)
{
  this->write(path, [=](const rcn::SessionProgress&) {
    if (!picture.save(path))
    {
      throw rcn::Error(
        RCN_EIO, tr("%1 cannot be written. Choose another folder, and a name that ends in .png.").arg(path).toStdString());
    }
    return "";
  });
}

// The slice as the person sees it, but drawn anew: at the size of a slide, with a legend in place of the panels around it.
void qRcnExport::slide(const QString& path, const rcn_slice& slice, bool anonymous)
{
  const rcn::OpenCasePointer open = this->Document->shownCase();
  const qRcnScene* scene = this->Document->scene();
  const int shown = scene->shownPrediction();
  if (!open || (shown < 0 && !this->Document->hasRaters()))
  {
    this->Jobs->remark(tr("Open a case with raters' masks, or show a model's prediction first."));
    return;
  }
  // A volume shares its voxels: the copy keeps them alive while the slide is drawn, even if the scene lets them go.
  const rcn::Volume map = shown < 0 ? rcn::Volume() : scene->prediction(shown).volume();
  // "Exactly so many" is no readout of a model: the expected share says most.
  const bool plain = scene->readout() != RCN_SLICE_LEVEL;
  const rcn_readout readout = plain ? static_cast<rcn_readout>(scene->readout()) : RCN_READOUT_EXPECTED;
  const int atLeast = scene->readoutNumber();
  const std::string structure = this->Document->stored().StructureName(this->Document->structure());
  // A number under the picture only where it can be repeated: the readout, the threshold and the volume belong together.
  std::vector<std::string> words;
  if (shown >= 0 && std::isfinite(scene->volumeAboveThreshold()) && plain)
  {
    words.push_back(tr("%1: %2 at or above %3 (%4)")
        .arg(anonymous ? tr("Prediction") : scene->prediction(shown).Name,
          qRcnStyle::extent(scene->volumeAboveThreshold(), scene->extentUnit()), qRcnStyle::percent(scene->threshold()),
          Text(rcn::ReadoutLabel(readout, atLeast)))
        .toStdString());
  }
  this->write(path, [=](const rcn::SessionProgress&) {
    rcn::SliceSubject subject =
      open->Work.Votes() ? rcn::SliceSubject(open->Work) : rcn::SliceSubject(open->Work.Context(), open->Images.front());
    subject.Image = open->Images.empty() ? nullptr : &open->Images.front();
    rcn::SlideOptions options(subject);
    options.Prediction = map.Data() ? &map : nullptr;
    options.Readout = readout;
    options.AtLeast = atLeast;
    options.Slice = slice;
    options.Title = anonymous ? structure : structure.empty() ? open->Id : open->Id + ", " + structure;
    std::vector<std::string> raters;
    for (size_t r = 0; subject.Raters && r < subject.Raters->size(); ++r)
    {
      raters.push_back(anonymous ? tr("Rater %1").arg(r + 1).toStdString() : (*subject.Raters)[r]);
    }
    options.Subject.Raters = subject.Raters ? &raters : nullptr;
    options.Words = words;
    rcn::SlideFigure(options).Save(path.toStdString(), 1);
    return "";
  });
}

void qRcnExport::agreement(const QString& csv, const QString& path)
{
  if (csv.isEmpty())
  {
    this->Jobs->remark(tr("Open a case with raters' masks first."));
    return;
  }
  this->write(path, [=](const rcn::SessionProgress&) {
    rcn::WriteText(path.toStdString(), csv.toStdString());
    return "";
  });
}

void qRcnExport::reliability(const QString& path)
{
  const std::shared_ptr<const rcn::Judged> judged = this->Document->judged();
  const int structure = this->Document->structure();
  const std::string name = this->Document->stored().StructureName(structure);
  const std::string title = this->Document->stored().Evaluation.Model + (name.empty() ? "" : ", " + name);
  if (!judged)
  {
    this->Jobs->remark(tr("Evaluate a model first."));
    return;
  }
  this->write(path, [=](const rcn::SessionProgress&) {
    // The ending that was chosen decides: bins as a table, or the figure.
    if (!path.endsWith(".csv"))
    {
      rcn::ReliabilityDiagram(judged->Of(structure), title, judged->HasBefore ? &judged->BeforeOf(structure) : nullptr)
        .Save(path.toStdString());
      return "";
    }
    std::string text = rcn::CsvRow({ "lower", "upper", "votes", "model_says", "raters_say" });
    for (const rcn_calib_bin& bin : judged->Of(structure).Bins)
    {
      text += rcn::CsvRow({ rcn::CsvNumber(bin.lower), rcn::CsvNumber(bin.upper), std::to_string(bin.count),
        rcn::CsvNumber(bin.confidence), rcn::CsvNumber(bin.frequency) });
    }
    rcn::WriteText(path.toStdString(), text);
    return "";
  });
}

void qRcnExport::overlay(const QString& path)
{
  const qRcnScene* scene = this->Document->scene();
  if (scene->shownPrediction() < 0)
  {
    this->Jobs->remark(tr("Choose an overlay first: a fusion or a model's prediction."));
    return;
  }
  const qRcnScene::Prediction shown = scene->prediction(scene->shownPrediction());
  this->write(path, [=](const rcn::SessionProgress&) {
    // The probability where there is one, because other programs read it without knowing of levels.
    const rcn::Volume& map = shown.Probability.Data() ? shown.Probability : shown.Levels;
    return rcn::WriteImage(path.toStdString(), map.View(), rcn::Content::Probability, { {}, map.Note() });
  });
}

// A copy of the file, byte for byte: its hash, which predictions name, stays the same.
void qRcnExport::model(const QString& path)
{
  const rcn::SessionModel* model = this->Document->stored().FindModel(this->Document->stored().Model);
  if (!model)
  {
    this->Jobs->remark(tr("Train a model or open one first."));
    return;
  }
  this->write(path, [=, from = model->Path](const rcn::SessionProgress&) {
    rcn::CopyFile(from, path.toStdString());
    return "";
  });
}

void qRcnExport::report(const QString& path, bool anonymous)
{
  const rcn::Session session = this->Document->stored();
  const std::shared_ptr<const rcn::Judged> judged = this->Document->judged();
  // What was evaluated last, so that the report shows the same cases as the window; before that, all that have raters.
  const std::vector<std::string> ids = judged ? judged->Cases : rcn::CasesOf(session, "", true);
  // A case without raters cannot be compared with anybody: it has a page of its own, of what the model says.
  const bool image = this->Document->shownCase() && !this->Document->hasRaters();
  if (image ? session.Model.empty() : ids.empty())
  {
    this->Jobs->remark(image ? tr("Train a model or open one first.") : tr("Open a case with raters' masks first."));
    return;
  }
  this->write(path, [=](const rcn::SessionProgress& progress) {
    std::vector<std::string> remarks;
    if (image)
    {
      rcn::ReportOnImage(session, session.Current, path.toStdString(), progress, &remarks, anonymous);
    }
    else
    {
      rcn::ReportOn(session, ids, path.toStdString(), progress, &remarks, anonymous);
    }
    return Texts(remarks).join(" ").toStdString();
  });
}
