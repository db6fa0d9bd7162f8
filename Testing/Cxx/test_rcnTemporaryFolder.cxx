// SPDX-License-Identifier: Apache-2.0
#include "rcnTemporaryFolder.h"

#include <sys/stat.h>

#include "rcnTest.h"

namespace
{

namespace fs = std::filesystem;

/// For its owner alone, whatever the mask; another one each time; in the folder that is asked for.
void IsPrivateAndUnique()
{
  const Folder parent;
  const mode_t before = umask(0);
  {
    const rcn::TemporaryFolder one(parent / ""), two(parent / ""), anywhere;
    CHECK(one.Path() != two.Path() && parent.Count() == 2);
    CHECK(fs::equivalent(fs::path(anywhere.Path()).parent_path(), fs::temp_directory_path()));
    for (const rcn::TemporaryFolder* folder : { &one, &two, &anywhere })
    {
      struct stat is;
      CHECK(stat(folder->Path().c_str(), &is) == 0 && S_ISDIR(is.st_mode) && (is.st_mode & 0777) == 0700);
    }
  }
  umask(before);
  CHECK(parent.Count() == 0);
}

/// With all that is in it, and also when something fails on the way.
void GoesInEveryWayOut()
{
  const Folder parent;
  const auto fail = [&] {
    const rcn::TemporaryFolder folder(parent / "");
    std::ofstream(folder / "image.nrrd") << "of a patient";
    fs::create_directory(folder / "more");
    std::ofstream(folder / "more/image.nrrd") << "of another one";
    throw rcn::Error(RCN_ECANCELLED, "canceled");
  };
  CHECK_THROWS(fail(), RCN_ECANCELLED, "canceled");
  CHECK(parent.Count() == 0);
}

void SaysWhyNot()
{
  const Folder parent;
  CHECK_THROWS(rcn::TemporaryFolder(parent / "gone"), RCN_EIO, "gone: No such file");
}

} // namespace

int main()
{
  RUN(IsPrivateAndUnique);
  RUN(GoesInEveryWayOut);
  RUN(SaysWhyNot);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
