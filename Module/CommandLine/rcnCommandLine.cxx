// SPDX-License-Identifier: Apache-2.0
#include "rcnCommandLine.h"

#include <cmath>
#include <filesystem>
#include <memory>

#include "rcnPredictionFolder.h"
#include "rcnProcesses.h"

namespace rcn
{

// ---- files -----------------------------------------------------------------------------------------

namespace
{

/// What function() returns; nothing where it throws Error. The files of a command are looked up before it runs, and the command
/// itself reports what is wrong with them.
template <class Function> auto Try(const Function& function) -> decltype(function())
{
  try
  {
    return function();
  }
  catch (const Error&)
  {
    return {};
  }
}

/// The data list behind an option. Empty for what is not a regular file: a pipe can be read only once.
DataList ListOf(const std::string& path)
{
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ? Try([&] { return ReadDataList(path); }) : DataList();
}

/// What a command reads from a folder: the predictions of the list's cases; without a list the folder itself.
std::vector<NamedFile> FilesIn(const std::string& folder, const std::string& name, const DataList& list)
{
  if (list.Cases.empty())
  {
    return { { name, folder } };
  }
  std::vector<NamedFile> files = { { name, PredictionFolder::ManifestOf(folder) } };
  // Opened once: its manifest is as long as the list.
  const auto predictions = Try([&] { return std::make_unique<PredictionFolder>(folder); });
  for (const Case& one : list.Cases)
  {
    const std::string file = predictions ? Try([&] { return predictions->Find(one.Id); }) : "";
    if (!file.empty())
    {
      files.push_back({ name, file });
    }
  }
  return files;
}

/// The file or folder that one value of an option names.
NamedFile FileOf(const Option& option, const std::string& value)
{
  std::error_code ignored;
  if (option.Use == FileUse::ReadRater)
  {
    const RaterFile rater = Try([&] { return ParseRater(value); });
    return { option.Name + (rater.Name.empty() ? "" : " " + rater.Name), rater.Path };
  }
  const bool named = option.Use == FileUse::ReadNamed && !std::filesystem::exists(value, ignored);
  return { option.Name, named ? value.substr(value.find('=') + 1) : value };
}

/// `list`: of --data.
std::vector<NamedFile> FilesRead(const std::vector<Option>& options, const Arguments& arguments, const DataList& list)
{
  std::vector<NamedFile> files;
  std::error_code ignored;
  for (const Option& option : options)
  {
    if (option.Use == FileUse::None || option.Use == FileUse::Written)
    {
      continue;
    }
    for (const std::string& value : arguments.GetAll(option.Name))
    {
      std::vector<NamedFile> more;
      if (option.Use == FileUse::ReadList)
      {
        more = FilesOf(option.Name == "--data" ? list : ListOf(value), option.Name);
      }
      else
      {
        const NamedFile file = FileOf(option, value);
        more = std::filesystem::is_directory(file.Path, ignored) ? FilesIn(file.Path, file.Name, list)
          : file.Path.empty()                                    ? std::vector<NamedFile>()
                                                                 : std::vector<NamedFile>{ file };
      }
      files.insert(files.end(), more.begin(), more.end());
    }
  }
  return files;
}

} // namespace

std::string CheckFiles(const Command& command, const Arguments& arguments)
{
  const DataList list = ListOf(arguments.Get("--data"));
  std::vector<NamedFile> outputs;
  for (const Option& option : command.Options)
  {
    if (option.Use == FileUse::Written && arguments.Has(option.Name))
    {
      outputs.push_back({ option.Name, arguments.Get(option.Name) });
    }
  }
  if (command.Outputs)
  {
    const std::vector<NamedFile> more = Try([&] { return command.Outputs(arguments, list); });
    outputs.insert(outputs.end(), more.begin(), more.end());
  }
  return CheckOverwrite(outputs, FilesRead(command.Options, arguments, list));
}

// ---- results ---------------------------------------------------------------------------------------

double Stopwatch::Lap()
{
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - this->Start_).count();
  this->Start_ = now;
  return seconds;
}

json_t* Seconds::Json() const
{
  return JsonObject{ { "read", this->Read }, { "compute", this->Compute }, { "write", this->Write } }.Release();
}

void Seconds::Add(const json_t* json)
{
  this->Read += json_number_value(json_object_get(json, "read"));
  this->Compute += json_number_value(json_object_get(json, "compute"));
  this->Write += json_number_value(json_object_get(json, "write"));
}

std::vector<std::string> StringsFrom(const json_t* array)
{
  std::vector<std::string> strings;
  for (size_t i = 0; i < json_array_size(array); ++i)
  {
    strings.push_back(json_string_value(json_array_get(array, i)));
  }
  return strings;
}

// ---- cases -----------------------------------------------------------------------------------------

namespace
{

int ThreadsFrom(const Arguments& arguments)
{
  const auto threads = static_cast<int>(arguments.GetInteger("--threads", 0, 0, 4096));
  return threads ? threads : Processes::All().Threads();
}

} // namespace

WriteOptions WriteOptionsFrom(const Arguments& arguments, const std::string& note)
{
  return { Terminal::IsInterrupted, note, ThreadsFrom(arguments) };
}

WorkspaceOptions WorkspaceOptionsFrom(const Arguments& arguments)
{
  WorkspaceOptions options;
  options.Threads = ThreadsFrom(arguments);
  options.Resample = arguments.Has("--resample");
  options.Tolerance = arguments.GetNumber("--tolerance", RCN_GEOMETRY_TOLERANCE);
  options.HasUnanswered = arguments.Has("--unanswered");
  options.Unanswered = arguments.GetInteger("--unanswered", 0, -(1LL << 53), 1LL << 53);
  // A rater of many cases, or of several structures, may well have marked nothing.
  options.AbsentLabelIsError = !arguments.Has("--data") && !arguments.Has("--structure");
  if (options.Tolerance < 0)
  {
    throw Error(RCN_EINVALID, "--tolerance must not be negative.");
  }
  return options;
}

bool Print(const Arguments& arguments, const std::string& text)
{
  const bool taken = arguments.Get("--json") == "-" || arguments.Get("--csv") == "-" || arguments.Get("--csv-long") == "-" ||
    arguments.Get("-o") == "-";
  const bool shown = !taken && !arguments.Has("--quiet") && Processes::All().IsFirst();
  if (shown)
  {
    WriteText("-", text);
  }
  return shown;
}

void WriteResults(const Arguments& arguments, const Json& results)
{
  if (arguments.Has("--json") && Processes::All().IsFirst())
  {
    WriteText(arguments.Get("--json"), DocumentText(results.Get()));
  }
}

void CheckTextOutputs(const Arguments& arguments)
{
  if (!Processes::All().IsFirst())
  {
    return; // the first process writes them
  }
  std::string onOutput; // the option whose text goes to standard output
  for (const char* option : { "--json", "--csv", "--csv-long" })
  {
    if (arguments.Get(option) == "-" && !onOutput.empty())
    {
      throw Error(RCN_EINVALID, "Only one of " + onOutput + " and " + option + " can go to standard output.");
    }
    onOutput = arguments.Get(option) == "-" ? option : onOutput;
    const std::string sentence = arguments.Has(option) ? CheckText(arguments.Get(option)) : "";
    if (!sentence.empty())
    {
      throw Error(RCN_EIO, std::string(option) + " " + sentence);
    }
  }
}

void CheckCaseOrList(const Arguments& arguments)
{
  if (arguments.Has("--data") == arguments.Has("--rater"))
  {
    throw Error(RCN_EINVALID, "Give either masks with --rater NAME=FILE or a list with --data LIST.");
  }
}

CaseLoop LoopFor(const Arguments& arguments, Terminal& terminal)
{
  CaseLoop loop;
  loop.Split = arguments.Get("--split");
  loop.Begin = [&terminal](const std::string& id, size_t index, size_t count) {
    terminal.ThrowIfInterrupted();
    terminal.SetCase(id, index, count);
  };
  loop.Remark = [&terminal](const std::string& sentence) { terminal.Remark(sentence); };
  loop.Warn = [&terminal](const std::string& sentence) { terminal.Warn(sentence); };
  loop.SentenceOf = [](const Error& error) { return SentenceOf(error); };
  return loop;
}

} // namespace rcn
