// SPDX-License-Identifier: Apache-2.0
/// A command of rater-consensus as a program that Slicer starts by itself (a "command-line module").
///
/// Slicer asks such a program once, with --xml, what it wants, builds a panel from the answer, and then starts it with the
/// values: volumes of the scene as files in its temporary folder, everything else as text. It reads progress from standard
/// output and results, one "name = value" a line, from the file behind --returnparameterfile.
///
/// What a program offers is a table over the command's own options: words of help and choices come from there, and Xml() fails
/// when the table and the command no longer fit together. The build writes the description, so it stops then.
#ifndef rcnSlicerProgram_h
#define rcnSlicerProgram_h

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "rcnCommandLine.h"

namespace rcn
{

/// One thing a person can set in the panel.
struct SlicerParameter
{
  std::string
    Tag; ///< Slicer's kind: "image", "file", "directory", "boolean", "integer", "double", "string", "string-enumeration", "table"
  std::string Name;               ///< letters, digits and _ only: it is the flag, too
  std::string Label;              ///< on screen
  std::string Option;             ///< the command's option that it stands for, if any
  std::string Default = {};       ///< Slicer always gives numbers and choices, so they need one
  std::string Attributes = {};    ///< of the XML element
  std::string Help = {};          ///< empty: the option's
  std::string Unset = {};         ///< this value means that the option is not given
  std::vector<double> Range = {}; ///< minimum, maximum, step
  bool IsOutput = false;
  bool IsPlanned = false; ///< the program's Plan gives the option, not the table
};

struct SlicerGroup
{
  std::string Label, Description;
  bool IsAdvanced;
  std::vector<SlicerParameter> Parameters;
};

/// One result that Slicer shows in the panel.
struct SlicerResult
{
  std::string Tag, Name, Label, Help;
  std::string Key; ///< where it is in the command's JSON: "ci.mr_ece.0"
};

/// What the command is to be started with, and what is left to do with its answer.
struct SlicerPlan
{
  std::vector<std::string> Words;
  std::function<void(const json_t* json)> Finish = {};
};

struct SlicerProgram
{
  std::string Name, Title, Description;
  Command What;
  std::vector<SlicerGroup> Groups;
  std::vector<SlicerResult> Results;
  std::set<std::string> LeftOut; ///< the command's options that have no place in a panel
  /// Adds to the words of the plan what the table cannot say. `given` has the panel's values by "--name".
  std::function<void(SlicerPlan& plan, const Arguments& given)> Plan;

  /// The description for Slicer; throws Error (RCN_EINTERNAL) when it does not fit the command.
  std::string Xml() const;
  /// As main().
  int Main(int argc, char** argv) const;

private:
  std::vector<Option> PanelOptions() const;
  int Run(const std::vector<std::string>& words) const;
  int Start(const Arguments& given) const;
  /// The command's sentence in the panel's words: labels where it has options and the scene's temporary files.
  void CheckOutputs(const Arguments& given, const Arguments& planned) const; ///< throws Error when they are inputs
  std::string InPanelWords(std::string sentence, const Arguments& given) const;
};

// ---- what the programs share -----------------------------------------------------------------------

/// Slicer's panels have no list of volumes, so raters have numbered places.
const int SlicerRaterPlaces = 8;
std::vector<SlicerGroup> SlicerRaterGroups();
std::vector<std::string> SlicerRaterPlaceNames(); ///< "rater1", "rater2", ...
/// "--rater ..." for every place that is taken; throws Error when none is.
void AddRaters(std::vector<std::string>& words, const Arguments& given);

/// A data list instead of volumes of the scene; `more` comes below it.
SlicerGroup SlicerListGroup(const std::vector<SlicerParameter>& more);
/// True with a data list. Throws Error when neither or both of volumes and list are given; `volumes` are their names.
bool IsList(const Arguments& given, const std::vector<std::string>& volumes, const std::string& advice);

/// The value of a parameter; without it, Error with the sentence.
std::string Required(const Arguments& given, const std::string& name, const std::string& sentence);

/// What a person reads in one line: numbers as they are in the JSON, lists with commas, how many where they are objects.
std::string TextOf(const json_t* value);

/// Reading, threads and the file for machines.
SlicerGroup SlicerDetailGroup(const std::vector<SlicerParameter>& first, bool masks);

} // namespace rcn

#endif
