// SPDX-License-Identifier: Apache-2.0
/// The commands, one file each.
#ifndef rcnCommands_h
#define rcnCommands_h

#include "rcnCommandLine.h"
#ifdef RCN_HAVE_NETWORKS
#include "rcnTraining.h"
#endif

namespace rcn
{

Command AgreeCommand();
Command FuseCommand();
Command EvaluateCommand();
Command RecalibrateCommand();
Command ReportCommand();
Command DemoCommand();
Command ViewCommand();
#ifdef RCN_HAVE_NETWORKS
Command PredictCommand();
Command StudyCommand();
Command TrainCommand();

/// The options of a training that `train` and `study` share, and what a person chose of them.
std::vector<Option> TrainingOptionTable();
TrainingOptions TrainingOptionsFrom(const Arguments& arguments);
#endif

/// The tables of `agree`, as text.
std::string AgreementText(const AgreementReport& report, const Workspace& workspace, const std::string& title, size_t regions);

} // namespace rcn

#endif
