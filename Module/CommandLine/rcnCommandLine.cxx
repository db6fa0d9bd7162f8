// SPDX-License-Identifier: Apache-2.0
#include "rcnCommandLine.h"

#include "rcn/rcn.h"
#include "rcnFileBeside.h"
#include "rcnPredictionFolder.h"
#include "rcnProcesses.h"
#include "rcnWayOut.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>

#include <unistd.h>

#include <itkObject.h>

namespace rcn
{

// ---- help, man page, completion --------------------------------------------------------------------

std::string Wrap(const std::string& text, size_t indent, size_t first)
{
  std::string out;
  size_t column = first;
  std::string::size_type at = 0;
  while (at < text.size())
  {
    std::string::size_type end = text.find(' ', at);
    end = end == std::string::npos ? text.size() : end;
    const std::string word = text.substr(at, end - at);
    if (column + word.size() > 96 && column > indent)
    {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += word + " ";
    column += word.size() + 1;
    at = end + 1;
  }
  while (!out.empty() && out.back() == ' ')
  {
    out.pop_back();
  }
  return out;
}

namespace
{

std::string HelpOf(const Option& option)
{
  std::string help = option.Help;
  if (!option.Choices.empty())
  {
    help += ": ";
    for (const std::string& choice : option.Choices)
    {
      help += (help.back() == ' ' ? "" : ", ") + choice;
    }
  }
  return help;
}

std::string ManEscape(const std::string& text)
{
  std::string out;
  for (const char c : text)
  {
    if (c == '\\' || c == '-')
    {
      out += '\\';
    }
    out += c;
  }
  return out[0] == '.' || out[0] == '\'' ? "\\&" + out : out;
}

} // namespace

std::string HelpText(const Command& command)
{
  std::string text = command.Summary + "\n\n";
  for (const std::string& usage : command.Usages)
  {
    text += "  rater-consensus " + command.Name + " " + usage + "\n";
  }
  text += "\n" + Wrap(command.Description, 0, 0) + "\n\n";
  size_t width = 0;
  for (const Option& option : command.Options)
  {
    width = std::max(width, option.Name.size() + 1 + option.Argument.size());
  }
  for (const Option& option : command.Options)
  {
    std::string left = option.Name + (option.Argument.empty() ? "" : " " + option.Argument);
    left.resize(width, ' ');
    text += "  " + left + "  " + Wrap(HelpOf(option), width + 4, width + 4) + "\n";
  }
  return text;
}

std::string ManPage(const std::vector<Command>& commands)
{
  std::string text = ".TH RATER\\-CONSENSUS 1 \"\" \"RaterConsensus " RCN_VERSION "\"\n.SH NAME\nrater\\-consensus "
                     "\\- agreement, consensus and calibration of several raters' segmentations\n.SH SYNOPSIS\n";
  for (const Command& command : commands)
  {
    for (const std::string& usage : command.Usages)
    {
      text += ".B rater\\-consensus " + ManEscape(command.Name) + "\n" + ManEscape(usage) + "\n.br\n";
    }
  }
  text += ".SH COMMANDS\n";
  for (const Command& command : commands)
  {
    text += ".SS " + ManEscape(command.Name) + "\n" + ManEscape(command.Description) + "\n";
    for (const Option& option : command.Options)
    {
      text += ".TP\n.B " + ManEscape(option.Name) + " \\fI" + ManEscape(option.Argument + " ") + "\\fR\n" +
        ManEscape(HelpOf(option)) + "\n";
    }
  }
  text += ".SH EXIT STATUS\n" + ManEscape(ExitCodesInWords) + "\n.SH NOTE\nFor research, not for clinical use.\n";
  return text;
}

std::string BashCompletion(const std::vector<Command>& commands)
{
  std::string names, cases;
  for (const Command& command : commands)
  {
    names += (names.empty() ? "" : " ") + command.Name;
    std::string words, choices;
    for (const Option& option : command.Options)
    {
      words += option.Name[0] == '-' ? (words.empty() ? "" : " ") + option.Name : "";
      if (!option.Choices.empty())
      {
        std::string list;
        for (const std::string& choice : option.Choices)
        {
          list += (list.empty() ? "" : " ") + choice;
        }
        choices += "      " + option.Name + ") COMPREPLY=($(compgen -W '" + list + "' -- \"$word\")); return ;;\n";
      }
    }
    cases += "    " + command.Name + ")\n      case $before in\n" + choices + "      esac\n      options='" + words + "' ;;\n";
  }
  return "# bash completion of rater-consensus\n"
         "_rater_consensus() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
    names +
    " --help --version' -- \"$word\")); return\n"
    "  fi\n"
    "  case ${COMP_WORDS[1]} in\n" +
    cases +
    "  esac\n"
    "  case $word in\n"
    "    -*) COMPREPLY=($(compgen -W \"$options --help\" -- \"$word\")) ;;\n"
    "    *=*) ;;\n"
    "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
    "  esac\n"
    "}\n"
    "complete -o default -o filenames -F _rater_consensus rater-consensus\n";
}

// ---- programs --------------------------------------------------------------------------------------

const char* const ExitCodesInWords =
  "0 done; 1 failed while working: cases were left out, the disk is full, out of memory; 2 wrong usage "
  "or bad input; 130 stopped with Ctrl-C (128 and the number of the signal).";

void BeginProgram()
{
  // A person sees one line, whatever went wrong; warnings of the libraries below are not for them.
  itk::Object::GlobalWarningDisplayOff();
  SetLibrariesQuiet(true);
  // A file that may not grow further is an error to report, not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
}

int RunProgram(const std::function<int()>& work, const std::function<void(const std::string&, int)>& fail)
{
  std::string sentence;
  int code = FailedWhileWorking;
  try
  {
    return work();
  }
  catch (const Error& error)
  {
    sentence = SentenceOf(error);
    switch (error.Status())
    {
      case RCN_ECANCELLED:
        code = Terminal::IsInterrupted() ? StoppedBySignal + Terminal::StopSignal() : FailedWhileWorking;
        break;
      case RCN_ENOMEM:
      case RCN_ESPACE:
      case RCN_EINTERNAL: break;
      default: code = WrongUsageOrInput;
    }
  }
  catch (const std::bad_alloc&)
  {
    sentence = "Out of memory.";
  }
  catch (const std::exception& error)
  {
    sentence = OneLine(error.what());
  }
  fail(sentence, code);
  return code;
}

// ---- files -----------------------------------------------------------------------------------------

namespace
{

/// The list behind an option; an empty one where there is none, or it cannot be read: the command itself says so. What is
/// no ordinary file can be read only once.
DataList ListOf(const std::string& path)
{
  std::error_code ignored;
  try
  {
    return std::filesystem::is_regular_file(path, ignored) ? ReadDataList(path) : DataList();
  }
  catch (const Error&)
  {
    return DataList();
  }
}

/// What a command reads of a folder: predictions of the list's cases, otherwise images.
std::vector<NamedFile> FilesIn(const std::string& folder, const std::string& name, const DataList& list)
{
  if (list.Cases.empty())
  {
    return { { name, folder } };
  }
  std::vector<NamedFile> files = { { name, PredictionFolder::ManifestOf(folder) } };
  std::unique_ptr<PredictionFolder> predictions;
  try
  {
    predictions = std::make_unique<PredictionFolder>(folder); // once: a manifest is as long as the list
  }
  catch (const Error&)
  {
    return files; // the command says what is wrong with the folder
  }
  for (const Case& one : list.Cases)
  {
    try
    {
      files.push_back({ name, predictions->Find(one.Id) });
    }
    catch (const Error&)
    {
      // none: nothing to overwrite
    }
  }
  return files;
}

/// `cases`: of --data, which is read once.
std::vector<NamedFile> FilesRead(const std::vector<Option>& options, const Arguments& arguments, const DataList& cases)
{
  std::vector<NamedFile> files;
  const auto add = [&files](const std::vector<NamedFile>& more) { files.insert(files.end(), more.begin(), more.end()); };
  std::error_code ignored;
  for (const Option& option : options)
  {
    for (std::string value : option.Use == FileUse::None ? std::vector<std::string>() : arguments.GetAll(option.Name))
    {
      std::string name = option.Name;
      switch (option.Use)
      {
        case FileUse::ReadList: add(FilesOf(name == "--data" ? cases : ListOf(value), name)); continue;
        case FileUse::Written: continue;
        case FileUse::ReadRater:
          try
          {
            const RaterFile rater = ParseRater(value);
            name += rater.Name.empty() ? "" : " " + rater.Name;
            value = rater.Path;
          }
          catch (const Error&)
          {
            continue; // the command says what is wrong with it
          }
          break;
        case FileUse::ReadNamed:
          if (!std::filesystem::exists(value, ignored))
          {
            value = value.substr(value.find('=') + 1);
          }
          break;
        default: break;
      }
      add(std::filesystem::is_directory(value, ignored) ? FilesIn(value, name, cases)
                                                        : std::vector<NamedFile>{ { name, value } });
    }
  }
  return files;
}

} // namespace

std::string CheckFiles(const Command& command, const Arguments& arguments)
{
  const DataList cases = ListOf(arguments.Get("--data"));
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
    try
    {
      const std::vector<NamedFile> more = command.Outputs(arguments, cases);
      outputs.insert(outputs.end(), more.begin(), more.end());
    }
    catch (const Error&)
    {
      // the command says what is wrong with its options
    }
  }
  return CheckOverwrite(outputs, FilesRead(command.Options, arguments, cases));
}

// ---- tables and numbers ----------------------------------------------------------------------------

namespace
{

/// Columns a UTF-8 text takes on a terminal, near enough: code points.
size_t WidthOf(const std::string& text)
{
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool LooksNumeric(const std::string& cell)
{
  return cell.empty() || cell == "–" || std::isdigit(static_cast<unsigned char>(cell[0])) ||
    (cell[0] == '-' && cell.size() > 1 && std::isdigit(static_cast<unsigned char>(cell[1])));
}

} // namespace

std::string Table::Text() const
{
  std::vector<size_t> width(this->Rows_[0].size(), 0);
  std::vector<bool> numeric(width.size(), this->Rows_.size() > 1);
  for (size_t r = 0; r < this->Rows_.size(); ++r)
  {
    for (size_t c = 0; c < width.size(); ++c)
    {
      const std::string& cell = this->Rows_[r][c];
      width[c] = std::max(width[c], WidthOf(cell));
      if (r > 0 && !LooksNumeric(cell))
      {
        numeric[c] = false;
      }
    }
  }
  std::string text;
  for (size_t r = 0; r < this->Rows_.size(); ++r)
  {
    std::string line;
    for (size_t c = 0; c < width.size(); ++c)
    {
      const std::string& cell = this->Rows_[r][c];
      const std::string space(width[c] - WidthOf(cell), ' ');
      line += (c ? "  " : "  ") + (numeric[c] ? space + cell : cell + space);
    }
    while (!line.empty() && line.back() == ' ')
    {
      line.pop_back();
    }
    text += line + "\n";
  }
  return text;
}

double Stopwatch::Lap()
{
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - this->Start_).count();
  this->Start_ = now;
  return seconds;
}

json_t* Seconds::Json() const
{
  json_t* object = json_object();
  json_object_set_new(object, "read", JsonNumber(this->Read));
  json_object_set_new(object, "compute", JsonNumber(this->Compute));
  json_object_set_new(object, "write", JsonNumber(this->Write));
  return object;
}

void Seconds::Add(const json_t* json)
{
  this->Read += json_number_value(json_object_get(json, "read"));
  this->Compute += json_number_value(json_object_get(json, "compute"));
  this->Write += json_number_value(json_object_get(json, "write"));
}

std::vector<double> NumbersFrom(const json_t* array)
{
  std::vector<double> numbers;
  for (size_t i = 0; i < json_array_size(array); ++i)
  {
    const json_t* one = json_array_get(array, i);
    numbers.push_back(json_is_number(one) ? json_number_value(one) : NAN);
  }
  return numbers;
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

// ---- terminal --------------------------------------------------------------------------------------

namespace
{

std::atomic<int> Interrupted{ 0 }; // the signal's number

void OnInterrupt(int signal)
{
  if (Interrupted.exchange(signal))
  {
    FileBeside::RemoveAll();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

} // namespace

Terminal::Terminal(const Arguments& arguments)
  : IsTerminal_(isatty(STDERR_FILENO) != 0), Quiet_(arguments.Has("--quiet")), Silent_(!Processes::All().IsFirst())
{
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  std::signal(SIGHUP, OnInterrupt);
}

Terminal::~Terminal()
{
  this->ClearLine();
}

void Terminal::ClearLine()
{
  if (this->Drawn_)
  {
    std::fputs("\r\033[K", stderr);
    this->Drawn_ = false;
  }
}

bool Terminal::Show(double fraction, const char* stage)
{
  if (Interrupted)
  {
    return true;
  }
  const auto now = std::chrono::steady_clock::now();
  if (this->IsTerminal_ && !this->Quiet_ && !this->Silent_ && now - this->Last_ > std::chrono::milliseconds(100))
  {
    this->Last_ = now;
    const int filled = static_cast<int>(20 * std::min(std::max(fraction, 0.0), 1.0) + 0.5);
    std::fprintf(stderr, "\r\033[K%s[%s%s] %3.0f %% %s", this->Case_.c_str(), std::string(filled, '#').c_str(),
      std::string(20 - filled, '.').c_str(), 100 * fraction, stage);
    std::fflush(stderr);
    this->Drawn_ = true;
  }
  return false;
}

void Terminal::Watch(Workspace& workspace)
{
  workspace.SetProgress([this](double fraction, const char* stage) { return this->Show(fraction, stage); });
}

void Terminal::SetCase(const std::string& name, size_t index, size_t count)
{
  this->Case_ = "case " + std::to_string(index + 1) + "/" + std::to_string(count) + " " + name + " ";
}

void Terminal::Say(const std::string& sentence, bool always)
{
  if (!sentence.empty() && !this->Silent_ && (always || !this->Quiet_))
  {
    this->ClearLine();
    std::fprintf(stderr, "%s\n", OneLine(sentence).c_str());
  }
}

int Terminal::StopSignal()
{
  return Interrupted;
}

void Terminal::ThrowIfInterrupted() const
{
  if (IsInterrupted())
  {
    throw Error(RCN_ECANCELLED, "Cancelled.");
  }
}

// ---- cases -----------------------------------------------------------------------------------------

WorkspaceOptions WorkspaceOptionsFrom(const Arguments& arguments)
{
  WorkspaceOptions options;
  options.Threads = static_cast<int>(arguments.GetInteger("--threads", 0, 0, 4096));
  if (options.Threads == 0)
  {
    options.Threads = Processes::All().Threads();
  }
  options.Resample = arguments.Has("--resample");
  options.Tolerance = arguments.GetNumber("--tolerance", RCN_GEOMETRY_TOLERANCE);
  options.HasUnanswered = arguments.Has("--unanswered");
  options.Unanswered = arguments.GetInteger("--unanswered", 0, -(1LL << 53), 1LL << 53);
  options.AbsentLabelIsError = !arguments.Has("--data");
  if (options.Tolerance < 0)
  {
    throw Error(RCN_EINVALID, "--tolerance must not be negative.");
  }
  return options;
}

void CheckTextOutputs(const Arguments& arguments)
{
  if (!Processes::All().IsFirst())
  {
    return; // the first process writes them
  }
  for (const char* option : { "--json", "--csv" })
  {
    const std::string sentence = arguments.Has(option) ? CheckText(arguments.Get(option)) : "";
    if (!sentence.empty())
    {
      throw Error(RCN_EIO, std::string(option) + " " + sentence);
    }
  }
  if (arguments.Get("--json") == "-" && arguments.Get("--csv") == "-")
  {
    throw Error(RCN_EINVALID, "Only one of --json and --csv can go to standard output.");
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
