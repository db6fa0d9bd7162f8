// SPDX-License-Identifier: Apache-2.0
/// One gzip stream from several threads, read back by zlib; what other readers make of it is in Testing/Python.
#include "rcnGzip.h"

#include <atomic>
#include <cstring>
#include <memory>

#include <itk_zlib.h>

#include "rcnFile.h"
#include "rcnTest.h"

namespace
{

/// Parts that repeat, parts of one value and noise, so that blocks are compressed in different ways.
std::string SomeBytes(size_t count)
{
  std::string bytes(count, '\0');
  uint32_t state = 1;
  for (size_t i = 0; i < count; ++i)
  {
    state = 1664525U * state + 1013904223U;
    const size_t part = i >> 20;
    bytes[i] = static_cast<char>(part % 3 == 0 ? state >> 24 : part % 3 == 1 ? "probability"[i % 11] : 7);
  }
  return bytes;
}

struct Pieces
{
  const std::string& Bytes;
  bool Copy; ///< into the scratch memory
  const unsigned char* operator()(int64_t first, int64_t bytes, unsigned char* scratch) const
  {
    const auto* from = reinterpret_cast<const unsigned char*>(this->Bytes.data()) + first;
    return this->Copy ? static_cast<unsigned char*>(std::memcpy(scratch, from, static_cast<size_t>(bytes))) : from;
  }
};

/// The compressed file.
std::string Packed(const std::string& path, const std::string& bytes, int threads, bool copy = false)
{
  std::FILE* file = std::fopen(path.c_str(), "wb");
  rcn::WriteGzip(file, path, static_cast<int64_t>(bytes.size()), Pieces{ bytes, copy }, { threads, {} });
  CHECK(std::fclose(file) == 0);
  return TextOf(path);
}

/// What one member of gzip holds; the whole file must be it.
std::string Unpacked(const std::string& packed, size_t room)
{
  std::string bytes(room + 1, '\0');
  z_stream stream = z_stream();
  CHECK(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<unsigned char*>(&bytes[0]);
  stream.avail_out = static_cast<uInt>(bytes.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

void KnownAnswer()
{
  const Folder folder;
  const std::string packed = Packed(folder / "a.gz", "", 1);
  // RFC 1952: the header, an empty last block (3, 0), the check sum 0 and the length 0.
  const unsigned char expected[20] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 3, 0 };
  CHECK(packed == std::string(reinterpret_cast<const char*>(expected), sizeof expected));
}

void SameForAnyNumberOfThreads()
{
  const Folder folder;
  for (const size_t count : { size_t(1), size_t(1) << 20, (size_t(1) << 20) + 1, (size_t(7) << 20) + 12345 })
  {
    const std::string bytes = SomeBytes(count), packed = Packed(folder / "a.gz", bytes, 1);
    CHECK(Unpacked(packed, count) == bytes);
    CHECK(Packed(folder / "b.gz", bytes, 3) == packed);
    CHECK(Packed(folder / "b.gz", bytes, 0, true) == packed);
    CHECK(count < 2000000 || packed.size() < count / 2); // a third is noise
  }
}

void StopsWhenAsked()
{
  const Folder folder;
  const std::string bytes = SomeBytes(9 << 20);
  for (const int threads : { 1, 3 })
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen((folder / "a.gz").c_str(), "wb"), std::fclose);
    int asked = 0;
    const rcn::GzipOptions options = { threads, [&asked] { return ++asked == 2; } };
    CHECK_THROWS(rcn::WriteGzip(file.get(), "a.gz", 9 << 20, Pieces{ bytes, false }, options), RCN_ECANCELLED, "a.gz");
    CHECK(asked == 2);
  }
}

void FailuresReachTheCaller()
{
  const Folder folder;
  const std::string bytes = SomeBytes(9 << 20);
  for (const int threads : { 1, 3 })
  {
    if (const std::unique_ptr<std::FILE, int (*)(std::FILE*)> full(std::fopen("/dev/full", "wb"), std::fclose); full)
    {
      CHECK_THROWS(rcn::WriteGzip(full.get(), "a.gz", 9 << 20, Pieces{ bytes, false }, { threads, {} }), RCN_ESPACE,
        "a.gz cannot be written");
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen((folder / "a.gz").c_str(), "wb"), std::fclose);
    std::atomic<int> pieces{ 0 };
    const rcn::GzipSource source = [&](int64_t first, int64_t count, unsigned char* scratch) {
      if (++pieces == 4)
      {
        throw std::bad_alloc();
      }
      return Pieces{ bytes, false }(first, count, scratch);
    };
    CHECK_THROWS(rcn::WriteGzip(file.get(), "a.gz", 9 << 20, source, { threads, {} }), RCN_ENOMEM, "a.gz");
  }
}

} // namespace

int main()
{
  RUN(KnownAnswer);
  RUN(SameForAnyNumberOfThreads);
  RUN(StopsWhenAsked);
  RUN(FailuresReachTheCaller);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
