// SPDX-License-Identifier: Apache-2.0
#include "rcnPlatform.h"

#include <cerrno>
#include <ctime>

#include "rcnTest.h"

namespace
{

using namespace rcn::platform;

void WritesWholeFiles()
{
  const Folder folder;
  const std::string path = folder / "a", text(300000, 'x');
  CHECK(WriteWhole(path, text) == ENOENT); // it must be there
  std::ofstream(path).close();
  CHECK(WriteWhole(path, text) == 0 && TextOf(path) == text);
  CHECK(WriteWhole(folder / "", text) != 0);
  if (std::filesystem::exists("/dev/full"))
  {
    CHECK(WriteWhole("/dev/full", text) == ENOSPC && WriteWhole("/dev/null", text) == 0);
  }
}

void KnowsRoom()
{
  const Folder folder;
  const std::string path = folder / "a";
  std::ofstream(path).close();
  CHECK(RoomFor(path, 65536) != Room::TooLittle);
  CHECK(RoomFor(path, int64_t(1) << 60) == Room::TooLittle);
  CHECK(std::filesystem::file_size(path) == 0); // given back
}

void KnowsFiles()
{
  const Folder folder;
  std::ofstream(folder / "a") << "seven..";
  std::ofstream(folder / "b") << "";
  std::filesystem::create_symlink(folder / "a", folder / "link");
  const FileStatus a = StatusOf(folder / "a");
  CHECK(a.Exists && a.IsOrdinary && a.Bytes == 7 && std::difftime(std::time(nullptr), a.Modified) < 3600);
  CHECK(StatusOf(folder / "link").Number == a.Number && StatusOf(folder / "b").Number != a.Number);
  CHECK(StatusOf(folder / "").Exists && !StatusOf(folder / "").IsOrdinary && !StatusOf(folder / "no").Exists);
  CHECK(IsReadable(folder / "a") && !IsReadable(folder / "no") && !IsExecutable(folder / "no") && IsExecutable(OwnProgram()));
}

void MakesPrivateFolders()
{
  const Folder folder;
  const std::string one = MakePrivateFolder(folder / ""), two = MakePrivateFolder(folder / "");
  CHECK(one != two && std::filesystem::is_directory(one) && std::filesystem::is_directory(two));
  CHECK(MakePrivateFolder(folder / "no").empty() && errno == ENOENT);
}

void KnowsTheProcess()
{
  CHECK(PeakMegabytes() > 1 && PeakMegabytes() < 10000);
  CHECK(SetDefault("RCN_TEST_PLATFORM", "first") && SetDefault("RCN_TEST_PLATFORM", "second"));
  CHECK(std::getenv("RCN_TEST_PLATFORM") == std::string("first"));
  StartInstead("/no/such/program", { "program" });
  CHECK(errno == ENOENT);
}

/// Standard error is a file; what is written while it is hidden is not in it.
void HidesStandardError()
{
  const Folder folder;
  const std::string path = folder / "err";
  std::fflush(stderr);
  const int own = dup(STDERR_FILENO);
  CHECK(std::freopen(path.c_str(), "w", stderr) != nullptr);
  std::fputs("one", stderr);
  std::fflush(stderr);
  const int kept = HideStandardError();
  std::fputs("two", stderr);
  std::fflush(stderr);
  ShowStandardError(kept);
  std::fputs("three", stderr);
  std::fflush(stderr);
  const bool isTerminal = StandardErrorIsTerminal();
  dup2(own, STDERR_FILENO);
  close(own);
  CHECK(TextOf(path) == "onethree" && !isTerminal);
}

} // namespace

int main()
{
  RUN(WritesWholeFiles);
  RUN(KnowsRoom);
  RUN(KnowsFiles);
  RUN(MakesPrivateFolders);
  RUN(KnowsTheProcess);
  RUN(HidesStandardError);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
