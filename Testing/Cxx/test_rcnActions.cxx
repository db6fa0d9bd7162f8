// SPDX-License-Identifier: Apache-2.0
/// What a person can ask of the viewer, asked without a window.
#include "rcnActions.h"

#include "rcnStructureData.h"
#include "rcnTest.h"
#include "rcnViewerWayOut.h"
#ifdef RCN_HAVE_NETWORKS
#include "rcnTraining.h"
#endif

namespace
{

namespace fs = std::filesystem;

rcn::Session Base(const Folder& folder)
{
  rcn::Session session;
  session.Folder = folder / "work.rcn";
  return session;
}

void OpensAListAndAFolder()
{
  const Folder folder;
  const std::string list = WritePhantomList(folder);
  const rcn::Session session = rcn::OpenFiles(Base(folder), { list });
  CHECK(session.Cases.size() == 7 && session.Current == "c0" && session.Raters.size() == 3 && session.Folder.empty());
  CHECK(rcn::CasesOf(session, "validation", true) == (std::vector<std::string>{ "c5", "c6" }));
  fs::rename(list, folder / "dataset.json");
  CHECK(rcn::OpenFiles(Base(folder), { folder / "" }).Cases.size() == 7);
  CHECK_THROWS(rcn::OpenFiles(session, { folder / "dataset.json", folder / "c0.nrrd" }), RCN_EINVALID, "alone");
}

void MasksFindTheirImage()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  fs::rename(folder / "c0A.nrrd", folder / "c0_Ada.nrrd");
  fs::rename(folder / "c1A.nrrd", folder / "c1_Ada.nrrd");
  // By name, whatever the order.
  rcn::Session session =
    rcn::OpenFiles(Base(folder), { folder / "c1_Ada.nrrd", folder / "c0.nrrd", folder / "c0_Ada.nrrd", folder / "c1.nrrd" });
  CHECK(session.Cases.size() == 2 && session.Raters == std::vector<std::string>{ "Ada" } && session.Current == "c0");
  CHECK(session.Cases[0].Raters.size() == 1 && session.Cases[0].Raters[0].Path == folder / "c0_Ada.nrrd");
  CHECK(session.Cases[1].Id == "c1" && session.Cases[1].Raters.size() == 1);
  // Another one on the open case, and as the answer to the only image.
  session = rcn::OpenFiles(session, { folder / "c2B.nrrd" });
  CHECK(session.Cases[0].Raters.size() == 2 && session.Cases[0].Raters[1].Name == "c2B" && session.Raters.size() == 2);
  CHECK_THROWS(rcn::OpenFiles(session, { folder / "c2B.nrrd" }), RCN_EINVALID, "already");
  session = rcn::OpenFiles(Base(folder), { folder / "c3.nrrd", folder / "c4B.nrrd", folder / "c4C.nrrd" });
  CHECK(session.Cases.size() == 1 && session.Cases[0].Raters.size() == 2);
  // Of which image?
  CHECK_THROWS(rcn::OpenFiles(Base(folder), { folder / "c3.nrrd", folder / "c4.nrrd", folder / "c5B.nrrd" }), RCN_EINVALID,
    "a mask of an unknown image");
  // Nothing but masks.
  session = rcn::OpenFiles(Base(folder), { folder / "c5A.nrrd", folder / "c5B.nrrd" });
  CHECK(session.Cases.size() == 1 && session.Cases[0].Images.empty() && session.Cases[0].Raters.size() == 2);
  CHECK(rcn::LoadCase(session, session.Current)->Work.Votes() != nullptr);
}

void BadFilesChangeNothing()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  const rcn::Session session = rcn::OpenFiles(Base(folder), { folder / "c0.nrrd", folder / "c0A.nrrd" });
  rcn::WriteText(folder / "notes.txt", "no image");
  rcn::WriteText(folder / "bad.json", "{");
  rcn::MakeFolder(folder / "empty");
  CHECK_THROWS(rcn::OpenFiles(session, { folder / "notes.txt" }), RCN_EFORMAT, "notes.txt");
  CHECK_THROWS(rcn::OpenFiles(session, { folder / "bad.json" }), RCN_EFORMAT, "bad.json");
  CHECK_THROWS(rcn::OpenFiles(session, { folder / "nowhere.nrrd" }), RCN_EIO, "nowhere.nrrd");
  CHECK_THROWS(rcn::OpenFiles(session, { folder / "empty" }), RCN_EFORMAT, "empty");
  const Folder other;
  PhantomSet small;
  small.Size[0] = 20;
  WritePhantoms(other, small);
  const rcn::Session mixed = rcn::OpenFiles(session, { other / "c1B.nrrd" });
  CHECK_THROWS(rcn::LoadCase(mixed, "c0"), RCN_EGEOMETRY, "another size");
}

void LoadsFusesAndStops()
{
  const Folder folder;
  rcn::Session session = rcn::OpenFiles(Base(folder), { WritePhantomList(folder) });
  session.Fusions = { "staple", "orc" };
  const rcn::OpenCasePointer open = rcn::LoadCase(session, "c1");
  CHECK(open->Id == "c1" && open->Images.size() == 1 && open->Work.Votes() && open->Agreement.Figures);
  CHECK(open->Layers.size() == 2 && open->Layers[0].Name == "staple" && open->Layers[0].IsFusion);
  const float* share = static_cast<const float*>(open->Layers[1].Probability.Data());
  CHECK(*std::max_element(share, share + 32 * 32) <= 1.0f);
  CHECK_THROWS(rcn::FuseCase(*open, "mean"), RCN_EINVALID, "mean");
  CHECK_THROWS(rcn::LoadCase(session, "c99"), RCN_EINVALID, "c99");
  int calls = 0;
  rcn::LoadCase(session, "c1", [&](double, const char*) { return ++calls < 0; });
  CHECK(calls > 3);
  for (int stop = 1; stop <= calls; ++stop)
  {
    int at = 0;
    CHECK_THROWS(rcn::LoadCase(session, "c1", [&](double, const char*) { return ++at == stop; }), RCN_ECANCELLED, "");
  }
}

/// Every case with raters counts once; one that cannot be read is told and left out; a person can stop between cases.
void ComparesAllCases()
{
  const Folder folder;
  const rcn::Session session = rcn::OpenFiles(Base(folder), { WritePhantomList(folder) });
  std::string problems;
  const auto tell = [&](const std::string& id, const std::string&) { problems += id; };
  const auto agreement = rcn::CompareAllCases(session, {}, tell);
  CHECK(agreement->All.Cases == 7 && agreement->All.Raters.size() == 3 && agreement->All.Pairs.size() == 3 && problems.empty());
  const rcn::SetFigure* dice = rcn::FigureOf(agreement->All.Figures, "mean_dice");
  double mean = 0;
  rcn::CompareOtherCases(session, "", {}, [&](const std::string&, double one, const std::string&) { mean += one / 7; });
  CHECK(dice && std::fabs(dice->Mean.value - mean) < 1e-12 && dice->Mean.units == 7);
  CHECK(agreement->Csv.find("c6") != std::string::npos && agreement->EmptySentence.empty());
  CHECK_THROWS(rcn::CompareAllCases(session, [](double, const char*) { return true; }, tell), RCN_ECANCELLED, "");
  fs::remove(session.Cases[2].Raters[0].Path);
  CHECK(rcn::CompareAllCases(session, {}, tell)->All.Cases == 6 && problems == "c2");
}

/// Each structure of a case is what it would be alone, whichever was shown before.
void ShowsOneOfSeveralStructures()
{
  const Folder folder;
  const std::string list = WriteStructureList(folder);
  rcn::Session session = rcn::OpenFiles(Base(folder), { list });
  CHECK(session.HasStructures() && session.Structures.size() == 3 && session.Cases.size() == 7);
  session.Fusions = { "soft" };
  const rcn::OpenCasePointer open = rcn::LoadCase(session, "c1");
  CHECK(open->Structure == 1 && open->Layers.size() == 1);
  std::shared_ptr<const rcn_votes> first = rcn::VotesOf(open);
  CHECK(first && rcn_votes_structures(first.get()) == 1);
  const rcn::DataList all = rcn::ReadDataList(list);
  for (const int structure : { 3, 2, 1 })
  {
    static_cast<rcn::CaseStructure&>(*open) = rcn::LoadStructure(session, *open, structure);
    rcn::Workspace alone;
    alone.LoadCase(rcn::OneStructure(all.Cases[1], structure), all.Raters);
    CHECK(open->Structure == structure && open->Agreement.Figures->mean_dice == alone.Agree(false).Figures->mean_dice);
    const std::shared_ptr<const rcn_votes> votes = rcn::VotesOf(open);
    const auto* share = static_cast<const float*>(open->Layers[0].Probability.Data());
    for (int64_t voxel = 0; voxel < 32 * 32; ++voxel)
    {
      const uint64_t marked = rcn_votes_at(alone.Votes(), voxel)->marked;
      CHECK(rcn_votes_at(votes.get(), voxel)->marked == marked);
      CHECK(std::fabs(share[voxel] - static_cast<float>(rcn_popcount(marked)) / 3) < 1e-6f);
    }
  }
  // The first is still what it was.
  session.View.Structure = "Gefäß";
  CHECK(rcn::LoadCase(session, "c1")->Structure == 3);
  // A call that is stopped leaves the workspace about what is shown.
  int calls = 0;
  rcn::LoadStructure(session, *open, 2, [&](double, const char*) { return ++calls < 0; });
  static_cast<rcn::CaseStructure&>(*open) = rcn::LoadStructure(session, *open, 1);
  for (int stop = 1; stop <= calls; ++stop)
  {
    int at = 0;
    CHECK_THROWS(rcn::LoadStructure(session, *open, 2, [&](double, const char*) { return ++at == stop; }), RCN_ECANCELLED, "");
    CHECK(open->Work.SelectedStructure() == 1);
  }
  // The other cases are compared on the structure that is shown.
  double shown = 0, other = 0;
  rcn::CompareOtherCases(session, "c1", {}, [&](const std::string&, double one, const std::string&) { shown += one; });
  session.View.Structure = "left";
  rcn::CompareOtherCases(session, "c1", {}, [&](const std::string&, double one, const std::string&) { other += one; });
  CHECK(shown > 0 && other > 0 && shown != other);
}

/// Where most raters agree on a label; a tie goes to a structure.
void PluralityOfStructures()
{
  const Folder folder;
  const rcn::OpenCasePointer open = rcn::LoadCase(rcn::OpenFiles(Base(folder), { WriteStructureList(folder) }), "c0");
  const rcn_votes* votes = open->Work.LabeledVotes();
  std::vector<uint8_t> maps[3];
  for (int r = 0; r < 3; ++r)
  {
    const rcn::Volume map = rcn::ReadMask(folder / ("c0" + std::string(1, static_cast<char>('A' + r)) + ".nrrd"));
    maps[r].assign(static_cast<const uint8_t*>(map.Data()), static_cast<const uint8_t*>(map.Data()) + 32 * 32);
  }
  const uint8_t values[4] = { 0, 1, 2, 7 };
  int inside[4] = { 0, 0, 0, 0 };
  for (int structure = 1; structure <= 3; ++structure)
  {
    const std::vector<float> table = rcn::PluralityOf(open->Work.Context(), *open, structure);
    CHECK(static_cast<int64_t>(table.size()) == rcn_votes_pattern_count(votes));
    for (size_t voxel = 0; voxel < 32 * 32; ++voxel)
    {
      const auto given = [&](int label) {
        return (maps[0][voxel] == values[label]) + (maps[1][voxel] == values[label]) + (maps[2][voxel] == values[label]);
      };
      const auto code = static_cast<size_t>(rcn_votes_at(votes, static_cast<int64_t>(voxel)) - rcn_votes_patterns(votes));
      if (given(structure) >= 2 || given(0) >= 2)
      {
        CHECK(table[code] == (given(structure) >= 2 ? 1.0f : 0.0f));
      }
      inside[structure] += table[code] > 0.5f;
    }
    CHECK(inside[structure] > 0);
  }
  const rcn::Session plain = rcn::OpenFiles(Base(folder), { WritePhantomList(folder) });
  const rcn::OpenCasePointer one = rcn::LoadCase(plain, "c0");
  CHECK(rcn::PluralityOf(one->Work.Context(), *one, 1).empty());
}

/// A label map that is dropped where there are structures is a rater's; otherwise one with several values is an image, as
/// always, and where it is given as a mask, any of them is a mark.
void DroppedLabelMaps()
{
  const Folder folder;
  rcn::Session session = rcn::OpenFiles(Base(folder), { WriteStructureList(folder) });
  session = rcn::OpenFiles(session, { folder / "c6B.nrrd" });
  const rcn::OpenCasePointer more = rcn::LoadCase(session, session.Current);
  CHECK(more->Work.HasStructures() && more->Work.RaterNames().size() == 4);
  CHECK(rcn::OpenFiles(session, { folder / "c6.nrrd" }).Cases.size() == 8);
  session = rcn::OpenFiles(Base(folder), { folder / "c0.nrrd", folder / "c0A.nrrd" });
  CHECK(session.Cases.size() == 2 && session.Cases[0].Raters.empty());
  session.Cases[0].Raters = { { "A", folder / "c0A.nrrd", {}, -1 }, { "B", folder / "c0B.nrrd", {}, -1 } };
  session.Raters = { "A", "B" };
  const rcn::OpenCasePointer open = rcn::LoadCase(session, "c0");
  CHECK(!session.HasStructures() && !open->Work.HasStructures() && open->Structure == 0);
  CHECK(open->Remarks.size() == 1 && open->Remarks[0].find("Several label values count as marked") == 0);
}

#ifdef RCN_HAVE_NETWORKS
/// Room for two predictions: of four, the two oldest are in files only.
void OldestGoToFiles(rcn::Session session, const Folder& folder)
{
  session.Folder = folder / "limited.rcn";
  session.Predictions.clear();
  std::vector<std::string> told;
  const auto keep = [&](const rcn::SessionPrediction& prediction) {
    session.SetPrediction(prediction);
    told.push_back(prediction.Case + (prediction.Maps ? " in memory" : " in files"));
  };
  rcn::PredictCases(session, "first", { "c0" }, {}, keep);
  session.PredictionMemory = 2 * session.Predictions[0].Maps->Bytes();
  CHECK(session.Predictions[0].Maps->Bytes() == 32 * 32 * 5 * sizeof(float)); // four levels and the probability
  rcn::PredictCases(session, "first", { "c1", "c2", "c3" }, {}, keep);
  CHECK(told ==
    (std::vector<std::string>{ "c0 in memory", "c1 in memory", "c2 in memory", "c0 in files", "c3 in memory", "c1 in files" }));
  const rcn::SessionPrediction* oldest = session.FindPrediction("c0", "first");
  CHECK(oldest && fs::exists(oldest->Levels) && fs::exists(oldest->Probability));
  CHECK(rcn::LoadLayer(session, *oldest).Levels.ChannelCount() == 4);
  rcn::EvaluationChoice choice;
  choice.Model = "first";
  CHECK(rcn::Judge(session, choice).Report.Cases == 4);
  const rcn::Session saved = rcn::SaveSession(session, folder / "elsewhere.rcn.json");
  CHECK(rcn::Judge(rcn::ReadSession(saved.Path), choice).Report.Cases == 4);
}

void TrainsPredictsJudgesAndCorrects()
{
  const Folder folder;
  rcn::Session session = rcn::OpenFiles(Base(folder), { WritePhantomList(folder) });
  session.Folder = folder / "work.rcn";
  CHECK_THROWS(
    rcn::PredictCases(session, "", { "c0" }, {}, [](const rcn::SessionPrediction&) {}), RCN_EINVALID, "no model yet");
  rcn::TrainingOptions options;
  options.List = session.Data();
  options.Output = session.File("models", "first.safetensors");
  rcn::MakeFolder(session.Folder + "/models");
  options.Workspace.Threads = 1;
  options.Net.width = 8;
  options.Net.depth = 2;
  options.Epochs = 6;
  options.Rate = 0.01;
  options.Recalibrate = false; // that is done below
  rcn::TrainModel(options);
  session = rcn::OpenFiles(session, { options.Output });
  CHECK(session.Model == "first" && session.Cases.size() == 7);
  std::vector<std::string> told;
  const auto keep = [&](const rcn::SessionPrediction& prediction) {
    session.SetPrediction(prediction);
    told.push_back(prediction.Case);
  };
  const std::vector<std::string> ids = rcn::CasesOf(session, "validation", true);
  rcn::PredictCases(session, "first", ids, {}, keep);
  CHECK(told == ids && session.Predictions.size() == 2);
  CHECK(
    session.Predictions[0].Maps && session.Predictions[0].Probability.empty() && !fs::exists(session.Folder + "/predictions"));
  const rcn::OpenCasePointer open = rcn::LoadCase(session, "c5");
  CHECK(
    open->Layers.size() == 1 && open->Layers[0].Levels.ChannelCount() == 4 && open->Layers[0].Probability.ChannelCount() == 1);

  rcn::EvaluationChoice choice;
  choice.Model = "first";
  const rcn::Judged judged = rcn::Judge(session, choice);
  CHECK(judged.Cases == ids && judged.Report.Cases == 2 && !judged.HasBefore && judged.Report.Bins.size() == 15);
  choice.Bins = 5;
  choice.Region = "disputed";
  const rcn::Judged disputed = rcn::Judge(session, choice);
  CHECK(disputed.Report.Bins.size() == 5 && disputed.Report.Voxels < judged.Report.Voxels);
  CHECK_THROWS(rcn::StoreJudged(session, choice, disputed), RCN_EINVALID, "A model's record is about test cases");
  choice.Split = "test";
  CHECK(rcn::CheckStoring(choice).empty());
  CHECK_THROWS(rcn::Judge(session, choice), RCN_EDATA, "There are no test cases with raters' masks");
  choice.Split = "training";
  CHECK_THROWS(rcn::Judge(session, choice), RCN_EDATA, "predict first");
  CHECK_THROWS(rcn::Judge(session, choice, [](double, const char*) { return true; }), RCN_EDATA, "predict first");
  CHECK(rcn::CheckEvaluation(session, choice).empty());
  rcn::Session unanswered = session;
  for (rcn::Case& one : unanswered.Cases)
  {
    one.Raters.clear();
  }
  CHECK_THROWS(rcn::Judge(unanswered, choice), RCN_EDATA, "No case has raters' masks");
  unanswered.Cases.clear();
  CHECK_THROWS(rcn::Judge(unanswered, choice), RCN_EDATA, "There are no cases to evaluate first on");
  CHECK(rcn::CheckEvaluation(session, rcn::EvaluationChoice()).find("There is no model yet") == 0);
  choice.Split = "";
  CHECK_THROWS(rcn::Judge(session, choice, [](double, const char*) { return true; }), RCN_ECANCELLED, "");

  const rcn::Recalibrated recalibrated =
    rcn::RecalibrateModel(session, "first", "validation", RCN_RECALIB_ISOTONIC, rcn::EvaluationChoice());
  CHECK(recalibrated.OnFittedCases.HasBefore && recalibrated.OnFittedCases.Report.Cases == 2);
  CHECK(recalibrated.OnFittedCases.Report.Figures[RCN_MR_ECE] < recalibrated.OnFittedCases.Before.Figures[RCN_MR_ECE]);
  CHECK(recalibrated.Sentence.find("The correction helps") != std::string::npos && recalibrated.Correction.HasRegion &&
    recalibrated.Correction.Region.region == RCN_REGION_BOX);
  session = rcn::OpenFiles(session, { recalibrated.Model });
  CHECK(session.Model == "first-isotonic");
  told.clear();
  rcn::PredictCases(session, session.Model, { "c5" }, {}, keep);
  CHECK(session.FindPrediction("c5", "first-isotonic")->Levels.empty()); // the correction is for one readout
  rcn::EvaluationChoice corrected;
  corrected.Model = session.Model;
  const std::vector<std::string> here = rcn::Judge(session, corrected).Remarks;
  CHECK(
    here.size() == 1 && here.front().find("was fitted to these cases, where the figures are too good") != std::string::npos);
  corrected.Region = "whole";
  const std::vector<std::string> elsewhere = rcn::Judge(session, corrected).Remarks;
  CHECK(elsewhere.size() == 2 && elsewhere.front().find("fitted on the region box") != std::string::npos);
  corrected.Readout = "at-least:1";
  CHECK_THROWS(rcn::Judge(session, corrected), RCN_EINVALID, "not of at-least:1");
  CHECK_THROWS(rcn::RecalibrateModel(session, session.Model, "validation", RCN_RECALIB_PLATT, rcn::EvaluationChoice()),
    RCN_EINVALID, "The predictions of first-isotonic are corrected already (isotonic, fitted to 2 cases).");
  CHECK_THROWS(rcn::CheckRecalibration(session, session.Model), RCN_EINVALID, "corrected already");
  CHECK_THROWS(rcn::WithViewerWayOut([&] { rcn::CheckRecalibration(session, session.Model); }), RCN_EINVALID,
    "fitted to 2 cases). Evaluate the model with its correction, or choose one without a correction.");
  rcn::CheckRecalibration(session, "first");
  rcn::EvaluationChoice twice;
  twice.Model = session.Model;
  twice.Correction = recalibrated.Correction.Path;
  CHECK_THROWS(rcn::Judge(session, twice), RCN_EINVALID, "corrected already");
  // A map that is right on average in each case: what one case teaches is wrong for the other, and nothing is kept.
  rcn::Session right = session;
  for (const std::string& id : ids)
  {
    const rcn::OpenCasePointer one = rcn::LoadCase(session, id);
    int64_t marked = 0;
    for (int r = 0; r < 3; ++r)
    {
      marked += rcn_votes_marked(one->Work.Votes(), r);
    }
    const rcn::Volume& was = one->Layers[0].Probability;
    const int64_t voxels = rcn_geometry_voxels(&was.Geometry());
    const rcn::Volume map = rcn::Volume::Allocate(was.Geometry(), RCN_FLOAT32);
    std::fill_n(static_cast<float*>(map.Data()), voxels, static_cast<float>(marked) / static_cast<float>(3 * voxels));
    rcn::SessionPrediction constant = *session.FindPrediction(id, "first");
    constant.Maps = std::make_shared<const rcn::PredictionMaps>(rcn::PredictionMaps{ {}, map, constant.Maps->Run });
    right.SetPrediction(constant);
  }
  rcn::EvaluationChoice whole;
  whole.Region = "whole";
  fs::remove(recalibrated.Correction.Path);
  const rcn::Recalibrated useless = rcn::RecalibrateModel(right, "first", "validation", RCN_RECALIB_ISOTONIC, whole);
  CHECK(useless.Model.empty() && !fs::exists(recalibrated.Correction.Path));
  CHECK(
    useless.Sentence.find("0.00 % before") != std::string::npos && useless.Sentence.find("does not help") != std::string::npos);
  rcn::WriteRecalibration(recalibrated.Correction.Path, recalibrated.Correction);
  // What was made is found again in the saved workspace.
  choice.Correction = recalibrated.Correction.Path;
  choice.Region = "box";
  session.Evaluation = choice;
  std::vector<std::string> remarks;
  rcn::ReportOn(session, ids, folder / "report.html", {}, &remarks);
  CHECK(rcn::ReadText(folder / "report.html").find("first") != std::string::npos);
  rcn::ReportOn(session, ids, folder / "nameless.html", {}, &remarks, true);
  const std::string nameless = rcn::ReadText(folder / "nameless.html");
  CHECK(nameless.find("Rater 1") != std::string::npos && nameless.find("Case 1") != std::string::npos);
  CHECK(nameless.find(">first") == std::string::npos && nameless.find(folder / "") == std::string::npos);
  CHECK(nameless.find(">" + ids.front() + "<") == std::string::npos);
  CHECK(nameless.find("case " + ids.front()) == std::string::npos);
  // An image that nobody outlined has a page of its own, by the model in use, which says what it learned from.
  rcn::Session alone = session;
  rcn::Case image;
  image.Id = "new";
  image.Images = { session.FindCase("c5")->Images.front() };
  alone.Current = alone.AddCase(image);
  alone.Model = "first";
  rcn::ReportOnImage(alone, alone.Current, folder / "patient.html", {}, &remarks, true);
  CHECK(rcn::ReadText(folder / "patient.html").find("What raters would mark: new") == std::string::npos);
  rcn::ReportOnImage(alone, alone.Current, folder / "patient.html", {}, &remarks);
  const std::string patient = rcn::ReadText(folder / "patient.html");
  CHECK(patient.find("The model&#39;s record") != std::string::npos || patient.find("Model record") != std::string::npos);
  CHECK(patient.find("On 2 validation cases") != std::string::npos);
  CHECK_THROWS(rcn::ReportOnImage(alone, alone.Current, alone.Models.front().Path), RCN_EINVALID, "first.safetensors");
  const rcn::ModelWords words = rcn::DescribeModel(*alone.FindModel("first"));
  CHECK(words.Summary.find("It was trained on 5 cases of 3 raters") == 0 && words.Lines.size() > 10);
  rcn::SaveSession(session, folder / "all.rcn.json");
  fs::remove_all(session.Folder);
  const rcn::Session read = rcn::ReadSession(folder / "all.rcn.json");
  CHECK(read.Models.size() == 2 && read.Predictions.size() == 3);
  const rcn::Judged again = rcn::Judge(read, read.Evaluation);
  CHECK(again.HasBefore && again.Report.Bins.size() == 5 && again.Before.Voxels == judged.Report.Voxels);
  // From files the same is judged as from memory.
  choice.Correction.clear();
  const rcn::Judged inMemory = rcn::Judge(session, choice), inFiles = rcn::Judge(read, choice);
  CHECK(!read.Predictions[0].Maps && session.Predictions[0].Maps);
  CHECK(inMemory.Report.Figures[RCN_MR_ECE] == inFiles.Report.Figures[RCN_MR_ECE] &&
    inMemory.Report.Figures[RCN_BRIER] == inFiles.Report.Figures[RCN_BRIER]);
  OldestGoToFiles(read, folder);
}

/// The mean of a map of levels at each voxel, as a share of the raters; of a probability, that.
std::vector<double> Shares(const rcn::CaseLayer& layer)
{
  const rcn::Volume& map = layer.Levels.Data() ? layer.Levels : layer.Probability;
  const int components = map.ChannelCount();
  const auto* data = static_cast<const float*>(map.Data());
  std::vector<double> shares(static_cast<size_t>(rcn_geometry_voxels(&map.Geometry())));
  for (size_t voxel = 0; voxel < shares.size(); ++voxel)
  {
    for (int k = 0; k < components; ++k)
    {
      shares[voxel] += components == 1 ? data[voxel] : static_cast<double>(k) / (components - 1) * data[voxel * components + k];
    }
  }
  return shares;
}

double Difference(const std::vector<double>& a, const std::vector<double>& b)
{
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && std::isfinite(most); ++i)
  {
    most = std::max(most, std::fabs(a[i] - b[i]));
  }
  return most;
}

std::string TrainOnStructures(const rcn::Session& session, const std::string& strategy)
{
  rcn::TrainingOptions options;
  options.List = session.Data();
  options.Output = session.File("models", strategy + ".safetensors");
  rcn::MakeFolder(fs::path(options.Output).parent_path().string());
  options.Strategy = strategy;
  options.Net.width = 8;
  options.Net.depth = 2;
  options.HasNet = true;
  options.Batch = 2;
  options.Epochs = 4;
  options.Rate = 0.01;
  options.Recalibrate = false;
  rcn::TrainModel(options);
  return options.Output;
}

/// What a model of several structures says of each of them, from memory and from files.
void CheckStructureLayers(const rcn::Session& session, const std::string& model)
{
  const rcn::SessionPrediction& prediction = *session.FindPrediction("c5", model);
  std::vector<double> sum(32 * 32, 0.0);
  for (int structure = 1; structure <= 3; ++structure)
  {
    const rcn::CaseLayer layer = rcn::LoadLayer(session, prediction, structure);
    CHECK(layer.Levels.ChannelCount() == 4 && layer.Structures && layer.Structures->Count() == 3);
    CHECK(layer.Volumes && layer.Volumes->UnitCount() == 2 && layer.Volumes->Structures.empty()); // its own
    const std::vector<double> shares = Shares(layer);
    std::transform(sum.begin(), sum.end(), shares.begin(), sum.begin(), std::plus<double>());
    // The same by name where the workspace has the structures in another order.
    rcn::Session turned = session;
    std::rotate(turned.Structures.begin(), turned.Structures.begin() + 1, turned.Structures.end());
    CHECK(Difference(Shares(rcn::LoadLayer(turned, prediction, structure == 1 ? 3 : structure - 1)), shares) < 1e-6);
  }
  // With one likelihood for all of them, never more than all raters; with heads, nobody knows.
  CHECK(model != "ordinal" || *std::max_element(sum.begin(), sum.end()) <= 1 + 1e-5);
  rcn::Session other = session;
  other.Structures[1].Name = "spleen";
  CHECK_THROWS(rcn::LoadLayer(other, prediction, 1), RCN_EINVALID, "structure");
}

void TrainsAndJudgesSeveralStructures()
{
  const Folder folder;
  rcn::Session session = rcn::OpenFiles(Base(folder), { WriteStructureList(folder) });
  session.Folder = folder / "work.rcn";
  const auto keep = [&](const rcn::SessionPrediction& prediction) { session.SetPrediction(prediction); };
  const std::vector<std::string> ids = rcn::CasesOf(session, "validation", true);
  for (const char* strategy : { "ordinal", "rps" })
  {
    session = rcn::OpenFiles(session, { TrainOnStructures(session, strategy) });
    rcn::PredictCases(session, strategy, ids, {}, keep);
    CheckStructureLayers(session, strategy);
  }
  const rcn::OpenCasePointer open = rcn::LoadCase(session, "c5");
  CHECK(open->Structure == 1 && open->Layers.size() == 2 && open->Layers[0].Means.ChannelCount() == 4);
  CHECK(!open->Layers[1].Means.Data() && open->Layers[1].Structures->Levels.size() == 3);

  rcn::EvaluationChoice choice;
  choice.Model = "ordinal";
  choice.Split = "validation";
  const rcn::Judged judged = rcn::Judge(session, choice);
  CHECK(judged.Structures.size() == 3 && judged.Structures[2].Name == "Gefäß" && judged.Cases == ids);
  double mean = 0;
  for (int structure = 1; structure <= 3; ++structure)
  {
    CHECK(judged.Of(structure).Cases > 0 && !judged.Of(structure).Bins.empty());
    mean += judged.Of(structure).Figures[RCN_MR_ECE] / 3;
  }
  CHECK(std::fabs(judged.Of(0).Figures[RCN_MR_ECE] - mean) < 1e-12);

  // Saved and read, the same is shown and judged.
  const rcn::Session saved = rcn::SaveSession(session, folder / "study.rcn.json");
  fs::remove_all(session.Folder);
  const rcn::Session read = rcn::ReadSession(folder / "study.rcn.json");
  CHECK(read.Predictions.size() == 4 && !read.Predictions[0].Maps && read.Predictions[0].Raters == 3);
  CHECK(read.FindPrediction("c5", "ordinal")->StructureLevels.empty());
  CHECK(read.FindPrediction("c5", "rps")->StructureLevels.size() == 3);
  for (const char* model : { "ordinal", "rps" })
  {
    CheckStructureLayers(read, model);
    const std::vector<double> inMemory = Shares(rcn::LoadLayer(session, *session.FindPrediction("c5", model), 2));
    CHECK(Difference(Shares(rcn::LoadLayer(read, *read.FindPrediction("c5", model), 2)), inMemory) < 1e-6);
  }
  const rcn::Judged again = rcn::Judge(read, choice);
  CHECK(std::fabs(again.Of(3).Figures[RCN_BRIER] - judged.Of(3).Figures[RCN_BRIER]) < 1e-9);
  CHECK_THROWS(rcn::CheckExport(read, read.FindPrediction("c5", "rps")->StructureLevels[1]), RCN_EINVALID, "the prediction");

  // One temperature for all of them, or nothing.
  const rcn::Recalibrated recalibrated =
    rcn::RecalibrateModel(read, "ordinal", "validation", RCN_RECALIB_TEMPERATURE, rcn::EvaluationChoice());
  CHECK(recalibrated.OnFittedCases.Structures.size() == 3 && recalibrated.OnFittedCases.StructuresBefore.size() == 3);
  CHECK_THROWS(rcn::RecalibrateModel(read, "ordinal", "validation", RCN_RECALIB_PLATT, rcn::EvaluationChoice()), RCN_EINVALID,
    "contradict");

  // A model of other structures: one sentence.
  rcn::Session other = read;
  other.Structures[0].Name = "spleen";
  CHECK_THROWS(rcn::PredictCases(other, "ordinal", ids, {}, keep), RCN_EINVALID, "was trained on");
  other.Structures.clear();
  CHECK_THROWS(rcn::PredictCases(other, "ordinal", ids, {}, keep), RCN_EINVALID, "was trained on");
  // An image alone has the model's structures.
  rcn::Session alone = rcn::OpenFiles(Base(folder), { folder / "c6.nrrd" });
  alone = rcn::OpenFiles(alone, { read.FindModel("ordinal")->Path });
  CHECK(alone.Structures.size() == 3 && alone.Cases[0].HasStructures());
  const auto keepAlone = [&](const rcn::SessionPrediction& made) { alone.SetPrediction(made); };
  rcn::PredictCases(alone, alone.Model, { "c6" }, {}, keepAlone);
  alone.View.Structure = "right";
  const rcn::OpenCasePointer image = rcn::LoadCase(alone, "c6");
  CHECK(image->Structure == 2 && image->Layers.size() == 1 && image->Layers[0].Levels.ChannelCount() == 4);
  rcn::ReportOnImage(alone, "c6", folder / "patient.html");
  CHECK(rcn::ReadText(folder / "patient.html").find("right") != std::string::npos);
}
#endif

} // namespace

int main()
{
  RUN(OpensAListAndAFolder);
  RUN(MasksFindTheirImage);
  RUN(BadFilesChangeNothing);
  RUN(LoadsFusesAndStops);
  RUN(ComparesAllCases);
  RUN(ShowsOneOfSeveralStructures);
  RUN(PluralityOfStructures);
  RUN(DroppedLabelMaps);
#ifdef RCN_HAVE_NETWORKS
  RUN(TrainsPredictsJudgesAndCorrects);
  RUN(TrainsAndJudgesSeveralStructures);
#endif
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
