// SPDX-License-Identifier: Apache-2.0
/// How the C++ side fails: one exception with the core's status, one sentence, and a key of what it is about.
///
/// A sentence made in Logic/ names files, cases and values, but neither options of the command line nor widgets: it does not
/// know who reads it. Where a person can do something about it, the error carries a key ("scale", "raters", "output", ...),
/// and each shell adds its own way out by key: the command line " Use --scale 255.", a window the name of a control.
/// Every shell has a table with a row for every key: Module/CommandLine/rcnWayOut.cxx, Module/Viewer/rcnViewerWayOut.cxx and
/// Logic/vtkSlicerRaterConsensusLogic.cxx. Testing/Python/test_way_out.py compares them with what is thrown.
#ifndef rcnError_h
#define rcnError_h

#include <stdexcept>
#include <string>

#include "rcn/rcn_context.h"

#ifdef __GNUC__
#define RCN_VISIBLE __attribute__((visibility("default")))
#else
#define RCN_VISIBLE
#endif

namespace rcn
{

/// A sentence is one line, whatever a file name carried into it.
inline std::string OneLine(std::string text)
{
  for (char& c : text)
  {
    if (static_cast<unsigned char>(c) < ' ' || c == 127)
    {
      c = ' ';
    }
  }
  return text;
}

/// Thrown in one shared library and caught in another, so that its type must be the same in both.
class RCN_VISIBLE Error : public std::runtime_error
{
public:
  /// `sentence` ends with a full stop, so that another one can follow. `key` is a literal: an exception that is copied must
  /// not need memory.
  Error(rcn_status status, const std::string& sentence, const char* key = "")
    : std::runtime_error(OneLine(sentence)), Status_(status), Key_(key)
  {
  }
  rcn_status Status() const { return this->Status_; }
  /// What it is about; empty: nothing that a shell could help with.
  const char* Key() const { return this->Key_; }
  /// The same with the name of what was being done in front: "c01: Rater 2 ...".
  Error In(const std::string& about) const
  {
    return Error(this->Status_, this->Status_ == RCN_ECANCELLED ? this->what() : about + ": " + this->what(), this->Key_);
  }

private:
  rcn_status Status_;
  const char* Key_;
};

/// Throws the context's sentence unless the call succeeded.
inline void Check(rcn_status status, const rcn_context* context)
{
  if (status != RCN_OK)
  {
    throw Error(status, rcn_context_error(context));
  }
}

/// The same with the name of what was being done in front: "c01: Rater 2 ...".
inline void Check(rcn_status status, const rcn_context* context, const std::string& about)
{
  if (status != RCN_OK)
  {
    throw Error(status, rcn_context_error(context)).In(about);
  }
}

} // namespace rcn

#endif
