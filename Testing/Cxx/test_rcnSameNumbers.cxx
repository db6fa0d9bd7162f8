// SPDX-License-Identifier: Apache-2.0
// The viewer and the command line program, on one case. The argument is the program.
#include "rcnSameNumbers.h"

#include "rcnActions.h"

namespace
{

std::string Program;

void ViewerAndCommandLineAgree()
{
  const ExampleFiles example;
  rcn::Session session;
  session.Folder = example.Files / "work.rcn";
  session.AddCase(example.Case);
  const std::string model = session.AddModel(example.Model);
  const rcn::OpenCasePointer open = rcn::LoadCase(session, "example");
  ShellNumbers shell;
  shell.Agreement = rcn::CompareCase(*open);
  for (const char* const method : { "random", "median", "soft", "soft-gaussian", "staple", "simple", "svls" })
  {
    shell.Fused[method] = rcn::FuseCase(*open, method).Probability;
  }
  rcn::PredictCases(session, model, { "example" }, {}, [&](const rcn::SessionPrediction& one) { session.SetPrediction(one); });
  const rcn::CaseLayer layer = rcn::LoadLayer(session, *session.FindPrediction("example", model));
  shell.Probability = layer.Probability;
  shell.Levels = layer.Levels;
  rcn::EvaluationChoice choice;
  choice.Model = model;
  shell.Evaluation = rcn::Judge(session, choice).Report;
  CheckSameNumbers(Program, example, shell);
}

} // namespace

int main(int count, char* arguments[])
{
  CHECK(count == 2);
  Program = count > 1 ? arguments[1] : "";
  RUN(ViewerAndCommandLineAgree);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
