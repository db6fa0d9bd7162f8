// SPDX-License-Identifier: Apache-2.0
#include "rcnGzip.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include <itk_zlib.h>

#include "rcn/rcn_context.h"
#include "rcnFile.h"

namespace rcn
{

namespace
{

/// Long enough that it costs no size to begin each block without what came before it.
constexpr int64_t BlockBytes = 1 << 20;
constexpr int64_t SampleBytes = 1 << 15;
/// Probabilities are noise but for their highest bits: levels above 2 take up to three times as long for 1 % to 5 %.
constexpr int Level = 2;

/// A part of the stream: deflate blocks that refer to nothing before them and end at a whole byte.
class Deflate
{
public:
  Deflate() = default;
  ~Deflate() { deflateEnd(&this->Stream_); }
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;

  /// Compresses into `out`, which becomes as long as needed.
  void Run(std::vector<unsigned char>& out, const unsigned char* in, int64_t bytes, bool last)
  {
    this->Begin(this->StrategyFor(in, bytes));
    out.resize(static_cast<size_t>(bytes + bytes / 8 + 1024)); // what cannot be compressed is stored, with a few bytes around
    out.resize(this->Finish(out.data(), out.size(), in, bytes, last ? Z_FINISH : Z_FULL_FLUSH));
  }

private:
  void Begin(int strategy)
  {
    deflateEnd(&this->Stream_);
    this->Stream_ = z_stream();
    if (deflateInit2(&this->Stream_, Level, Z_DEFLATED, -MAX_WBITS, 8, strategy) != Z_OK)
    {
      throw std::bad_alloc();
    }
  }

  size_t Finish(unsigned char* out, size_t room, const unsigned char* in, int64_t bytes, int flush)
  {
    this->Stream_.next_in = const_cast<unsigned char*>(in);
    this->Stream_.avail_in = static_cast<uInt>(bytes);
    this->Stream_.next_out = out;
    this->Stream_.avail_out = static_cast<uInt>(room);
    const int result = deflate(&this->Stream_, flush);
    if (this->Stream_.avail_in > 0 || this->Stream_.avail_out == 0 || result != (flush == Z_FINISH ? Z_STREAM_END : Z_OK))
    {
      throw Error(RCN_EINTERNAL, "Compressing failed.");
    }
    return room - this->Stream_.avail_out;
  }

  /// Looking for repeated strings takes three times as long as counting bytes, and finds nothing in noise: a sample tells.
  int StrategyFor(const unsigned char* in, int64_t bytes)
  {
    const int64_t sample = std::min(bytes, SampleBytes);
    std::array<unsigned char, 2 * SampleBytes> out;
    const unsigned char* middle = in + (bytes - sample) / 2;
    this->Begin(Z_RLE);
    const size_t runs = this->Finish(out.data(), out.size(), middle, sample, Z_FINISH);
    this->Begin(Z_DEFAULT_STRATEGY);
    const size_t strings = this->Finish(out.data(), out.size(), middle, sample, Z_FINISH);
    return static_cast<double>(strings) < 0.95 * static_cast<double>(runs) ? Z_DEFAULT_STRATEGY : Z_RLE;
  }

  z_stream Stream_ = z_stream();
};

int ThreadsOf(const GzipOptions& options, int64_t blocks)
{
  rcn_context_options wanted = RCN_CONTEXT_OPTIONS_INIT;
  wanted.threads = options.Threads;
  rcn_context* context = nullptr;
  Check(rcn_context_create(&context, &wanted), nullptr);
  const int64_t threads = std::min<int64_t>(rcn_context_threads(context), blocks);
  rcn_context_destroy(context);
  return static_cast<int>(threads);
}

/// Compresses the blocks on threads of its own and hands them out in order. As many blocks as fit into the ring wait to be
/// written; then the threads wait.
class Compressor
{
public:
  struct Block
  {
    std::vector<unsigned char> Out;
    uLong Crc = 0;
    int64_t Bytes = 0;
    bool IsReady = false;
  };

  Compressor(int64_t bytes, const GzipSource& source, const GzipOptions& options)
    : Bytes_(bytes), Blocks_(std::max<int64_t>((bytes + BlockBytes - 1) / BlockBytes, 1)), Source_(source)
  {
    const int threads = ThreadsOf(options, this->Blocks_);
    this->Ring_.resize(threads > 1 ? 2 * static_cast<size_t>(threads) : 1);
    for (int i = 0; threads > 1 && i < threads; ++i)
    {
      try
      {
        this->Threads_.emplace_back([this] { this->Work(); });
      }
      catch (const std::system_error&)
      {
        break; // those that there are do the work; without any, the caller does
      }
    }
  }

  ~Compressor()
  {
    {
      const std::lock_guard<std::mutex> lock(this->Mutex_);
      this->Next_ = this->Blocks_;
    }
    this->Changed_.notify_all();
    for (std::thread& thread : this->Threads_)
    {
      thread.join();
    }
  }

  int64_t Count() const { return this->Blocks_; }

  /// Block `number`, from 0 on; its memory is used again after Release().
  const Block& Get(int64_t number)
  {
    Block& block = this->At(number);
    if (this->Threads_.empty())
    {
      this->Compress(this->Own_, number);
      return block;
    }
    std::unique_lock<std::mutex> lock(this->Mutex_);
    this->Changed_.wait(lock, [&] { return block.IsReady || this->Failure_; });
    if (this->Failure_)
    {
      std::rethrow_exception(this->Failure_);
    }
    return block;
  }

  void Release(int64_t number)
  {
    const std::lock_guard<std::mutex> lock(this->Mutex_);
    this->At(number).IsReady = false;
    this->Written_ = number + 1;
    this->Changed_.notify_all();
  }

private:
  struct Tools
  {
    Deflate Stream;
    std::vector<unsigned char> Scratch;
  };

  Block& At(int64_t number) { return this->Ring_[static_cast<size_t>(number) % this->Ring_.size()]; }

  void Compress(Tools& tools, int64_t number)
  {
    const int64_t first = number * BlockBytes;
    Block& block = this->At(number);
    block.Bytes = std::min(BlockBytes, this->Bytes_ - first);
    tools.Scratch.resize(static_cast<size_t>(block.Bytes) + 1); // never without an address
    const unsigned char* in = this->Source_(first, block.Bytes, tools.Scratch.data());
    block.Crc = crc32(0, in, static_cast<uInt>(block.Bytes));
    tools.Stream.Run(block.Out, in, block.Bytes, number + 1 == this->Blocks_);
  }

  void Work()
  {
    try
    {
      Tools tools;
      std::unique_lock<std::mutex> lock(this->Mutex_);
      while (true)
      {
        this->Changed_.wait(lock, [this] {
          return this->Next_ >= this->Blocks_ || this->Next_ < this->Written_ + static_cast<int64_t>(this->Ring_.size());
        });
        if (this->Next_ >= this->Blocks_)
        {
          return;
        }
        const int64_t number = this->Next_++;
        lock.unlock();
        this->Compress(tools, number);
        lock.lock();
        this->At(number).IsReady = true;
        this->Changed_.notify_all();
      }
    }
    catch (...)
    {
      const std::lock_guard<std::mutex> lock(this->Mutex_);
      this->Failure_ = std::current_exception();
      this->Next_ = this->Blocks_;
      this->Changed_.notify_all();
    }
  }

  const int64_t Bytes_, Blocks_;
  const GzipSource& Source_;
  std::vector<Block> Ring_;
  Tools Own_;
  std::mutex Mutex_;
  std::condition_variable Changed_;
  int64_t Next_ = 0, Written_ = 0;
  std::exception_ptr Failure_;
  std::vector<std::thread> Threads_; // the last to come and the first to go
};

void Put(std::FILE* file, const std::string& name, const unsigned char* data, size_t bytes)
{
  errno = 0;
  if (std::fwrite(data, 1, bytes, file) != bytes)
  {
    throw WriteError(name, errno ? errno : EIO);
  }
}

} // namespace

void WriteGzip(std::FILE* file, const std::string& name, int64_t bytes, const GzipSource& source, const GzipOptions& options)
try
{
  // No name and no time: the same data is the same file. 255: an unknown system.
  const unsigned char head[10] = { 0x1f, 0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, 0, 255 };
  Put(file, name, head, sizeof head);
  uLong crc = 0;
  Compressor blocks(bytes, source, options);
  for (int64_t i = 0; i < blocks.Count(); ++i)
  {
    const Compressor::Block& block = blocks.Get(i);
    Put(file, name, block.Out.data(), block.Out.size());
    crc = crc32_combine(crc, block.Crc, static_cast<z_off_t>(block.Bytes));
    blocks.Release(i);
    if (options.Canceled && options.Canceled())
    {
      throw Error(RCN_ECANCELLED, "Canceled while writing " + name + ".");
    }
  }
  unsigned char tail[8];
  for (int i = 0; i < 4; ++i)
  {
    tail[i] = static_cast<unsigned char>(crc >> (8 * i));
    tail[4 + i] = static_cast<unsigned char>(static_cast<uint64_t>(bytes) >> (8 * i)); // modulo 2^32, as the format has it
  }
  Put(file, name, tail, sizeof tail);
}
catch (const std::bad_alloc&)
{
  throw Error(RCN_ENOMEM, "There is not enough memory to compress " + name + ".");
}

} // namespace rcn
