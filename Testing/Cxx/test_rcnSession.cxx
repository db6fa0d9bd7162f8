// SPDX-License-Identifier: Apache-2.0
/// A workspace that is saved and read again is the same; a hostile file is one sentence.
#include "rcnSession.h"

#include "rcnJson.h"
#include "rcnTest.h"

namespace
{

namespace fs = std::filesystem;

rcn::Session Whole(const Folder& folder)
{
  rcn::Session session;
  session.Folder = folder / "work.rcn";
  rcn::Case one;
  one.Id = "c1";
  one.Split = "validation";
  one.Patient = "p";
  one.Images = { folder / "data/c1.nrrd" };
  one.Raters = { { "Ada", folder / "data/c1_ada.nrrd", { 1, -3 }, 2 }, { "Ben", "/far/away/ben.nrrd", {}, -1 } };
  session.AddCase(one);
  rcn::Case image;
  image.Id = "new";
  image.Images = { folder / "new.nrrd" };
  session.AddCase(image);
  session.Current = "new";
  rcn::MakeFolder(session.Folder + "/models");
  rcn::MakeFolder(session.PredictionFolder("mine"));
  rcn::WriteText(session.File("models", "mine.safetensors"), "weights");
  rcn::WriteText(session.PredictionFolder("mine") + "/c1_prob.nrrd", "probabilities");
  rcn::WriteText(folder / "other.safetensors", "other weights");
  session.AddModel(session.File("models", "mine.safetensors"));
  session.AddModel(folder / "other.safetensors");
  session.Model = "mine";
  session.SetPrediction({ "c1", "mine", "expected", "", session.PredictionFolder("mine") + "/c1_prob.nrrd" });
  session.Fusions = { "staple" };
  rcn::SessionView& view = session.View;
  view.HasCursor = view.HasWindow = true;
  view.Cursor[0] = -1.5;
  view.Cursor[2] = 1.0 / 3;
  view.Window = 400;
  view.Level = 40;
  view.HiddenRaters = { "Ben" };
  view.HeatMap = view.Contours = false;
  view.IsolatedLevel = 1;
  view.Palette = "viridis";
  view.Overlay = "mine";
  view.Readout = "at-least:2";
  view.Opacity = 0.25;
  view.Threshold = 0.75;
  view.ThresholdContour = view.LevelContours = true;
  view.Layout = "compare";
  view.Panel = "reliability";
  session.Evaluation = { "mine", "validation", "band", "expected", 10, "" };
  return session;
}

bool SameFile(const std::string& a, const std::string& b)
{
  return fs::path(a).lexically_normal() == fs::path(b).lexically_normal();
}

void EverythingIsBack()
{
  const Folder folder;
  rcn::MakeFolder(folder / "saved");
  const rcn::Session session = Whole(folder);
  const rcn::Session saved = rcn::SaveSession(session, folder / "saved/study.rcn.json");
  CHECK(saved.Path == folder / "saved/study.rcn.json" && saved.Folder == folder / "saved/study.rcn");
  std::vector<std::string> remarks;
  const rcn::Session read = rcn::ReadSession(saved.Path, &remarks);
  CHECK(remarks.empty());
  CHECK(read.Folder == saved.Folder && read.Raters == session.Raters && read.Cases.size() == 2 && read.Current == "new");
  const rcn::Case& one = read.Cases[0];
  CHECK(one.Id == "c1" && one.Split == "validation" && one.Patient == "p" && one.Images.size() == 1 && one.Raters.size() == 2);
  CHECK(SameFile(one.Images[0], session.Cases[0].Images[0]) && SameFile(one.Raters[1].Path, "/far/away/ben.nrrd"));
  CHECK(one.Raters[0].Channel == 2 && one.Raters[0].Values == session.Cases[0].Raters[0].Values && one.Raters[1].Channel == -1);
  CHECK(read.Cases[1].Raters.empty() && read.Cases[1].Split.empty());
  // What the viewer made lies beside the workspace now; the other model stays where it is.
  CHECK(read.Models.size() == 2 && read.Model == "mine");
  CHECK(SameFile(read.Models[0].Path, folder / "saved/study.rcn/models/mine.safetensors"));
  CHECK(SameFile(read.Models[1].Path, folder / "other.safetensors"));
  CHECK(rcn::ReadText(read.Models[0].Path) == "weights");
  const rcn::SessionPrediction* prediction = read.FindPrediction("c1", "mine");
  CHECK(prediction && prediction->Readout == "expected" && prediction->Levels.empty());
  CHECK(prediction && rcn::ReadText(prediction->Probability) == "probabilities");
  CHECK(read.Fusions == session.Fusions);
  const rcn::SessionView &a = read.View, &b = session.View;
  CHECK(a.HasCursor && a.Cursor[0] == b.Cursor[0] && a.Cursor[1] == 0 && std::fabs(a.Cursor[2] - b.Cursor[2]) < 1e-12);
  CHECK(a.HasWindow && a.Window == 400 && a.Level == 40 && a.HiddenRaters == b.HiddenRaters && !a.HeatMap && !a.Contours);
  CHECK(a.IsolatedLevel == 1 && a.Palette == b.Palette && a.Overlay == b.Overlay && a.Readout == b.Readout);
  CHECK(a.Opacity == 0.25 && a.Threshold == 0.75 && a.ThresholdContour && a.LevelContours);
  CHECK(a.Layout == "compare" && a.Panel == "reliability");
  CHECK(read.Evaluation.Model == "mine" && read.Evaluation.Split == "validation" && read.Evaluation.Region == "band");
  CHECK(read.Evaluation.Readout == "expected" && read.Evaluation.Bins == 10 && read.Evaluation.Correction.empty());
  // Workspaces of earlier versions have the choice under another key.
  std::string earlier = rcn::ReadText(saved.Path);
  const size_t key = earlier.find("\"evaluation\"");
  CHECK(key != std::string::npos && earlier.find("\"judgement\"") == std::string::npos);
  const rcn::Session old = rcn::ParseSession(earlier.replace(key, 12, "\"judgement\""), saved.Path);
  CHECK(old.Evaluation.Model == "mine" && old.Evaluation.Split == "validation" && old.Evaluation.Bins == 10);
  // Saved again where it is: the same text.
  const std::string text = rcn::ReadText(saved.Path);
  rcn::SaveSession(read, saved.Path);
  CHECK(rcn::ReadText(saved.Path) == text);
}

/// File and folder can go elsewhere together with the data.
void PathsAreRelative()
{
  const Folder folder;
  rcn::SaveSession(Whole(folder), folder / "study.rcn.json");
  CHECK(rcn::ReadText(folder / "study.rcn.json").find(folder / "") == std::string::npos);
  const Folder other;
  fs::copy(folder / "", other / "", fs::copy_options::recursive);
  const rcn::Session moved = rcn::ReadSession(other / "study.rcn.json");
  CHECK(SameFile(moved.Cases[0].Images[0], other / "data/c1.nrrd"));
  CHECK(SameFile(moved.Models[0].Path, other / "study.rcn/models/mine.safetensors"));
}

void MissingFilesAreNamed()
{
  const Folder folder;
  const rcn::Session saved = rcn::SaveSession(Whole(folder), folder / "study.rcn.json");
  fs::remove(saved.Predictions[0].Probability);
  std::vector<std::string> remarks;
  rcn::Session read = rcn::ReadSession(saved.Path, &remarks);
  CHECK(remarks.size() == 1 && remarks[0].find("c1_prob.nrrd") != std::string::npos);
  CHECK(read.Predictions.empty() && read.Models.size() == 2);
  fs::remove(saved.Models[0].Path);
  read = rcn::ReadSession(saved.Path, &remarks);
  CHECK(remarks.size() == 1 && read.Models.size() == 1 && read.Model == "other" && read.Evaluation.Model.empty());
}

void RefusedFiles()
{
  const Folder folder;
  const rcn::Session saved = rcn::SaveSession(Whole(folder), folder / "study.rcn.json");
  const std::string text = rcn::ReadText(saved.Path);
  // Cut anywhere, it is refused.
  for (size_t length = 0; length + 2 < text.size(); length += 7)
  {
    CHECK_THROWS(rcn::ParseSession(text.substr(0, length), "w.rcn.json"), RCN_EFORMAT, "w.rcn.json");
  }
  const auto parse = [](const std::string& rest) {
    return rcn::ParseSession("{\"rcn_workspace\": 1, " + rest + "}", "w.rcn.json");
  };
  CHECK_THROWS(rcn::ParseSession("[]", "w.rcn.json"), RCN_EFORMAT, "not a saved workspace");
  CHECK_THROWS(rcn::ParseSession("{\"training\": []}", "w.rcn.json"), RCN_EFORMAT, "not a saved workspace");
  CHECK_THROWS(rcn::ParseSession("{\"rcn_workspace\": 99}", "w.rcn.json"), RCN_EFORMAT, "newer");
  CHECK_THROWS(parse(R"("raters": "A")"), RCN_EFORMAT, "list");
  CHECK_THROWS(parse(R"("raters": ["A", "A"])"), RCN_EFORMAT, "different");
  CHECK_THROWS(parse(R"("cases": [{"id": "../x", "images": ["a"]}])"), RCN_EFORMAT, "file name");
  CHECK_THROWS(parse(R"("cases": [{"id": "x", "images": ["a"]}, {"id": "x", "images": ["a"]}])"), RCN_EFORMAT, "twice");
  CHECK_THROWS(parse(R"("cases": [{"id": "x"}])"), RCN_EFORMAT, "neither");
  CHECK_THROWS(parse(R"("cases": [7])"), RCN_EFORMAT, "objects");
  CHECK_THROWS(parse(R"("cases": [{"id": "x", "images": ["a"], "split": "tset"}])"), RCN_EFORMAT, "tset");
  CHECK_THROWS(parse(R"("cases": [{"id": "x", "raters": [{"name": "A", "file": "a"}]}])"), RCN_EFORMAT, "among");
  CHECK_THROWS(parse(R"("raters": ["A"], "cases": [{"id": "x", "raters": [{"name": "A", "file": "a", "values": [0.5]}]}])"),
    RCN_EFORMAT, "whole number");
  CHECK_THROWS(parse(R"("raters": ["A"], "cases": [{"id": "x", "raters": [{"name": "A", "file": "a", "channel": -7}]}])"),
    RCN_EFORMAT, "channel");
  CHECK_THROWS(
    parse(
      R"("raters": ["A"], "cases": [{"id": "x", "raters": [{"name": "A", "file": "a", "values": [9223372036854775807]}]}])"),
    RCN_EFORMAT, "whole number");
  CHECK_THROWS(parse(R"("view": {"window": 1e300})"), RCN_EFORMAT, "window");
  CHECK_THROWS(parse(R"("view": {"cursor": [1, 2, -1e300]})"), RCN_EFORMAT, "cursor");
  CHECK_THROWS(parse(R"("current": "x")"), RCN_EFORMAT, "current");
  CHECK_THROWS(parse(R"("models": [{"name": "a/b", "file": "m"}])"), RCN_EFORMAT, "usable");
  CHECK_THROWS(parse(R"("model": "x")"), RCN_EFORMAT, "in use");
  CHECK_THROWS(parse(R"("predictions": [{"case": "x", "model": "y", "probability": "p"}])"), RCN_EFORMAT, "prediction");
  CHECK_THROWS(parse(R"("view": {"cursor": [1, 2]})"), RCN_EFORMAT, "three");
  CHECK_THROWS(parse(R"("view": {"opacity": 1e400})"), RCN_EFORMAT, "JSON");
  CHECK_THROWS(parse(R"("view": {"opacity": 2})"), RCN_EFORMAT, "opacity");
  CHECK_THROWS(parse(R"("view": {"heat_map": 1})"), RCN_EFORMAT, "heat_map");
  CHECK_THROWS(parse(R"("evaluation": {"bins": 0})"), RCN_EFORMAT, "bins");
  CHECK_THROWS(parse(R"("evaluation": [])"), RCN_EFORMAT, "object");
  CHECK(parse("\"cases\": []").Cases.empty());
  CHECK_THROWS(rcn::ReadSession(folder / "nowhere.rcn.json"), RCN_EIO, "does not exist");
}

void FailsToSave()
{
  const Folder folder;
  const rcn::Session session = Whole(folder);
  const size_t before = folder.Count();
  CHECK_THROWS(rcn::SaveSession(session, folder / "study.json"), RCN_EIO, ".rcn.json");
  CHECK_THROWS(rcn::SaveSession(session, folder / "nowhere/study.rcn.json"), RCN_EIO, "nowhere");
  CHECK(folder.Count() == before);
  rcn::WriteText(folder / "study.rcn.json", "old");
  CHECK_THROWS(
    rcn::SaveSession(session, folder / "study.rcn.json", [](double, const char*) { return true; }), RCN_ECANCELLED, "canceled");
  fs::remove(session.Models[0].Path);
  CHECK_THROWS(rcn::SaveSession(session, folder / "study.rcn.json"), RCN_EIO, "mine.safetensors");
  CHECK(rcn::ReadText(folder / "study.rcn.json") == "old");
}

/// Whatever the viewer saves, it is never one of the files that are open.
void OverwritesNothingThatIsOpen()
{
  const Folder folder;
  rcn::Session session;
  rcn::Case one;
  one.Id = "c";
  one.Images = { folder / "image.nrrd" };
  one.Raters = { { "A", folder / "a.nrrd", {}, -1 } };
  for (const std::string& path : { one.Images[0], one.Raters[0].Path, folder / "m.safetensors", folder / "p.nrrd" })
  {
    rcn::WriteText(path, "old");
  }
  session.AddCase(one);
  session.AddModel(folder / "m.safetensors");
  session.SetPrediction({ "c", "m", "majority", "", folder / "p.nrrd" });
  fs::create_symlink(folder / "a.nrrd", folder / "link.nrrd");
  CHECK_THROWS(rcn::CheckExport(session, folder / "image.nrrd"), RCN_EINVALID, "case c reads");
  CHECK_THROWS(rcn::CheckExport(session, folder / "link.nrrd"), RCN_EINVALID, "a.nrrd");
  CHECK_THROWS(rcn::CheckExport(session, folder / "m.safetensors"), RCN_EINVALID, "the model m");
  CHECK_THROWS(rcn::CheckExport(session, folder / "p.nrrd"), RCN_EINVALID, "the prediction");
  rcn::CheckExport(session, folder / "new.nrrd");
}

void NamesAreUnique()
{
  rcn::Session session;
  CHECK(session.AddModel("a/model.safetensors") == "model" && session.AddModel("b/model.safetensors") == "model-2");
  CHECK(session.Model == "model-2");
  rcn::Case one;
  one.Id = "c";
  one.Raters = { { "A", "a", {}, -1 } };
  CHECK(session.AddCase(one) == "c" && session.AddCase(one) == "c-2" && session.Raters.size() == 1);
  session.SetPrediction({ "c", "model", "majority", "", "p" });
  session.SetPrediction({ "c", "model", "expected", "", "q" });
  CHECK(session.Predictions.size() == 1 && session.Predictions[0].Probability == "q");
  session.RemoveModel("model");
  CHECK(session.Predictions.empty() && session.Models.size() == 1);
  CHECK(session.Data().Cases.size() == 2 && session.Data().Cases[0].Split == "training");
  session.SetPrediction({ "c", "model-2", "majority", "", "p" });
  session.SetPrediction({ "c-2", "model-2", "majority", "", "p" });
  session.Current = "c";
  session.RemoveCase("c");
  CHECK(session.Cases.size() == 1 && !session.FindCase("c") && session.Current.empty());
  CHECK(session.Predictions.size() == 1 && session.Predictions[0].Case == "c-2");
  session.RemoveCase("c");
  CHECK(session.Cases.size() == 1);
  one.Id = "../a";
  CHECK(session.AddCase(one) == ".._a");
  one.Id = "..";
  CHECK(session.AddCase(one) == "unnamed" && session.AddModel("/") == "unnamed");
}

/// Structures, files of each, and which one is shown; without them, a workspace says nothing of structures.
void StructuresAreBack()
{
  const Folder folder;
  rcn::Session session = Whole(folder);
  CHECK(session.ShownStructure() == 0 && session.StructureName(0).empty());
  rcn::SaveSession(session, folder / "one.rcn.json");
  CHECK(rcn::ReadText(folder / "one.rcn.json").find("structure") == std::string::npos);
  CHECK(!rcn::ReadSession(folder / "one.rcn.json").HasStructures());

  session.Structures = { { "kidney", { 1 } }, { "große Leber", { 2, -3 } } };
  CHECK(session.ShownStructure() == 1 && session.StructureName(2) == "große Leber");
  session.View.Structure = "große Leber";
  session.View.HiddenStructures = { "kidney" };
  session.Cases[0].Unanswered = -9;
  session.Cases[0].Raters[0].Structures = { { folder / "data/c1_kidney.nrrd", { 4 }, 1 }, { "", {}, -1 } };
  rcn::SaveSession(session, folder / "two.rcn.json");
  const rcn::Session read = rcn::ReadSession(folder / "two.rcn.json");
  CHECK(read.HasStructures() && rcn::NamesOf(read.Structures) == rcn::NamesOf(session.Structures));
  CHECK(read.Structures[1].Values == (std::vector<int64_t>{ 2, -3 }) && read.ShownStructure() == 2);
  CHECK(read.View.HiddenStructures == session.View.HiddenStructures);
  CHECK(read.Cases[0].Structures.size() == 2 && read.Cases[1].Structures.size() == 2 && read.Data().HasStructures());
  CHECK(read.Cases[0].Unanswered && *read.Cases[0].Unanswered == -9 && !read.Cases[1].Unanswered);
  const std::vector<rcn::StructureFile>& files = read.Cases[0].Raters[0].Structures;
  CHECK(files.size() == 2 && SameFile(files[0].Path, folder / "data/c1_kidney.nrrd") && files[1].Path.empty());
  CHECK(files[0].Values == std::vector<int64_t>{ 4 } && files[0].Channel == 1 && read.Cases[0].Raters[1].Structures.empty());
  // A case that is added has them, too; a name that is not there means the first.
  rcn::Session more = read;
  more.AddCase({ "more", "", "", { "more.nrrd" }, {}, nullptr });
  CHECK(more.Cases.back().HasStructures());
  more.View.Structure = "spleen";
  CHECK(more.ShownStructure() == 1);
  // Every file is guarded.
  rcn::MakeFolder(folder / "data");
  rcn::WriteText(folder / "data/c1_kidney.nrrd", "labels");
  CHECK_THROWS(rcn::CheckExport(read, folder / "data/c1_kidney.nrrd"), RCN_EINVALID, "c1_kidney.nrrd");

  const std::string text = rcn::ReadText(folder / "two.rcn.json");
  const auto with = [&text](const std::string& from, const std::string& to) {
    std::string changed = text;
    return changed.replace(changed.find(from), from.size(), to);
  };
  CHECK_THROWS(rcn::ParseSession(with("\"kidney\"", "\"große Leber\""), "w.rcn.json"), RCN_EFORMAT, "named twice");
  session.Structures.push_back({ "spleen", { 5 } });
  rcn::SaveSession(session, folder / "three.rcn.json");
  CHECK_THROWS(rcn::ReadSession(folder / "three.rcn.json"), RCN_EFORMAT, "other structures");
}

} // namespace

int main()
{
  RUN(EverythingIsBack);
  RUN(StructuresAreBack);
  RUN(PathsAreRelative);
  RUN(MissingFilesAreNamed);
  RUN(RefusedFiles);
  RUN(FailsToSave);
  RUN(OverwritesNothingThatIsOpen);
  RUN(NamesAreUnique);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
