// SPDX-License-Identifier: Apache-2.0
/// Words that every shell shares: counts and intervals.
#include "rcnReport.h"

#include <cmath>

#include "rcnTest.h"

namespace
{

void OneIsNotMany()
{
  CHECK(rcn::Counted(0, "case") == "0 cases");
  CHECK(rcn::Counted(1, "case") == "1 case");
  CHECK(rcn::Counted(2, "validation case") == "2 validation cases");
  CHECK(rcn::Counted(1, "process", "processes") == "1 process");
  CHECK(rcn::Counted(3, "process", "processes") == "3 processes");
}

void NoIntervalIsADash()
{
  CHECK(rcn::FromTo(1.204, 3.4, 2) == "1.20 to 3.40");
  CHECK(rcn::FromTo(NAN, NAN, 2) == "–");
  CHECK(rcn::FromTo(1, NAN, 2) == "–");
  CHECK(rcn::FromTo(-INFINITY, 1, 2) == "–");
}

} // namespace

int main()
{
  RUN(OneIsNotMany);
  RUN(NoIntervalIsADash);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
