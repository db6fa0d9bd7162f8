// SPDX-License-Identifier: Apache-2.0
#include "rcnTrainingSplit.h"

#include <algorithm>
#include <random>
#include <set>

#include "rcnTraining.h"

namespace rcn
{

namespace
{

/// Moves whole groups (patients; cases without one are their own group) to validation: those of one fold, or a share.
void DivideByPatient(TrainingSplit& split, const TrainingOptions& options)
{
  std::vector<Case> pool = std::move(split.Training);
  pool.insert(pool.end(), split.Validation.begin(), split.Validation.end());
  split = TrainingSplit();
  std::vector<std::string> groups;
  const auto groupOf = [](const Case& one) { return one.Patient.empty() ? "case " + one.Id : "patient " + one.Patient; };
  std::set<std::string> seen;
  for (const Case& one : pool)
  {
    if (seen.insert(groupOf(one)).second)
    {
      groups.push_back(groupOf(one));
    }
  }
  std::mt19937_64 random(options.Seed);
  for (size_t i = groups.size(); i > 1; --i) // by hand: std::shuffle differs between libraries
  {
    std::swap(groups[i - 1], groups[random() % i]);
  }
  std::set<std::string> chosen;
  if (options.Folds > 1)
  {
    if (groups.size() < static_cast<size_t>(options.Folds))
    {
      throw Error(RCN_EINVALID,
        std::to_string(options.Folds) + " folds need at least as many cases (or patients); there are " +
          std::to_string(groups.size()) + ".");
    }
    for (size_t i = static_cast<size_t>(options.Fold); i < groups.size(); i += static_cast<size_t>(options.Folds))
    {
      chosen.insert(groups[i]);
    }
  }
  else if (groups.size() > 1)
  {
    const size_t count = static_cast<size_t>(options.ValidationShare * static_cast<double>(groups.size()) + 0.5);
    chosen.insert(
      groups.begin(), groups.begin() + std::min(std::max<size_t>(count, options.ValidationShare > 0), groups.size() - 1));
  }
  for (const Case& one : pool)
  {
    (chosen.count(groupOf(one)) ? split.Validation : split.Training).push_back(one);
  }
}

/// The training cases of the list that is rehearsed; none of their images may validate.
std::vector<Case> OldCases(const TrainingOptions& options, const std::vector<Case>& validation)
{
  const DataList& old = options.Rehearse;
  if (old.Cases.empty())
  {
    return {};
  }
  if (old.Raters != options.List.Raters)
  {
    throw Error(RCN_EINVALID, old.Path + " has other raters than " + options.List.Path + ".");
  }
  // Of images only: patients of two lists may have the same name by chance.
  DataList both;
  both.Path = old.Path + " and " + options.List.Path;
  const auto add = [&both](Case one, const char* split) {
    one.Split = split;
    one.Patient.clear();
    both.Cases.push_back(one);
  };
  std::vector<Case> learned;
  for (const Case& one : old.Cases)
  {
    if (one.Split == "training")
    {
      learned.push_back(one);
      add(one, "training");
    }
  }
  if (learned.empty())
  {
    throw Error(RCN_EINVALID, old.Path + " has no case under \"training\".");
  }
  for (const Case& one : validation)
  {
    add(one, "validation");
  }
  CheckSplits(both);
  return learned;
}

} // namespace

TrainingSplit DivideCases(const TrainingOptions& options)
{
  const DataList& list = options.List;
  CheckSplits(list, options.Folds > 1 || options.Split);
  TrainingSplit split;
  for (const Case& one : list.Cases)
  {
    if (one.Split == "training" || one.Split == "validation")
    {
      if (one.Images.empty())
      {
        throw Error(RCN_EINVALID, list.Path + ": case " + one.Id + " has no image to train on.");
      }
      (one.Split == "training" ? split.Training : split.Validation).push_back(one);
    }
  }
  if (split.Training.empty())
  {
    throw Error(RCN_EINVALID, list.Path + " has no case under \"training\".");
  }
  if (options.Folds > 1 || options.Split || split.Validation.empty())
  {
    DivideByPatient(split, options);
  }
  split.Old = OldCases(options, split.Validation);
  return split;
}

} // namespace rcn
