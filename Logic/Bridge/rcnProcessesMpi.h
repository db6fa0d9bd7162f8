// SPDX-License-Identifier: Apache-2.0
/// What the one file that knows MPI offers.
#ifndef rcnProcessesMpi_h
#define rcnProcessesMpi_h

#include <memory>

namespace rcn
{

class Processes;

/// Joins the processes of MPI_COMM_WORLD; throws Error when MPI cannot start.
std::unique_ptr<Processes> JoinProcesses();

} // namespace rcn

#endif
