// SPDX-License-Identifier: Apache-2.0
/// Work on cases whose ends (writing) go on beside the next case. Several processes: Testing/Python/test_mpi.py.
#include "rcnCases.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "rcnTest.h"

namespace
{

rcn::DataList FourCases()
{
  rcn::DataList list;
  list.Path = "list.json";
  for (const char* id : { "c1", "c2", "c3", "c4" })
  {
    rcn::Case one;
    one.Id = id;
    list.Cases.push_back(one);
  }
  return list;
}

/// What a loop told, in order.
struct Told
{
  std::string Text;
  rcn::CaseLoop Loop()
  {
    rcn::CaseLoop loop;
    loop.Remark = [this](const std::string& sentence) { this->Text += sentence + ";"; };
    loop.Warn = loop.Remark;
    return loop;
  }
  std::function<void(const rcn::Case&, const json_t*)> Collect()
  {
    return [this](const rcn::Case& one, const json_t* result) {
      this->Text += one.Id + "=" + std::to_string(json_integer_value(result)) + ";";
    };
  }
};

rcn::JsonHandle Number(size_t number)
{
  return rcn::JsonHandle(json_integer(static_cast<json_int_t>(number)));
}

bool WaitUntil(const std::function<bool()>& condition)
{
  for (int i = 0; i < 6000 && !condition(); ++i)
  {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

void EndsGoOnBesideTheNextCase()
{
  Told told;
  std::atomic<size_t> begun{ 0 }, inMemory{ 0 }, ends{ 0 };
  const auto work = [&](const rcn::Case& one, size_t number, std::vector<std::string>& remarks) -> rcn::CaseEnd {
    CHECK(ends == 0 || ends == 1);
    CHECK(++inMemory <= 2);
    ++begun;
    remarks.push_back(one.Id + " begins");
    return [&, number](std::vector<std::string>& endRemarks) {
      CHECK(++ends == 1);
      CHECK(number == 3 || WaitUntil([&] { return begun > number + 1; })); // the next case is being worked on
      endRemarks.push_back("end " + std::to_string(number));
      endRemarks.push_back("true of every case");
      --ends;
      --inMemory;
      return Number(number);
    };
  };
  CHECK(rcn::ForEachCaseInTwoSteps(FourCases(), told.Loop(), work, told.Collect()).empty());
  CHECK(told.Text == "c1 begins;end 0;true of every case;c1=0;c2 begins;end 1;c2=1;c3 begins;end 2;c3=2;c4 begins;end 3;c4=3;");
}

void AloneWhenAsked()
{
  Told told;
  rcn::CaseLoop loop = told.Loop();
  loop.Overlap = false;
  const std::thread::id self = std::this_thread::get_id();
  int running = 0;
  const auto work = [&](const rcn::Case&, size_t number, std::vector<std::string>&) -> rcn::CaseEnd {
    CHECK(++running == 1);
    return [&, number](std::vector<std::string>&) {
      CHECK(std::this_thread::get_id() == self);
      --running;
      return Number(number);
    };
  };
  rcn::ForEachCaseInTwoSteps(FourCases(), loop, work, told.Collect());
  CHECK(told.Text == "c1=0;c2=1;c3=2;c4=3;");
}

void FailuresAreToldInOrder()
{
  Told told;
  const auto work = [&](const rcn::Case&, size_t number, std::vector<std::string>&) -> rcn::CaseEnd {
    if (number == 2)
    {
      throw rcn::Error(RCN_EDATA, "cannot be read.");
    }
    return [number](std::vector<std::string>&) {
      if (number == 1)
      {
        throw rcn::Error(RCN_EIO, "cannot be written.");
      }
      return Number(number);
    };
  };
  const std::vector<rcn::LeftOutCase> leftOut = rcn::ForEachCaseInTwoSteps(FourCases(), told.Loop(), work, told.Collect());
  CHECK(leftOut.size() == 2 && leftOut[0].Id == "c2" && leftOut[1].Id == "c3");
  CHECK(told.Text ==
    "c1=0;Case c2 was left out: cannot be written.;Case c3 was left out: cannot be read.;c4=3;2 of 4 cases could not be "
    "used.;");
}

void WhatEndsTheLoop()
{
  for (const bool laterFails : { false, true })
  {
    Told told;
    std::atomic<int> ends{ 0 }, begun{ 0 };
    const auto work = [&](const rcn::Case&, size_t number, std::vector<std::string>&) -> rcn::CaseEnd {
      ++begun;
      if (number == 2 && laterFails)
      {
        throw rcn::Error(RCN_ECANCELLED, "Canceled."); // while the end of the second case is failing
      }
      return [&, number](std::vector<std::string>&) {
        ++ends;
        CHECK(WaitUntil([&] { return begun > static_cast<int>(number) + 1; }));
        --ends;
        if (number == 1)
        {
          throw rcn::Error(RCN_ESPACE, "The disk is full.");
        }
        return Number(number);
      };
    };
    CHECK_THROWS(rcn::ForEachCaseInTwoSteps(FourCases(), told.Loop(), work, told.Collect()), RCN_ESPACE, "The disk is full.");
    CHECK(ends == 0 && begun == 3 && told.Text == "c1=0;");
  }
  // Canceled in the work: the case before is complete and told.
  Told told;
  const auto work = [&](const rcn::Case&, size_t number, std::vector<std::string>&) -> rcn::CaseEnd {
    if (number == 1)
    {
      throw rcn::Error(RCN_ECANCELLED, "Canceled.");
    }
    return [number](std::vector<std::string>&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return Number(number);
    };
  };
  CHECK_THROWS(rcn::ForEachCaseInTwoSteps(FourCases(), told.Loop(), work, told.Collect()), RCN_ECANCELLED, "Canceled.");
  CHECK(told.Text == "c1=0;");
}

} // namespace

int main()
{
  RUN(EndsGoOnBesideTheNextCase);
  RUN(AloneWhenAsked);
  RUN(FailuresAreToldInOrder);
  RUN(WhatEndsTheLoop);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
