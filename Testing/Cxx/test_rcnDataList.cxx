// SPDX-License-Identifier: Apache-2.0
#include "rcnDataList.h"

#include "rcnTest.h"

namespace
{

rcn::DataList Parse(const std::string& text)
{
  return rcn::ParseDataList(text, "/data", "list.json");
}

void EveryKindOfLabel()
{
  const rcn::DataList list = Parse(R"({"raters": ["A", "B", "C"], "value": 5,
    "training": [{"id": "c1", "patient": "p", "image": ["t1.nii", "/abs/t2.nii"],
                  "label": {"B": "b.nii", "A": {"file": "a.nii", "value": [1, 2]}}},
                 {"image": "c2.nii.gz", "label": ["a.nii", null, {"file": "c.nii"}], "value": 7}],
    "test": [{"id": 9, "label": "all.nii"}]})");
  CHECK(list.Raters == (std::vector<std::string>{ "A", "B", "C" }) && list.Cases.size() == 3);
  const rcn::Case& first = list.Cases[0];
  CHECK(first.Split == "training" && first.Patient == "p" && first.Images.size() == 2);
  CHECK(first.Images[0] == "/data/t1.nii" && first.Images[1] == "/abs/t2.nii");
  CHECK(first.Raters.size() == 2 && first.Raters[0].Name == "B" && first.Raters[0].Path == "/data/b.nii");
  CHECK(first.Raters[0].Values == std::vector<int64_t>{ 5 });
  CHECK((first.Raters[1].Values == std::vector<int64_t>{ 1, 2 }));
  const rcn::Case& second = list.Cases[1];
  CHECK(second.Id == "c2" && second.Raters.size() == 2 && second.Raters[1].Name == "C");
  CHECK(second.Raters[0].Values == std::vector<int64_t>{ 7 } && second.Raters[1].Values == std::vector<int64_t>{ 7 });
  const rcn::Case& third = list.Cases[2];
  CHECK(third.Id == "9" && third.Split == "test" && third.Raters.size() == 3 && third.Raters[2].Channel == 2);
}

void RefusedLists()
{
  CHECK_THROWS(Parse("{"), RCN_EFORMAT, "not valid JSON");
  CHECK_THROWS(Parse("[]"), RCN_EFORMAT, "object");
  CHECK_THROWS(Parse("{}"), RCN_EFORMAT, "no case");
  CHECK_THROWS(Parse(R"({"test": [{"id": "a\nb/c", "label": {"A": "a"}}]})"), RCN_EFORMAT, "case a b/c");
  CHECK_THROWS(
    Parse(R"({"test": [{"id": "a", "label": {"r2": "a"}}, {"id": "b", "label": ["a", "b"]}]})"), RCN_EFORMAT, "another way");
  CHECK_THROWS(
    Parse(R"({"test": [{"id": "a", "label": ["a", "b"]}, {"id": "b", "label": {"X": "a"}}]})"), RCN_EFORMAT, "another way");
  CHECK_THROWS(rcn::ReadDataList("/nowhere/list.json"), RCN_EIO, "does not exist");
}

/// A list with this at the top, and one case with this label.
rcn::DataList ParseWith(const std::string& top, const std::string& label = R"({"A": "a.nii", "B": "b.nii"})")
{
  return Parse("{" + top + R"(, "test": [{"id": "c", "label": )" + label + "}]}");
}

void SeveralStructures()
{
  const rcn::DataList list = ParseWith(R"("structures": {"left kidney": 1, "Nebenhöhle": [2, 3]})",
    R"({"A": "a.nii", "B": {"left kidney": "k.nii", "Nebenhöhle": {"file": "n.nii", "value": 7}}, "C": null})");
  CHECK(list.HasStructures() && list.Structures.size() == 2 && list.Structures[1].Name == "Nebenhöhle");
  CHECK((list.Structures[1].Values == std::vector<int64_t>{ 2, 3 }) && list.Raters.size() == 3);
  const rcn::Case& one = list.Cases[0];
  CHECK(one.HasStructures() && !one.Unanswered && one.Raters.size() == 2);
  CHECK(one.Raters[0].Path == "/data/a.nii" && one.Raters[0].Values.empty() && one.Raters[0].Structures.empty());
  const rcn::RaterFile& b = one.Raters[1];
  CHECK(b.Structures.size() == 2 && b.Path == "/data/k.nii" && b.Structures[0].Values.empty());
  CHECK(b.Structures[1].Path == "/data/n.nii" && b.Structures[1].Values == std::vector<int64_t>{ 7 });
  CHECK((rcn::FilesOf(b) == std::vector<std::string>{ "/data/k.nii", "/data/n.nii" }));

  const rcn::DataList second = rcn::OneStructure(list, 2);
  CHECK(!second.HasStructures() && second.Structures.size() == 1 && second.Cases[0].Structures[0].Name == "Nebenhöhle");
  CHECK((second.Cases[0].Raters[0].Values == std::vector<int64_t>{ 2, 3 }) && second.Cases[0].Raters[0].Path == "/data/a.nii");
  CHECK(second.Cases[0].Raters[1].Path == "/data/n.nii" && second.Cases[0].Raters[1].Structures.empty());
  CHECK(second.Cases[0].Raters[1].Values == std::vector<int64_t>{ 7 });
}

/// One structure has a name, and the values that "value" would have given.
void OneStructureIsAsAlways()
{
  const rcn::DataList list =
    ParseWith(R"("structures": {"kidney": [1, 4]})", R"({"A": "a.nii", "B": {"file": "b", "value": 9}})");
  CHECK(!list.HasStructures() && list.Structures.size() == 1 && list.Structures[0].Name == "kidney");
  CHECK((list.Cases[0].Raters[0].Values == std::vector<int64_t>{ 1, 4 }));
  CHECK(list.Cases[0].Raters[1].Values == std::vector<int64_t>{ 9 });
  CHECK(ParseWith(R"("structures": {})").Structures.empty() && ParseWith(R"("structures": null)").Structures.empty());
}

void LabelDictionaries()
{
  const rcn::DataList monai = ParseWith(R"("labels": {"0": "background", "1": "edema", "2": "tumor"})");
  CHECK((rcn::NamesOf(monai.Structures) == std::vector<std::string>{ "edema", "tumor" }));
  CHECK(monai.Structures[1].Values == std::vector<int64_t>{ 2 });
  const rcn::DataList nnunet = ParseWith(R"("labels": {"background": 0, "kidney": 1, "both": [2, 3], "ignore": 4})");
  CHECK(nnunet.Structures.size() == 2 && (nnunet.Structures[1].Values == std::vector<int64_t>{ 2, 3 }));
  CHECK(nnunet.Cases[0].Unanswered && *nnunet.Cases[0].Unanswered == 4);
  // As before there were structures: one foreground label, a value that says what is marked, another kind of dictionary.
  for (const char* top :
    { R"("labels": {"0": "background", "1": "tumor"})", R"("labels": {"background": 0, "tumor": 1, "ignore": 2})",
      R"("labels": {"1": "a", "2": "b"}, "value": 1)", R"("labels": {"a": "b", "c": "d"})", R"("labels": {"a": 1.5, "b": 2})",
      R"("labels": ["a", "b"])", R"("labels": {"a": [], "b": 2})", R"("labels": {"a": {"x": 1}, "b": 2})" })
  {
    const rcn::DataList list = ParseWith(top);
    CHECK(list.Structures.empty() && !list.Cases[0].Unanswered);
  }
  CHECK(ParseWith(R"("labels": {"1": "a", "2": "b"})", R"({"A": {"file": "a", "value": 1}})").Structures.empty());
  CHECK_THROWS(ParseWith(R"("labels": {"background": 0, "whole": [1, 2], "core": 2})"), RCN_EFORMAT, "overlapping regions");
  CHECK_THROWS(ParseWith(R"("labels": {"1": "a", "2": "a"})"), RCN_EFORMAT, "a is named twice");
  // "structures" goes before "labels".
  CHECK(ParseWith(R"("labels": {"1": "a", "2": "b"}, "structures": {"c": 5})").Structures[0].Name == "c");
}

void RefusedStructures()
{
  std::string many;
  for (int i = 1; i <= 33; ++i)
  {
    many += (i > 1 ? ", \"s" : "\"s") + std::to_string(i) + "\": " + std::to_string(i);
  }
  CHECK_THROWS(ParseWith("\"structures\": {" + many + "}"), RCN_EFORMAT, "33 structures; there may be up to 32");
  CHECK_THROWS(ParseWith(R"("structures": {"a": 1, "a": 2})"), RCN_EFORMAT, "duplicate");
  CHECK_THROWS(ParseWith(R"("structures": {"a": 1, "b": [2, 1]})"), RCN_EFORMAT, "value 1 is given twice, for a and b");
  CHECK_THROWS(ParseWith(R"("structures": {"a": [1, 1], "b": 2})"), RCN_EFORMAT, "value 1 is given twice, for a;");
  CHECK_THROWS(ParseWith(R"("structures": {"a": 0, "b": 2})"), RCN_EFORMAT, "value 0, which is the background");
  CHECK_THROWS(ParseWith(R"("structures": {"": 1, "b": 2})"), RCN_EFORMAT, "no name");
  CHECK_THROWS(ParseWith(R"("structures": {"a": [], "b": 2})"), RCN_EFORMAT, "a has no label value");
  CHECK_THROWS(ParseWith(R"("structures": {"a": "1", "b": 2})"), RCN_EFORMAT, "structure a must be a whole number");
  CHECK_THROWS(ParseWith(R"("structures": ["a", "b"])"), RCN_EFORMAT, "must be an object of names");
  CHECK_THROWS(ParseWith(R"("structures": {"a b": 1, "A/B": 2})"), RCN_EFORMAT, "a b and A/B would have the same name");
  CHECK_THROWS(ParseWith(R"("structures": {"a": 1, "b": 2}, "value": 1)"), RCN_EFORMAT, "both");
  const std::string two = R"("structures": {"a": 1, "b": 2})";
  CHECK_THROWS(ParseWith(two, R"({"A": {"file": "a", "value": 1}})"), RCN_EFORMAT, "label map of several structures");
  CHECK_THROWS(ParseWith(two, R"({"A": {"a": "x"}})"), RCN_EFORMAT, "no file of A for the structure b");
  CHECK_THROWS(ParseWith(two, R"({"A": {"a": "x", "b": "y", "c": "z"}})"), RCN_EFORMAT, "for c, which is not among");
}

void RaterWords()
{
  rcn::RaterFile rater = rcn::ParseRater("Dr. A=x/y.nrrd:1,-3");
  CHECK(rater.Name == "Dr. A" && rater.Path == "x/y.nrrd" && (rater.Values == std::vector<int64_t>{ 1, -3 }));
  rater = rcn::ParseRater("y.nrrd");
  CHECK(rater.Name.empty() && rater.Path == "y.nrrd" && rater.Values.empty() && rater.Channel == -1);
  const Folder folder;
  std::ofstream(folder / "odd=name:3") << "x";
  rater = rcn::ParseRater(folder / "odd=name:3");
  CHECK(rater.Name.empty() && rater.Path == folder / "odd=name:3");
  CHECK_THROWS(rcn::ParseRater("=a"), RCN_EINVALID, "name before");
  CHECK_THROWS(rcn::ParseRater("A="), RCN_EINVALID, "file after");
  CHECK_THROWS(rcn::ParseRater("A=:3"), RCN_EINVALID, "file after");
  CHECK_THROWS(rcn::ParseRater("A=b:"), RCN_EINVALID, "label value");
  CHECK_THROWS(rcn::ParseRater("A=b:99999999999999999999"), RCN_EINVALID, "label value");
}

} // namespace

int main()
{
  RUN(EveryKindOfLabel);
  RUN(RefusedLists);
  RUN(SeveralStructures);
  RUN(OneStructureIsAsAlways);
  RUN(LabelDictionaries);
  RUN(RefusedStructures);
  RUN(RaterWords);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
