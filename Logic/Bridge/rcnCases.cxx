// SPDX-License-Identifier: Apache-2.0
#include "rcnCases.h"

#include <algorithm>
#include <filesystem>
#include <future>
#include <memory>
#include <set>

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
  for (const RaterFile& rater : one.Raters)
  {
    const std::vector<std::string> files = FilesOf(rater);
    std::for_each(files.begin(), files.end(), add);
  }
  return bytes;
}

/// Failures that the next case would meet as well, or that a person asked for.
bool EndsAll(rcn_status status)
{
  return status == RCN_ECANCELLED || status == RCN_ENOMEM || status == RCN_ESPACE || status == RCN_EINVALID;
}

/// One case's record: what its end returned under "result", or why there is nothing under "error"; and its remarks.
class CaseRecord
{
public:
  CaseRecord(const CaseLoop& loop, size_t number) : Number(number), Loop_(loop) {}

  /// The work, without its end. Throws only what ends the loop.
  void Begin(const Case& one, const CaseWorkInTwoSteps& work)
  {
    this->Guard([&] { this->End_ = work(one, this->Number, this->Remarks_); });
  }

  /// The end; the record is complete after it. What it holds in memory goes with it.
  void End()
  {
    const CaseEnd end = std::move(this->End_);
    if (end)
    {
      this->Guard([&] {
        JsonHandle result = end(this->Remarks_);
        json_object_set_new(this->Json.get(), "result", result ? result.release() : json_null());
      });
    }
    json_object_set_new(this->Json.get(), "remarks", JsonStrings(this->Remarks_));
  }

  const size_t Number;
  JsonHandle Json{ json_object() };

private:
  void Guard(const std::function<void()>& body)
  {
    try
    {
      body();
    }
    catch (const Error& error)
    {
      if (!this->Loop_.LeaveOut || EndsAll(error.Status()))
      {
        throw;
      }
      const std::string sentence = this->Loop_.SentenceOf ? this->Loop_.SentenceOf(error) : error.what();
      json_object_set_new(this->Json.get(), "error", JsonString(sentence));
    }
  }

  const CaseLoop& Loop_;
  std::vector<std::string> Remarks_;
  CaseEnd End_;
};

/// Lets the end of one case at a time go on beside the next case.
class Ends
{
public:
  Ends(bool overlap, std::function<void(CaseRecord&)> tell) : Overlap_(overlap), Tell_(std::move(tell)) {}

  /// Begins the end of a case, after that of the case before.
  void Start(std::unique_ptr<CaseRecord> record)
  {
    this->Settle();
    if (!this->Overlap_)
    {
      record->End();
      this->Tell_(*record);
      return;
    }
    this->Record_ = std::move(record);
    this->Running_ = std::async([own = this->Record_.get()] { own->End(); });
  }

  /// Waits for the one that is running, and tells of it or throws what it threw.
  void Settle()
  {
    if (this->Running_.valid())
    {
      const std::unique_ptr<CaseRecord> record = std::move(this->Record_);
      this->Running_.get();
      this->Tell_(*record);
    }
  }

private:
  bool Overlap_;
  std::function<void(CaseRecord&)> Tell_;
  std::unique_ptr<CaseRecord> Record_;
  std::future<void> Running_; // going away, it waits for its thread
};

/// Hands on what came out of each case, in the order of the list: remarks, the result, or that it was left out.
class CaseTeller
{
public:
  using Collect = std::function<void(const Case&, const json_t*)>;
  CaseTeller(const DataList& list, const CaseLoop& loop, const Collect& collect) : List_(list), Loop_(loop), Collect_(collect)
  {
  }

  void Tell(size_t number, const json_t* record)
  {
    const Case& one = this->List_.Cases[number];
    const json_t* remarks = json_object_get(record, "remarks");
    for (size_t i = 0; i < json_array_size(remarks); ++i)
    {
      const char* remark = json_string_value(json_array_get(remarks, i));
      if (this->Loop_.Remark && *remark && this->Said_.insert(remark).second)
      {
        this->Loop_.Remark(remark);
      }
    }
    if (const char* error = json_string_value(json_object_get(record, "error")))
    {
      this->LeftOut_.push_back({ one.Id, error });
      this->Warn("Case " + one.Id + " was left out: " + error);
    }
    else if (this->Collect_ && Processes::All().IsFirst())
    {
      this->Collect_(one, json_object_get(record, "result"));
    }
  }

  /// After the last case, of `count`.
  std::vector<LeftOutCase> LeftOut(size_t count)
  {
    if (!this->LeftOut_.empty())
    {
      this->Warn(
        std::to_string(this->LeftOut_.size()) + " of " + Counted(static_cast<int64_t>(count), "case") + " could not be used.");
    }
    return std::move(this->LeftOut_);
  }

private:
  void Warn(const std::string& sentence) const
  {
    if (this->Loop_.Warn)
    {
      this->Loop_.Warn(sentence);
    }
  }

  const DataList& List_;
  const CaseLoop& Loop_;
  const Collect& Collect_;
  std::vector<LeftOutCase> LeftOut_;
  std::set<std::string> Said_; // what is true of every case is said of the first one
};

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

/// The numbers of the cases that the loop takes. Throws Error (RCN_EINVALID) where there are none.
std::vector<size_t> ChooseCases(const DataList& list, const CaseLoop& loop)
{
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
    throw Error(RCN_EINVALID,
      list.Path + (loop.Split.empty() ? " has no cases." : " has no case in the split " + loop.Split + "."),
      loop.Split.empty() ? "" : "split");
  }
  return chosen;
}

/// Largest first: a long case that is begun last would keep all other processes waiting.
void SortBySize(std::vector<size_t>& order, const DataList& list)
{
  std::vector<double> sizes;
  std::transform(list.Cases.begin(), list.Cases.end(), std::back_inserter(sizes), SizeOf);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
}

} // namespace

std::vector<LeftOutCase> ForEachCase(const DataList& list, const CaseLoop& loop, const CaseWork& work,
  const std::function<void(const Case&, const json_t*)>& collect)
{
  CaseLoop alone = loop;
  alone.Overlap = false;
  const auto all = [&work](const Case& one, size_t number, std::vector<std::string>&) -> CaseEnd {
    return [&work, &one, number](std::vector<std::string>& remarks) { return work(one, number, remarks); };
  };
  return ForEachCaseInTwoSteps(list, alone, all, collect);
}

std::vector<LeftOutCase> ForEachCaseInTwoSteps(const DataList& list, const CaseLoop& loop, const CaseWorkInTwoSteps& work,
  const std::function<void(const Case&, const json_t*)>& collect)
{
  Processes& processes = Processes::All();
  const std::vector<size_t> chosen = ChooseCases(list, loop);
  CaseTeller teller(list, loop, collect);
  std::vector<size_t> order = chosen;
  if (processes.AreSeveral() && !loop.IsMine)
  {
    SortBySize(order, list);
  }
  SharedRecords records;
  // Several processes overlap with one another, and have to know of a failure where they share out the cases.
  Ends ends(loop.Overlap && !processes.AreSeveral(), [&](CaseRecord& record) {
    if (processes.AreSeveral())
    {
      records.Set(record.Number, record.Json.release()); // told in order, after all of them
    }
    else
    {
      teller.Tell(record.Number, record.Json.get());
    }
  });
  Share(processes, loop, order, [&](size_t k) {
    const Case& one = list.Cases[order[k]];
    auto record = std::make_unique<CaseRecord>(loop, order[k]);
    try
    {
      if (loop.Begin)
      {
        loop.Begin(one.Id, k, order.size());
      }
      record->Begin(one, work);
    }
    catch (...)
    {
      ends.Settle(); // a failure of the case before comes first
      throw;
    }
    ends.Start(std::move(record));
  });
  ends.Settle();
  if (processes.AreSeveral())
  {
    records.Merge(processes);
    for (const size_t number : chosen)
    {
      teller.Tell(number, records.Get(number));
    }
  }
  return teller.LeftOut(chosen.size());
}

} // namespace rcn
