// SPDX-License-Identifier: Apache-2.0
#include "rcnNames.h"

#include <set>

#ifdef RCN_HAVE_NETWORKS
#include "rcn/rcn_train.h"
#endif

#include "rcnTest.h"

namespace
{

using rcn::Choice;

/// As many choices as the core has names; each name leads back to its value; nobody reads two choices with the same label.
template <class Name> void CheckTable(const std::vector<Choice>& choices, const Name& name)
{
  size_t count = 0;
  while (name(static_cast<int>(count)))
  {
    ++count;
  }
  CHECK(count > 0 && choices.size() == count);
  std::set<std::string> labels;
  for (const Choice& choice : choices)
  {
    CHECK(std::string(choice.Name) == name(choice.Value));
    CHECK(rcn::FindChoice(choices, choice.Name) == &choice && rcn::FindChoice(choices, choice.Value) == &choice);
    CHECK(choice.Label[0] && choice.Meaning[0] && labels.insert(choice.Label).second);
  }
  CHECK(!rcn::FindChoice(choices, "Majority") && !rcn::FindChoice(choices, "") && !rcn::FindChoice(choices, -1));
  CHECK(!rcn::FindChoice(choices, static_cast<int>(count)));
}

template <class Enum> void CheckParse(const std::vector<Choice>& choices)
{
  for (const Choice& choice : choices)
  {
    Enum value = static_cast<Enum>(-1);
    CHECK(rcn::Parse(value, choice.Name) && static_cast<int>(value) == choice.Value);
    CHECK(!rcn::Parse(value, std::string(choice.Name) + " ") && static_cast<int>(value) == choice.Value);
  }
}

void AllNamesOfTheCore()
{
  CheckTable(rcn::Methods(), [](int v) { return rcn_method_name(static_cast<rcn_method>(v)); });
  CheckTable(rcn::Readouts(), [](int v) { return rcn_readout_name(static_cast<rcn_readout>(v)); });
  CheckTable(rcn::Corrections(), [](int v) { return rcn_recalib_name(static_cast<rcn_recalib_method>(v)); });
  CheckTable(rcn::Regions(), [](int v) { return rcn_region_name(static_cast<rcn_region>(v)); });
  CheckParse<rcn_method>(rcn::Methods());
  CheckParse<rcn_readout>(rcn::Readouts());
  CheckParse<rcn_recalib_method>(rcn::Corrections());
  CheckParse<rcn_region>(rcn::Regions());
#ifdef RCN_HAVE_NETWORKS
  CheckTable(rcn::Strategies(), rcn_strategy_name);
  CheckTable(rcn::Networks(), [](int v) { return rcn_arch_name(static_cast<rcn_arch>(v)); });
  CheckParse<rcn_arch>(rcn::Networks());
#endif
}

void Texts()
{
  CHECK(rcn::ChoiceNames(rcn::Regions()) == (std::vector<std::string>{ "whole", "box", "band", "disputed" }));
  CHECK(rcn::ChoicesText(rcn::Regions()) == "whole, box, band or disputed");
  CHECK(rcn::ChoicesHelp(rcn::Regions()).rfind("whole: all voxels. box: ", 0) == 0);
  for (const Choice& readout : rcn::Readouts())
  {
    CHECK(std::string(rcn::ReadoutChoices).find(readout.Name) != std::string::npos);
  }
}

void ReadoutsWithANumber()
{
  rcn_readout readout = RCN_READOUT_EXPECTED;
  int atLeast = 7;
  for (const char* wrong : { "", "at-least", "at-least:", "at-least:x", "at-least:-1", "at-least:100", "majority:2", "half" })
  {
    CHECK(!rcn::ParseReadout(readout, atLeast, wrong) && readout == RCN_READOUT_EXPECTED && atLeast == 7);
  }
  for (const char* text : { "majority", "expected", "more-than-half", "at-least:1", "at-least:12" })
  {
    CHECK(rcn::ParseReadout(readout, atLeast, text) && rcn::ReadoutText(readout, atLeast) == text);
  }
  CHECK(readout == RCN_READOUT_AT_LEAST && atLeast == 12);
  CHECK(rcn::ParseReadout(readout, atLeast, "majority") && atLeast == 0);
  CHECK(rcn::ReadoutLabel(RCN_READOUT_MAJORITY, 0) == "Majority");
  CHECK(rcn::ReadoutLabel(RCN_READOUT_AT_LEAST, 1) == "At least 1 rater");
  CHECK(rcn::ReadoutLabel(RCN_READOUT_AT_LEAST, 2) == "At least 2 raters");
}

/// A key goes with an error wherever the error goes.
void ErrorsCarryAKey()
{
  const rcn::Error error(RCN_EDATA, "a.png holds\nwhole numbers.", "scale");
  CHECK(std::string(error.what()) == "a.png holds whole numbers." && std::string(error.Key()) == "scale");
  const rcn::Error in = error.In("c01");
  CHECK(std::string(in.what()) == "c01: a.png holds whole numbers." && std::string(in.Key()) == "scale");
  CHECK(in.Status() == RCN_EDATA);
  CHECK(std::string(rcn::Error(RCN_ECANCELLED, "Canceled.").In("c01").what()) == "Canceled.");
}

} // namespace

int main()
{
  RUN(AllNamesOfTheCore);
  RUN(Texts);
  RUN(ReadoutsWithANumber);
  RUN(ErrorsCarryAKey);
  return Failures != 0;
}
