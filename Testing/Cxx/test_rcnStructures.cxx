// SPDX-License-Identifier: Apache-2.0
#include "rcnStructures.h"

#include "rcnFileName.h"
#include "rcnTest.h"

namespace
{

const std::vector<rcn::Structure> Two = { { "left kidney", { 1 } }, { "Leberläsion", { 2, -3 } } };

void Words()
{
  rcn::Structure one = rcn::ParseStructure("left kidney=1");
  CHECK(one.Name == "left kidney" && one.Values == std::vector<int64_t>{ 1 });
  one = rcn::ParseStructure("a=b=2,-3");
  CHECK(one.Name == "a=b" && (one.Values == std::vector<int64_t>{ 2, -3 }));
  for (const char* wrong : { "kidney", "kidney=", "kidney=x", "kidney=1,", "kidney=1.5", "kidney=99999999999999999999", "" })
  {
    CHECK_THROWS(rcn::ParseStructure(wrong), RCN_EINVALID, "must be a name and label values");
  }
  CHECK_THROWS(rcn::ParseStructure("\xff=1"), RCN_EINVALID, "not UTF-8");
}

void NumbersByName()
{
  CHECK(rcn::FindStructure(Two, "left kidney") == 1 && rcn::FindStructure(Two, "Leberläsion") == 2);
  CHECK_THROWS(
    rcn::FindStructure(Two, "spleen"), RCN_EINVALID, "Unknown structure 'spleen'; there are left kidney and Leberläsion.");
  CHECK_THROWS(rcn::FindStructure({}, "spleen"), RCN_EINVALID, "no structures were named.");
}

void StoredAndReadBack()
{
  const rcn::JsonObject object{ { "structures", rcn::StructuresJson(Two) } };
  const std::vector<rcn::Structure> back = rcn::StructuresFrom(rcn::JsonReader(object.Get(), "model"));
  CHECK(rcn::NamesOf(back) == rcn::NamesOf(Two) && back[1].Values == Two[1].Values);
  CHECK(rcn::StructuresFrom(rcn::JsonReader(rcn::JsonObject().Get(), "model")).empty());
  const rcn::JsonObject bad{ { "structures", rcn::StructuresJson({ { "a", { 1 } }, { "b", { 1 } } }) } };
  CHECK_THROWS(rcn::StructuresFrom(rcn::JsonReader(bad.Get(), "model")), RCN_EFORMAT, "model: the label value 1");
}

void ValuesInLabelMaps()
{
  CHECK((rcn::LabelValues({ { "a", { 5 } }, { "b", { 2, 9 } } }) == std::vector<uint8_t>{ 5, 2 }));
  CHECK((rcn::LabelValues(Two) == std::vector<uint8_t>{ 1, 2 }));
  CHECK((rcn::LabelValues({ { "a", { 5 } }, { "b", { 256 } } }) == std::vector<uint8_t>{ 1, 2 }));
}

void NamesOfFiles()
{
  CHECK(rcn::FileNameFrom("left kidney") == "left_kidney" && rcn::FileNameFrom("Leberläsion") == "Leberläsion");
  CHECK(rcn::FileNameFrom("../a:b") == "_._a_b" && rcn::FileNameFrom("-o") == "_o" && rcn::FileNameFrom("a\n") == "a_");
}

} // namespace

int main()
{
  RUN(Words);
  RUN(NumbersByName);
  RUN(StoredAndReadBack);
  RUN(ValuesInLabelMaps);
  RUN(NamesOfFiles);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
