// SPDX-License-Identifier: Apache-2.0
#include "rcnTerminal.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstdio>

#include "rcnFile.h"
#include "rcnPlatform.h"
#include "rcnProcesses.h"

namespace rcn
{

// ---- tables ----------------------------------------------------------------------------------------

namespace
{

/// Columns of a UTF-8 text on a terminal: code points, which is right for the languages of Europe.
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
      line += "  " + (numeric[c] ? space + cell : cell + space);
    }
    while (!line.empty() && line.back() == ' ')
    {
      line.pop_back();
    }
    text += line + "\n";
  }
  return text;
}

// ---- terminal --------------------------------------------------------------------------------------

namespace
{

std::atomic<int> Interrupted{ 0 }; // number of the signal

/// The first signal asks to stop; the second one ends the program, after its temporary files are gone.
void OnInterrupt(int signal)
{
  if (Interrupted.exchange(signal))
  {
    AtomicFile::RemoveAll();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

} // namespace

Terminal::Terminal(const Arguments& arguments)
  : IsTerminal_(platform::StandardErrorIsTerminal()), Quiet_(arguments.Has("--quiet")), Silent_(!Processes::All().IsFirst())
{
  platform::OnStop(OnInterrupt);
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
  const auto now = std::chrono::steady_clock::now(); // drawing more often would slow the work down
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
    throw Error(RCN_ECANCELLED, "Canceled.");
  }
}

} // namespace rcn
