// SPDX-License-Identifier: Apache-2.0
#include "rcnCases.h"

#include <algorithm>
#include <filesystem>

#include "rcnProcesses.h"
#include "rcnReport.h"

namespace rcn
{

namespace
{

/// Bytes of a case's files: near enough to how long it takes.
double SizeOf(const Case& one)
{
  double bytes = 0;
  std::error_code ignored;
  const auto add = [&](const std::string& path) {
    const auto size = std::filesystem::file_size(path, ignored);
    bytes += ignored ? 0 : static_cast<double>(size);
  };
  std::for_each(one.Images.begin(), one.Images.end(), add);
  std::for_each(one.Raters.begin(), one.Raters.end(), [&](const RaterFile& rater) { add(rater.Path); });
  return bytes;
}

/// Failures that the next case would meet as well, or that a person asked for.
bool EndsAll(rcn_status status)
{
  return status == RCN_ECANCELLED || status == RCN_ENOMEM || status == RCN_ESPACE || status == RCN_EINVALID;
}

/// One case's record: what work() returned under "result", or why there is nothing under "error"; and its remarks.
JsonHandle RecordOf(const Case& one, size_t number, const CaseLoop& loop, const CaseWork& work)
{
  JsonHandle record(json_object());
  std::vector<std::string> remarks;
  try
  {
    JsonHandle result = work(one, number, remarks);
    json_object_set_new(record.get(), "result", result ? result.release() : json_null());
  }
  catch (const Error& error)
  {
    if (!loop.LeaveOut || EndsAll(error.Status()))
    {
      throw;
    }
    json_object_set_new(record.get(), "error", JsonString(loop.SentenceOf ? loop.SentenceOf(error) : error.what()));
  }
  json_object_set_new(record.get(), "remarks", JsonStrings(remarks));
  return record;
}

/// Runs body(k) for k = 0 ... count - 1: in this process, those of this process, or shared out to whichever is free.
void Share(
  Processes& processes, const CaseLoop& loop, const std::vector<size_t>& order, const std::function<void(size_t)>& body)
{
  if (processes.AreSeveral() && !loop.IsMine)
  {
    processes.Distribute(order.size(), body);
    return;
  }
  for (size_t k = 0; k < order.size(); ++k)
  {
    if (!loop.IsMine || loop.IsMine(order[k]))
    {
      body(k);
    }
  }
}

} // namespace

std::vector<LeftOutCase> ForEachCase(const DataList& list, const CaseLoop& loop, const CaseWork& work,
  const std::function<void(const Case&, const json_t*)>& collect)
{
  Processes& processes = Processes::All();
  std::vector<size_t> chosen;
  for (size_t i = 0; i < list.Cases.size(); ++i)
  {
    if (loop.Takes(list.Cases[i]))
    {
      chosen.push_back(i);
    }
  }
  if (chosen.empty())
  {
    throw Error(
      RCN_EINVALID, list.Path + (loop.Split.empty() ? " has no cases." : " has no case in the split " + loop.Split + "."));
  }
  std::vector<LeftOutCase> leftOut;
  const auto finish = [&](size_t number, const json_t* record) {
    const Case& one = list.Cases[number];
    const json_t* remarks = json_object_get(record, "remarks");
    for (size_t i = 0; i < json_array_size(remarks); ++i)
    {
      const char* remark = json_string_value(json_array_get(remarks, i));
      if (loop.Remark && *remark)
      {
        loop.Remark(remark);
      }
    }
    if (const char* error = json_string_value(json_object_get(record, "error")))
    {
      leftOut.push_back({ one.Id, error });
      if (loop.Warn)
      {
        loop.Warn("Case " + one.Id + " was left out: " + error);
      }
    }
    else if (collect && processes.IsFirst())
    {
      collect(one, json_object_get(record, "result"));
    }
  };
  std::vector<size_t> order = chosen;
  if (processes.AreSeveral() && !loop.IsMine)
  {
    // A long case that is begun last would keep all other processes waiting.
    std::vector<double> sizes;
    std::transform(list.Cases.begin(), list.Cases.end(), std::back_inserter(sizes), SizeOf);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  }
  SharedRecords records;
  Share(processes, loop, order, [&](size_t k) {
    const Case& one = list.Cases[order[k]];
    if (loop.Begin)
    {
      loop.Begin(one.Id, k, order.size());
    }
    JsonHandle record = RecordOf(one, order[k], loop, work);
    if (processes.AreSeveral())
    {
      records.Set(order[k], record.release()); // told in order, after all of them
    }
    else
    {
      finish(order[k], record.get());
    }
  });
  if (processes.AreSeveral())
  {
    records.Merge(processes);
    for (const size_t number : chosen)
    {
      finish(number, records.Get(number));
    }
  }
  if (!leftOut.empty() && loop.Warn)
  {
    loop.Warn(
      std::to_string(leftOut.size()) + " of " + Counted(static_cast<int64_t>(chosen.size()), "case") + " could not be used.");
  }
  return leftOut;
}

} // namespace rcn
