// SPDX-License-Identifier: Apache-2.0
/// How the C++ side fails: one exception with the core's status and one sentence.
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
  Error(rcn_status status, const std::string& sentence) : std::runtime_error(OneLine(sentence)), Status_(status) {}
  rcn_status Status() const { return this->Status_; }

private:
  rcn_status Status_;
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
    const std::string sentence = rcn_context_error(context);
    throw Error(status, status == RCN_ECANCELLED ? sentence : about + ": " + sentence);
  }
}

} // namespace rcn

#endif
