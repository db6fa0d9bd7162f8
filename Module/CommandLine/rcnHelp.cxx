// SPDX-License-Identifier: Apache-2.0
#include "rcnHelp.h"

#include <algorithm>
#include <sstream>

#include "rcn/rcn.h"

namespace rcn
{

const char* const ExitCodesInWords =
  "0 done; 1 failed while working (cases were left out, the disk is full, out of memory); 2 wrong usage or bad input; "
  "130 stopped with Ctrl-C (128 + number of the signal).";

std::string Wrap(const std::string& text, size_t indent)
{
  constexpr size_t width = 96;
  std::istringstream words(text);
  std::string out, word;
  size_t column = indent;
  while (words >> word)
  {
    if (column > indent && column + 1 + word.size() > width)
    {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += (column > indent ? " " : "") + word;
    column += (column > indent ? 1 : 0) + word.size();
  }
  return out;
}

namespace
{

std::string HelpOf(const Option& option)
{
  std::string help = option.Help;
  for (const std::string& choice : option.Choices)
  {
    help += (&choice == &option.Choices.front() ? ": " : ", ") + choice;
  }
  return help;
}

/// In roff a backslash begins a command, "-" is a hyphen that cannot be copied, and a line that begins with a point or an
/// apostrophe is not text.
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

// Help, manual and completion are made from the same table that arguments are parsed with: an option cannot be missing from one
// of them.
std::string HelpText(const Command& command)
{
  std::string text = command.Summary + "\n\n";
  for (const std::string& usage : command.Usages)
  {
    text += "  rater-consensus " + command.Name + " " + usage + "\n";
  }
  text += "\n" + Wrap(command.Description) + "\n\n";
  // One column for all names, as wide as the longest.
  size_t width = 0;
  for (const Option& option : command.Options)
  {
    width = std::max(width, option.Name.size() + 1 + option.Argument.size());
  }
  for (const Option& option : command.Options)
  {
    std::string left = option.Name + (option.Argument.empty() ? "" : " " + option.Argument);
    left.resize(width, ' ');
    text += "  " + left + "  " + Wrap(HelpOf(option), width + 4) + "\n";
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
      // Words that are no options (files) are completed as files.
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

} // namespace rcn
