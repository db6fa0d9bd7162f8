// SPDX-License-Identifier: Apache-2.0
/// The correction of several structures: one temperature on the shares of all labels, so that the structures of a voxel still
/// add up to one. Fitted to the labels that all raters gave, case by case, so that each case can be left out.
#ifndef rcnLabelTemperature_h
#define rcnLabelTemperature_h

#include <map>
#include <memory>
#include <string>

#include "rcnJudge.h"

namespace rcn
{

class LabelTemperature
{
public:
  /// Fits on the region of the options, which is around the marks of all structures.
  LabelTemperature(rcn_context* context, int structures, const EvaluationOptions& options);
  ~LabelTemperature();

  /// Adds a case with votes on all structures; one without a voxel in the region adds nothing. Throws Error.
  void Add(const Case& one, size_t number, const rcn_votes* votes, const CasePrediction& prediction);

  /// After the last case, in all processes: each then knows all of them.
  void Share(Processes& processes);

  /// Of all cases. Throws Error (RCN_EDATA) where there is nothing to fit.
  Recalibration Fit() const;
  /// By case: what all others give; a case without which nothing can be fitted has none.
  std::map<std::string, Recalibration> FitWithoutEach() const;

private:
  struct Deleter
  {
    void operator()(rcn_temperature* temperature) const { rcn_temperature_destroy(temperature); }
  };
  using Handle = std::unique_ptr<rcn_temperature, Deleter>;
  struct Entry
  {
    std::string Id, Fingerprint;
    Handle Sums;
  };

  Handle New() const;
  Recalibration FitTo(size_t without) const;

  rcn_context* Context_;
  int Structures_;
  EvaluationOptions Options_;
  std::map<size_t, Entry> Cases_; // by place in the list
};

} // namespace rcn

#endif
