// SPDX-License-Identifier: Apache-2.0
#include "rcnFileBeside.h"

#include <cstring>

#include "rcn/rcn_file.h"

namespace rcn
{

Error WriteError(const std::string& name, int reason)
{
  return Error(rcn_status_of_write(reason), name + " cannot be written: " + std::strerror(reason) + ".");
}

/// The core's file, with a context of its own for the sentence.
struct FileBeside::Internals
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

FileBeside::FileBeside(const std::string& target)
  : Internals_(new Internals(target)), Path_(rcn_file_path(this->Internals_->File))
{
}

FileBeside::~FileBeside() = default;

void FileBeside::Commit()
{
  rcn::Check(rcn_file_commit(this->Internals_->File, 0), this->Internals_->Context);
}

std::string FileBeside::Check(const std::string& target)
{
  try
  {
    // Only trying tells: permissions do not bind everybody, and not every folder takes files.
    FileBeside attempt(target);
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

void FileBeside::RemoveAll() noexcept
{
  rcn_file_remove_all();
}

} // namespace rcn
