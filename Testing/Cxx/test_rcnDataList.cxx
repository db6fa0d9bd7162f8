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
  RUN(RaterWords);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
