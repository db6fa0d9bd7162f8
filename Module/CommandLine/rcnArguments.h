// SPDX-License-Identifier: Apache-2.0
/// Options of a command, described once (they give parsing, --help, the man page and bash completion),
/// and the words a person typed. Knows no images, so that it can be tested and fuzzed alone.
#ifndef rcnArguments_h
#define rcnArguments_h

#include <map>
#include <string>
#include <vector>

#include "rcnDataList.h"

namespace rcn
{

/// What a command does with the file that an option names. No command overwrites what it reads (CheckFiles()).
enum class FileUse
{
  None,
  Read,      ///< a file or a folder
  ReadNamed, ///< NAME=FILE, or a FILE
  ReadRater, ///< as ParseRater() takes it
  ReadList,  ///< a data list, with the files of its cases
  Written
};

/// One option of a command.
struct Option
{
  std::string Name;     ///< "--method"; "-o" where a short form is all there is; "FILE": words without an option's name
  std::string Argument; ///< what follows, e.g. "FILE"; empty: a switch
  std::string Help;
  std::vector<std::string> Choices = {}; ///< the words allowed, for checking, help and completion
  bool Repeats = false;
  FileUse Use = FileUse::None;
};

/// The options a person gave.
class Arguments
{
public:
  bool Has(const std::string& name) const { return this->Values_.count(name) > 0; }
  /// The last value given, or the fallback.
  std::string Get(const std::string& name, const std::string& fallback = "") const;
  std::vector<std::string> GetAll(const std::string& name) const;
  /// Everything that was given, by name.
  const std::map<std::string, std::vector<std::string>>& Values() const { return this->Values_; }
  /// Throw Error (RCN_EINVALID) that names the option when it is no such number.
  long long GetInteger(const std::string& name, long long fallback, long long low, long long high) const;
  double GetNumber(const std::string& name, double fallback) const;
  /// What was typed, after the program's and the command's name, quoted where a shell needs it.
  std::string CommandLine(const std::string& begin) const;
  /// As if the person had given it.
  void Set(const std::string& name, const std::string& value) { this->Values_[name] = { value }; }

private:
  friend Arguments ParseArguments(const std::vector<std::string>&, const std::string&, const std::vector<Option>&);
  std::map<std::string, std::vector<std::string>> Values_;
  std::vector<std::string> Words_;
};

/// Throws Error (RCN_EINVALID) for words that do not fit; `program`, such as "rater-consensus fuse", is where its sentence
/// sends a person for help.
Arguments ParseArguments(const std::vector<std::string>& words, const std::string& program, const std::vector<Option>& options);

/// Options that several commands have.
std::vector<Option> CaseOptions();   ///< --rater, --image, --data, --resample, ...
std::vector<Option> OutputOptions(); ///< --json, and RunOptions()
std::vector<Option> RunOptions();    ///< --threads, --quiet
std::vector<Option> ViewOptions();   ///< of `view`, and of the viewer itself
Option ScaleOption();                ///< --scale, for whatever reads predictions
double ScaleFrom(const Arguments& arguments);
/// CaseOptions() have these, too.
Option StructureOption();  ///< --structure, one of several
Option ResampleOption();   ///< --resample
Option UnansweredOption(); ///< --unanswered
std::vector<Option> Join(std::vector<Option> a, const std::vector<Option>& b);

/// The list behind --data (or another option), of the --structure alone where one is asked for. Throws Error, also for a
/// structure that is not there. `whole`: of all structures all the same.
DataList DataListFrom(const Arguments& arguments, const std::string& option = "--data", bool whole = false);

/// The masks behind --rater. Throws Error that names the option.
std::vector<RaterFile> RatersFrom(const Arguments& arguments);

/// The one case behind --rater, --image and --label, of the --structure alone where one is asked for.
Case CaseFrom(const Arguments& arguments, bool whole = false);

} // namespace rcn

#endif
