// SPDX-License-Identifier: Apache-2.0
/// What a person can choose: methods of fusion, strategies of training, readouts, corrections, regions and networks.
///
/// One table for all shells: the name of a choice in files and options, its label on a screen, and its meaning in a few words.
/// Names are the core's (rcn_method_name() and the like), in its order; labels and meanings are written here and nowhere else.
/// Parse() takes names only.
#ifndef rcnNames_h
#define rcnNames_h

#include <string>
#include <vector>

#include "rcn/rcn_calib.h"
#include "rcn/rcn_fusion.h"
#include "rcn/rcn_net.h"
#include "rcn/rcn_recalib.h"
#include "rcn/rcn_region.h"

namespace rcn
{

struct Choice
{
  int Value;           ///< of the core's enumeration; of a strategy its index
  const char* Name;    ///< in files and options: "soft-gaussian"
  const char* Label;   ///< on a screen: "Share of raters, smoothed"
  const char* Meaning; ///< in help and tool tips: "the share, smoothed with a Gaussian"
};

const std::vector<Choice>& Methods();     ///< rcn_method
const std::vector<Choice>& Readouts();    ///< rcn_readout
const std::vector<Choice>& Corrections(); ///< rcn_recalib_method
const std::vector<Choice>& Regions();     ///< rcn_region
/// Empty in a build without networks.
const std::vector<Choice>& Strategies();          ///< rcn_strategy_name()
const std::vector<Choice>& StructureStrategies(); ///< rcn_strategy_structures_name(): of several structures
const std::vector<Choice>& Networks();            ///< rcn_arch

/// The choice of that name or value; null when there is none.
const Choice* FindChoice(const std::vector<Choice>& choices, const std::string& name);
const Choice* FindChoice(const std::vector<Choice>& choices, int value);

/// False, and `out` unchanged, when there is no such name.
bool Parse(rcn_method& out, const std::string& name);
bool Parse(rcn_readout& out, const std::string& name);
bool Parse(rcn_recalib_method& out, const std::string& name);
bool Parse(rcn_region& out, const std::string& name);
bool Parse(rcn_arch& out, const std::string& name);

/// For the options of a command: { "whole", "box", "band", "disputed" }.
std::vector<std::string> ChoiceNames(const std::vector<Choice>& choices);
/// For sentences: "whole, box, band or disputed".
std::string ChoicesText(const std::vector<Choice>& choices);
/// For help: "orc: how many raters marked each voxel. random: ...".
std::string ChoicesHelp(const std::vector<Choice>& choices);

// ---- readouts ---------------------------------------------------------------------------------------
// One of them has a number: at-least:2 is the probability that at least two raters mark a voxel.

/// "majority", "expected", "at-least:2", "more-than-half".
std::string ReadoutText(rcn_readout readout, int atLeast);
/// On a screen: "Majority", "At least 2 raters".
std::string ReadoutLabel(rcn_readout readout, int atLeast);
/// The other way round; false, and nothing changed, when it is none of these. `atLeast` becomes 0 for all but at-least:T.
bool ParseReadout(rcn_readout& readout, int& atLeast, const std::string& text);
/// What ParseReadout() takes, for help and sentences.
extern const char* const ReadoutChoices;

} // namespace rcn

#endif
