// SPDX-License-Identifier: Apache-2.0
#include "rcnNames.h"

#ifdef RCN_HAVE_NETWORKS
#include "rcn/rcn_train.h"
#endif

namespace rcn
{

namespace
{

/// The core has the names, which are in files and options and never change; the words for people are here alone, and may.
struct Words
{
  const char *Label, *Meaning;
};

/// Names from the core, words from a table in the core's order. Ends with the shorter of both; the test checks that
/// neither is.
template <class Name, size_t Count> std::vector<Choice> Make(const Name& name, const Words (&words)[Count])
{
  std::vector<Choice> choices;
  for (int value = 0; value < static_cast<int>(Count) && name(value); ++value)
  {
    choices.push_back({ value, name(value), words[value].Label, words[value].Meaning });
  }
  return choices;
}

template <class Enum> bool ParseIn(Enum& out, const std::vector<Choice>& choices, const std::string& name)
{
  const Choice* const choice = FindChoice(choices, name);
  if (choice)
  {
    out = static_cast<Enum>(choice->Value);
  }
  return choice != nullptr;
}

} // namespace

// Each list is made once and lives as long as the program: the pointers in it can be kept.
const std::vector<Choice>& Methods()
{
  static const Words words[] = {
    { "How many raters (levels)", "how many raters marked each voxel" },
    { "One rater, drawn at random", "the mask of one rater, drawn at random" },
    { "Majority", "what at least half of the raters marked" },
    { "Share of raters", "the share of the raters who marked each voxel" },
    { "Share of raters, smoothed", "the share, smoothed with a Gaussian" },
    { "STAPLE", "the probability of the true segmentation, estimated with each rater's sensitivity and specificity" },
    { "SIMPLE", "the majority of the raters who agree well with the others" },
    { "Share of raters, smoothed near borders (SVLS)", "spatially varying label smoothing" },
  };
  static const std::vector<Choice> choices =
    Make([](int value) { return rcn_method_name(static_cast<rcn_method>(value)); }, words);
  return choices;
}

const std::vector<Choice>& Readouts()
{
  static const Words words[] = {
    { "Majority", "the probability that a majority of the raters marks the voxel; a tie counts" },
    { "Expected share", "the share of the raters expected to mark the voxel" },
    { "At least", "the probability that at least this many raters mark the voxel" },
    { "More than half", "the probability that more than half of the raters mark the voxel; a tie does not count" },
  };
  static const std::vector<Choice> choices =
    Make([](int value) { return rcn_readout_name(static_cast<rcn_readout>(value)); }, words);
  return choices;
}

const std::vector<Choice>& Corrections()
{
  static const Words words[] = {
    { "Temperature", "one factor on the logits" },
    { "Platt", "factor and offset on the logit" },
    { "Beta", "a beta curve" },
    { "Isotonic", "any rising curve; needs more cases than the others" },
  };
  static const std::vector<Choice> choices =
    Make([](int value) { return rcn_recalib_name(static_cast<rcn_recalib_method>(value)); }, words);
  return choices;
}

const std::vector<Choice>& Regions()
{
  static const Words words[] = {
    { "Whole image", "all voxels" },
    { "Around the marks", "the box around everything that any rater marked, with a margin" },
    { "Near the contour", "voxels near the border of the majority" },
    { "Disputed voxels", "voxels that some raters marked and others did not" },
  };
  static const std::vector<Choice> choices =
    Make([](int value) { return rcn_region_name(static_cast<rcn_region>(value)); }, words);
  return choices;
}

#ifdef RCN_HAVE_NETWORKS

const std::vector<Choice>& Strategies()
{
  static const Words words[] = {
    { "How many raters mark a voxel",
      "levels, by their likelihood and RPS: a score of each voxel, and a threshold for each number of raters" },
    { "How many raters mark a voxel (RPS)",
      "levels, by binary cross-entropy and the ranked probability score, as in the paper" },
    { "One rater, drawn each time", "the mask of one rater, drawn anew for every sample" },
    { "Majority", "what at least half of the raters marked" },
    { "Share of raters", "the share of the raters who marked each voxel" },
    { "Share of raters, smoothed", "the share, smoothed with a Gaussian" },
    { "STAPLE mask", "the mask estimated by STAPLE" },
    { "SIMPLE mask", "the majority of the raters who agree well with the others" },
    { "Share of raters, smoothed near borders (SVLS)", "spatially varying label smoothing" },
    { "Levels, cross-entropy", "levels, by cross-entropy, without their order" },
    { "Levels, Brier score", "levels, by the Brier score, without their order" },
    { "Levels, earth mover's distance", "levels, by the squared earth mover's distance" },
    { "Levels, CORN", "levels, by conditional ordinal regression (CORN)" },
    { "Levels, CORAL", "levels, by rank-consistent ordinal regression (CORAL)" },
    { "Levels, cumulative link", "levels, by a cumulative link model" },
    { "Levels, binomial", "levels, as a binomial distribution" },
    { "Levels, beta-binomial", "levels, as a beta-binomial distribution with one correlation for all voxels" },
    { "Levels, beta-binomial per voxel",
      "levels, as a beta-binomial distribution with the correlation of the raters at each voxel" },
  };
  static const std::vector<Choice> choices = Make(rcn_strategy_name, words);
  return choices;
}

const std::vector<Choice>& StructureStrategies()
{
  static const Words words[] = {
    { "How many raters give each label",
      "the labels of all raters, by their likelihood: the expected share of each label and the correlation of the raters" },
    { "Share of raters", "the share of the raters who gave each label" },
    { "Most frequent label", "the label that most raters gave" },
    { "How many raters mark each structure (RPS)", "levels of each structure by itself, as in the paper" },
  };
  static const std::vector<Choice> choices = Make(rcn_strategy_structures_name, words);
  return choices;
}

const std::vector<Choice>& Networks()
{
  static const Words words[] = {
    { "U-Net", "small and fast" },
    { "FPN, ResNet-18", "feature pyramid on a ResNet with 18 layers" },
    { "FPN, ResNet-34", "feature pyramid on a ResNet with 34 layers" },
    { "FPN, ResNet-50", "feature pyramid on a ResNet with 50 layers" },
    { "U-Net, 3-D", "for volumes" },
  };
  static const std::vector<Choice> choices = Make([](int value) { return rcn_arch_name(static_cast<rcn_arch>(value)); }, words);
  return choices;
}

#else

const std::vector<Choice>& Strategies()
{
  static const std::vector<Choice> none;
  return none;
}

const std::vector<Choice>& StructureStrategies()
{
  return Strategies();
}

const std::vector<Choice>& Networks()
{
  return Strategies();
}

#endif

const Choice* FindChoice(const std::vector<Choice>& choices, const std::string& name)
{
  for (const Choice& choice : choices)
  {
    if (name == choice.Name)
    {
      return &choice;
    }
  }
  return nullptr;
}

const Choice* FindChoice(const std::vector<Choice>& choices, int value)
{
  return value >= 0 && value < static_cast<int>(choices.size()) ? &choices[value] : nullptr;
}

bool Parse(rcn_method& out, const std::string& name)
{
  return ParseIn(out, Methods(), name);
}

bool Parse(rcn_readout& out, const std::string& name)
{
  return ParseIn(out, Readouts(), name);
}

bool Parse(rcn_recalib_method& out, const std::string& name)
{
  return ParseIn(out, Corrections(), name);
}

bool Parse(rcn_region& out, const std::string& name)
{
  return ParseIn(out, Regions(), name);
}

bool Parse(rcn_arch& out, const std::string& name)
{
  return ParseIn(out, Networks(), name);
}

std::vector<std::string> ChoiceNames(const std::vector<Choice>& choices)
{
  std::vector<std::string> names;
  for (const Choice& choice : choices)
  {
    names.push_back(choice.Name);
  }
  return names;
}

// For messages: "majority, expected or median".
std::string ChoicesText(const std::vector<Choice>& choices)
{
  std::string text;
  for (const Choice& choice : choices)
  {
    text += (text.empty() ? "" : &choice == &choices.back() ? " or " : ", ") + std::string(choice.Name);
  }
  return text;
}

// For the help: each name with its meaning.
std::string ChoicesHelp(const std::vector<Choice>& choices)
{
  std::string text;
  for (const Choice& choice : choices)
  {
    text += (text.empty() ? "" : " ") + std::string(choice.Name) + ": " + choice.Meaning + ".";
  }
  return text;
}

// ---- readouts --------------------------------------------------------------------------------------

const char* const ReadoutChoices = "majority, expected, at-least:T (such as at-least:2) or more-than-half";

std::string ReadoutText(rcn_readout readout, int atLeast)
{
  return rcn_readout_name(readout) + (readout == RCN_READOUT_AT_LEAST ? ":" + std::to_string(atLeast) : "");
}

std::string ReadoutLabel(rcn_readout readout, int atLeast)
{
  const std::string label = FindChoice(Readouts(), readout)->Label;
  return readout != RCN_READOUT_AT_LEAST ? label
                                         : label + " " + std::to_string(atLeast) + (atLeast == 1 ? " rater" : " raters");
}

bool ParseReadout(rcn_readout& readout, int& atLeast, const std::string& text)
{
  const std::string::size_type colon = text.find(':');
  rcn_readout kind;
  // "at-least" needs its number, and no other has one.
  if (!Parse(kind, text.substr(0, colon)) || (kind == RCN_READOUT_AT_LEAST) != (colon != std::string::npos))
  {
    return false;
  }
  const std::string number = colon == std::string::npos ? "0" : text.substr(colon + 1);
  // Two digits are enough for RCN_MAX_RATERS, and cannot overflow.
  if (number.empty() || number.size() > 2 || number.find_first_not_of("0123456789") != std::string::npos)
  {
    return false;
  }
  readout = kind;
  atLeast = std::stoi(number);
  return true;
}

} // namespace rcn
