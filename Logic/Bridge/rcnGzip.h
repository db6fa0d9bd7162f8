// SPDX-License-Identifier: Apache-2.0
/// Gzip on several threads. The data is cut into blocks of a fixed size, each is compressed by itself, and together they are
/// one ordinary gzip stream (RFC 1952, one member) that every reader takes. The bytes are the same for any number of threads.
#ifndef rcnGzip_h
#define rcnGzip_h

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace rcn
{

/// What is compressed, a piece at a time; called from several threads at once.
///   \param scratch  room for `bytes` bytes, for data that has to be put together
///   \return the bytes [first, first + bytes): in the caller's memory, or `scratch`
using GzipSource = std::function<const unsigned char*(int64_t first, int64_t bytes, unsigned char* scratch)>;

struct GzipOptions
{
  int Threads = 0;                ///< 0: as many as the core would use
  std::function<bool()> Canceled; ///< asked between blocks, on the calling thread
};

/// Writes `bytes` bytes of the source to the file, compressed. The memory it takes is a few MB for each thread. Throws Error:
/// RCN_ECANCELLED, RCN_ENOMEM, and what rcn::WriteError() makes of a failing write, with `name` in the sentence.
void WriteGzip(
  std::FILE* file, const std::string& name, int64_t bytes, const GzipSource& source, const GzipOptions& options = {});

} // namespace rcn

#endif
