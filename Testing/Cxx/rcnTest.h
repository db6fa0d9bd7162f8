// SPDX-License-Identifier: Apache-2.0
/// A test program in C++: CHECK macros that go on after a failure, a folder of its own, and phantoms.
#ifndef rcnTest_h
#define rcnTest_h

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

#include "rcnError.h"

inline int Failures = 0;

#define CHECK(condition)                                                   \
  do                                                                       \
  {                                                                        \
    if (!(condition))                                                      \
    {                                                                      \
      ++Failures;                                                          \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                      \
  } while (0)

#define CHECK_NEAR(actual, expected, tolerance) CHECK(std::fabs((actual) - (expected)) <= (tolerance))

/// The statement throws rcn::Error with that status, and a sentence with those words.
#define CHECK_THROWS(statement, status, words)                                                                               \
  do                                                                                                                         \
  {                                                                                                                          \
    std::string sentence_ = "(nothing was thrown)";                                                                          \
    rcn_status status_ = RCN_OK;                                                                                             \
    try                                                                                                                      \
    {                                                                                                                        \
      statement;                                                                                                             \
    }                                                                                                                        \
    catch (const rcn::Error& error_)                                                                                         \
    {                                                                                                                        \
      sentence_ = error_.what();                                                                                             \
      status_ = error_.Status();                                                                                             \
    }                                                                                                                        \
    if (status_ != (status) || sentence_.find(words) == std::string::npos)                                                   \
    {                                                                                                                        \
      ++Failures;                                                                                                            \
      std::fprintf(                                                                                                          \
        stderr, "%s:%d: %s gives %s \"%s\"\n", __FILE__, __LINE__, #statement, rcn_status_name(status_), sentence_.c_str()); \
    }                                                                                                                        \
  } while (0)

#define RUN(test)                                                         \
  do                                                                      \
  {                                                                       \
    const int before_ = Failures;                                         \
    test();                                                               \
    std::printf("%s %s\n", Failures == before_ ? "ok  " : "FAIL", #test); \
  } while (0)

/// A folder that goes away with the test.
class Folder
{
public:
  Folder()
  {
    std::string name = (std::filesystem::temp_directory_path() / "rcn-test-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    this->Path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(this->Path_); }
  std::string operator/(const std::string& name) const { return (this->Path_ / name).string(); }
  size_t Count() const
  {
    return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(this->Path_), std::filesystem::directory_iterator()));
  }

private:
  std::filesystem::path Path_;
};

inline std::string TextOf(const std::string& path)
{
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

/// A ball of voxels somewhere in a volume.
inline std::vector<uint8_t> Ball(const int64_t size[3], double x, double y, double z, double radius)
{
  std::vector<uint8_t> mask;
  for (int64_t k = 0; k < size[2]; ++k)
  {
    for (int64_t j = 0; j < size[1]; ++j)
    {
      for (int64_t i = 0; i < size[0]; ++i)
      {
        const double dx = static_cast<double>(i) - x, dy = static_cast<double>(j) - y, dz = static_cast<double>(k) - z;
        mask.push_back(dx * dx + dy * dy + dz * dz < radius * radius);
      }
    }
  }
  return mask;
}

#endif
