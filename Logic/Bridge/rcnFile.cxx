// SPDX-License-Identifier: Apache-2.0
#include "rcnFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rcn/rcn_file.h"
#include "rcnPlatform.h"

namespace rcn
{

Error WriteError(const std::string& name, int reason)
{
  return Error(rcn_status_of_write(reason), name + " cannot be written: " + std::strerror(reason) + ".");
}

/// The core's file, with a context of its own for the sentence.
struct AtomicFile::Internals
{
  explicit Internals(const std::string& target)
  {
    rcn::Check(rcn_context_create(&this->Context, nullptr), nullptr);
    if (const rcn_status status = rcn_file_create(&this->File, this->Context, target.c_str()))
    {
      const Error error(status, rcn_context_error(this->Context));
      rcn_context_destroy(this->Context);
      throw error;
    }
  }
  ~Internals()
  {
    rcn_file_destroy(this->File);
    rcn_context_destroy(this->Context);
  }
  rcn_context* Context = nullptr;
  rcn_file* File = nullptr;
};

AtomicFile::AtomicFile(const std::string& target)
  : Internals_(new Internals(target)), Path_(rcn_file_path(this->Internals_->File))
{
}

AtomicFile::~AtomicFile() = default;

void AtomicFile::Commit()
{
  rcn::Check(rcn_file_commit(this->Internals_->File, 0), this->Internals_->Context);
}

std::string AtomicFile::Check(const std::string& target)
{
  try
  {
    // Only trying tells: permissions do not bind everybody, and not every folder takes files.
    AtomicFile attempt(target);
  }
  catch (const Error& error)
  {
    if (error.Status() == RCN_ESPACE)
    {
      throw; // nothing is wrong with the name
    }
    return error.what();
  }
  return "";
}

void AtomicFile::RemoveAll() noexcept
{
  rcn_file_remove_all();
}

void MakeFolder(const std::string& path)
{
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure)
  {
    throw Error(rcn_status_of_write(failure.value()), path + " cannot be made: " + failure.message() + ".");
  }
}

std::string ReadText(const std::string& path)
{
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored))
  {
    throw Error(RCN_EIO, path + (std::filesystem::exists(path, ignored) ? " cannot be read." : " does not exist."));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

namespace
{

/// Fills an existing file; `name` stands in the error sentence.
void WriteFile(const std::string& path, const std::string& name, const std::string& text)
{
  if (const int reason = platform::WriteWhole(path, text))
  {
    throw WriteError(name, reason);
  }
}

} // namespace

void WriteText(const std::string& path, const std::string& text)
{
  if (path == "-")
  {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    {
      throw WriteError("Standard output", errno);
    }
    return;
  }
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
  {
    // A pipe or a device: there is nothing to replace.
    WriteFile(path, path, text);
    return;
  }
  AtomicFile beside(path);
  WriteFile(beside.Path(), path, text);
  beside.Commit();
}

namespace
{

/// Whether WriteText() writes a file beside it; pipes and devices cannot be replaced.
bool IsReplaced(const std::string& path)
{
  std::error_code ignored;
  return path != "-" && (!std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored));
}

/// A target that nothing ever takes the place of.
std::string TemporaryTarget()
{
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failure);
  return ((failure ? "." : folder) / "rcn-text").string();
}

} // namespace

TextFile::TextFile(const std::string& target)
  : Target_(target),
    Replaces_(IsReplaced(target)),
    Beside_(this->Replaces_ ? target : TemporaryTarget()),
    File_(std::fopen(this->Beside_.Path().c_str(), "wb"))
{
  if (!this->File_)
  {
    throw WriteError(target, errno);
  }
}

TextFile::~TextFile()
{
  if (this->File_)
  {
    std::fclose(this->File_);
  }
}

void TextFile::Add(const std::string& text)
{
  if (std::fwrite(text.data(), 1, text.size(), this->File_) != text.size())
  {
    throw WriteError(this->Target_, errno);
  }
}

void TextFile::Close()
{
  std::FILE* const file = this->File_;
  this->File_ = nullptr;
  int reason = file ? platform::SaveFile(file) : 0;
  reason = file && std::fclose(file) != 0 && !reason ? errno : reason;
  if (reason)
  {
    throw WriteError(this->Target_, reason);
  }
}

template <class TUse> void TextFile::ForEachPiece(const TUse& use)
{
  this->Close();
  std::ifstream file(this->Beside_.Path(), std::ios::binary);
  std::string piece(1 << 16, '\0');
  while (file && file.peek() != std::ifstream::traits_type::eof())
  {
    file.read(&piece[0], static_cast<std::streamsize>(piece.size()));
    use(piece.substr(0, static_cast<size_t>(file.gcount())));
  }
  if (file.bad() || !file.eof())
  {
    throw Error(RCN_EIO, this->Beside_.Path() + " cannot be read.");
  }
}

void TextFile::Add(TextFile& other)
{
  other.ForEachPiece([this](const std::string& piece) { this->Add(piece); });
}

void TextFile::Commit()
{
  if (this->Replaces_)
  {
    this->Close();
    this->Beside_.Commit();
    return;
  }
  // A pipe or a device, opened once: whoever reads a pipe would take the end of the first piece for the end of all.
  std::FILE* const out = this->Target_ == "-" ? stdout : std::fopen(this->Target_.c_str(), "wb");
  const std::string name = this->Target_ == "-" ? "Standard output" : this->Target_;
  bool good = out != nullptr;
  int reason = good ? 0 : errno;
  this->ForEachPiece([&](const std::string& piece) {
    good = good && std::fwrite(piece.data(), 1, piece.size(), out) == piece.size();
    reason = good || reason ? reason : errno;
  });
  good = good && std::fflush(out) == 0;
  reason = good || reason ? reason : errno;
  if (out && out != stdout && std::fclose(out) != 0 && good)
  {
    good = false;
    reason = errno;
  }
  if (!good)
  {
    throw WriteError(name, reason);
  }
}

std::string CheckText(const std::string& path)
{
  std::error_code ignored;
  if (path == "-" || std::filesystem::is_fifo(path, ignored) || std::filesystem::is_character_file(path, ignored))
  {
    return "";
  }
  return AtomicFile::Check(path);
}

void CopyFile(const std::string& from, const std::string& to)
{
  AtomicFile file(to);
  std::error_code failure;
  std::filesystem::copy_file(from, file.Path(), std::filesystem::copy_options::overwrite_existing, failure);
  if (failure)
  {
    throw Error(rcn_status_of_write(failure.value()), from + " cannot be copied to " + to + ": " + failure.message() + ".");
  }
  file.Commit();
}

} // namespace rcn
