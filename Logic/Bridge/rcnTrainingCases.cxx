// SPDX-License-Identifier: Apache-2.0
#include "rcnTrainingCases.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <set>
#include <system_error>
#include <thread>

#include "rcnPrediction.h"

namespace rcn
{

/// Reads cases from their files, one after another on one thread, before anybody asks for them. Each has a workspace of its
/// own: contexts are for one thread at a time.
class CaseReader
{
public:
  struct Order
  {
    size_t Number;
    Case Source;
    double Bytes; ///< kept free for it
  };

  /// Throws std::system_error where there is no thread to be had.
  CaseReader(const WorkspaceOptions& options, const std::vector<std::string>& raters, std::vector<Order> orders)
    : Options_(options), Raters_(raters)
  {
    this->Options_.Threads = 1; // all others are at work on a step
    std::vector<std::promise<std::shared_ptr<Workspace>>> promises(orders.size());
    for (size_t i = 0; i < orders.size(); ++i)
    {
      this->Coming_.push_back({ orders[i].Number, orders[i].Bytes, promises[i].get_future() });
    }
    this->Thread_ = std::thread([this, own = std::move(orders), made = std::move(promises)]() mutable {
      for (size_t i = 0; i < own.size(); ++i)
      {
        made[i].set_value(this->Read(own[i].Source));
      }
    });
  }

  /// Waits for the file that is being read.
  ~CaseReader()
  {
    this->Stop_ = true;
    this->Thread_.join();
  }

  /// Kept free for the cases that nobody has taken.
  double Bytes() const
  {
    double sum = 0;
    for (const Coming& one : this->Coming_)
    {
      sum += one.Bytes;
    }
    return sum;
  }

  /// The workspace that has the case, once it is read; null for a case that was not ordered or could not be read.
  std::shared_ptr<Workspace> Take(size_t number)
  {
    const auto found =
      std::find_if(this->Coming_.begin(), this->Coming_.end(), [&](const Coming& one) { return one.Number == number; });
    if (found == this->Coming_.end())
    {
      return nullptr;
    }
    std::shared_ptr<Workspace> read = found->Read.get();
    this->Coming_.erase(found);
    return read;
  }

private:
  struct Coming
  {
    size_t Number;
    double Bytes;
    std::future<std::shared_ptr<Workspace>> Read;
  };

  std::shared_ptr<Workspace> Read(const Case& source) const
  {
    try
    {
      if (!this->Stop_)
      {
        auto own = std::make_shared<Workspace>(this->Options_);
        own->SetProgress([this](double, const char*) { return this->Stop_.load(); });
        own->LoadCase(source, this->Raters_);
        own->SetProgress(nullptr);
        return own;
      }
    }
    catch (...)
    {
      // Whoever asks for the case reads it again, and says why that failed.
    }
    return nullptr;
  }

  WorkspaceOptions Options_;
  const std::vector<std::string> Raters_;
  std::list<Coming> Coming_;
  std::atomic<bool> Stop_{ false };
  std::thread Thread_; // the last to come
};

CaseStore::CaseStore(Workspace& workspace, std::vector<std::string> raters, double room)
  : Workspace_(workspace), Raters_(std::move(raters)), Room_(room > 0 ? room : INFINITY)
{
}

CaseStore::~CaseStore() = default;

void CaseStore::SetRules(const rcn_strategy& strategy, const rcn_fusion_options& fusion, const rcn_normalize& normalize)
{
  this->Strategy_ = strategy;
  this->Fusion_ = fusion;
  this->Normalize_ = normalize;
  this->HasRules_ = true;
  this->MakeRoom(std::isfinite(this->Room_) ? this->Room_ : 0); // how much more a case takes now shows with the first one
  for (LoadedCase& one : this->Cases_)
  {
    if (!one.Images.empty())
    {
      this->Prepare(one);
    }
  }
}

void CaseStore::SetAxes(const std::string& axes, bool slices)
{
  this->Axes_ = axes;
  this->Slices_ = slices;
  for (LoadedCase& one : this->Cases_)
  {
    this->Turn(one);
  }
}

size_t CaseStore::Add(const Case& source)
{
  this->Cases_.emplace_back();
  this->Cases_.back().Source = source;
  return this->Cases_.size() - 1;
}

void CaseStore::Release(size_t index)
{
  this->Recent_.remove(index);
  this->LetGo(this->Cases_[index]);
}

LoadedCase& CaseStore::Get(size_t index)
{
  LoadedCase& one = this->Cases_[index];
  if (std::isfinite(this->Room_))
  {
    this->Recent_.remove(index);
  }
  if (one.Images.empty())
  {
    std::shared_ptr<Workspace> read = this->TakeRead(index);
    this->MakeRoom(this->Needs(one));
    try
    {
      this->Read(one, std::move(read));
      if (this->HasRules_)
      {
        this->Prepare(one);
      }
    }
    catch (...)
    {
      this->LetGo(one);
      throw;
    }
    this->Largest_ = std::max(this->Largest_, one.Bytes);
  }
  if (std::isfinite(this->Room_))
  {
    this->MakeRoom(0); // it may have taken more than was expected
    this->Recent_.push_back(index);
  }
  return one;
}

/// What a case will take, before it is read: as the last time, or as the largest one so far.
double CaseStore::Needs(const LoadedCase& one) const
{
  if (one.Bytes <= 0 || (this->HasRules_ && !one.Scale.channels))
  {
    return std::max(this->Largest_, one.Bytes);
  }
  return one.Bytes;
}

/// Lets cases go, those not used for longest first, until there is room for so many bytes more; `kept`: of those used last.
void CaseStore::MakeRoom(double bytes, size_t kept)
{
  while (this->Held_ + bytes > this->Room_ && this->Recent_.size() > kept)
  {
    this->LetGo(this->Cases_[this->Recent_.front()]);
    this->Recent_.pop_front();
  }
}

void CaseStore::ReadAhead(const std::vector<size_t>& numbers)
{
  this->DropReader();
  std::vector<size_t> missing;
  std::set<size_t> seen;
  size_t kept = 0;
  for (const size_t number : numbers)
  {
    if (!seen.insert(number).second)
    {
      continue;
    }
    if (this->Cases_[number].Images.empty())
    {
      missing.push_back(number);
    }
    else if (std::isfinite(this->Room_))
    {
      this->Recent_.remove(number);
      this->Recent_.push_back(number);
      ++kept;
    }
  }
  std::vector<CaseReader::Order> orders;
  double bytes = 0;
  for (const size_t number : missing)
  {
    const LoadedCase& one = this->Cases_[number];
    const double needs = this->Needs(one);
    this->MakeRoom(bytes + needs, kept);
    const double held = this->Held_ + bytes;
    // A single case is read however large it is, as by Get(). What is in memory already only has to be packed.
    if ((held + needs > this->Room_ && held > 0) || one.Source.Memory)
    {
      break;
    }
    bytes += needs;
    orders.push_back({ number, one.Source, needs });
  }
  if (orders.empty())
  {
    return;
  }
  try
  {
    this->Reader_.reset(new CaseReader(this->Workspace_.Options(), this->Raters_, std::move(orders)));
    this->Held_ += bytes;
  }
  catch (const std::system_error&)
  {
    // No thread to be had: cases are read when they are asked for.
  }
}

void CaseStore::DropReader()
{
  this->Held_ -= this->Reader_ ? this->Reader_->Bytes() : 0;
  this->Reader_.reset();
}

/// A case that was read ahead, by the workspace that did; null: it has to be read, and nobody else is reading.
std::shared_ptr<Workspace> CaseStore::TakeRead(size_t index)
{
  if (!this->Reader_)
  {
    return nullptr;
  }
  const double before = this->Reader_->Bytes();
  std::shared_ptr<Workspace> read = this->Reader_->Take(index);
  this->Held_ -= before - this->Reader_->Bytes();
  if (!read)
  {
    this->DropReader();
    return nullptr;
  }
  ++this->CountReadAhead_;
  return read;
}

void CaseStore::Account(LoadedCase& one, double bytes)
{
  one.Bytes += bytes;
  this->Held_ += bytes;
  this->Peak_ = std::max(this->Peak_, this->Held_);
}

/// `read`: has the case already; or null.
void CaseStore::Read(LoadedCase& one, std::shared_ptr<Workspace> read)
{
  one.Bytes = 0;
  const double before = this->CoreBytes();
  Workspace& workspace = read ? *read : this->Workspace_;
  try
  {
    if (!read)
    {
      workspace.LoadCase(one.Source, this->Raters_);
    }
  }
  catch (const Error& error)
  {
    throw error.In("Case " + one.Source.Id);
  }
  one.Images = workspace.TakeImages();
  one.Geometry = *rcn_votes_geometry(workspace.Votes());
  one.Votes.reset(workspace.TakeVotes().release(), [read](rcn_votes* votes) { rcn_votes_destroy(votes); }); // in its context
  for (int r = 0; r < rcn_votes_raters(one.Votes.get()); ++r)
  {
    one.Marked = one.Marked || rcn_votes_marked(one.Votes.get(), r) > 0;
  }
  this->Turn(one);
  one.Channels = ChannelsOf(one.Images);
  this->Account(one, this->CoreBytes() - before);
  if (read)
  {
    this->Account(one, static_cast<double>(rcn_context_bytes(read->Context())));
  }
  for (const Volume& image : one.Images)
  {
    this->Account(one,
      static_cast<double>(rcn_geometry_voxels(&image.Geometry())) * image.ChannelCount() *
        static_cast<double>(rcn_type_size(image.View().type)));
  }
}

/// To the common axes; a case that could not be read has no geometry.
void CaseStore::Turn(LoadedCase& one)
{
  if (rcn_geometry_check(&one.Geometry))
  {
    return;
  }
  rcn_context* context = this->Workspace_.Context();
  const rcn_order order = rcn_order_to(this->Axes_.c_str(), &one.Geometry, this->Slices_);
  if (rcn_order_is_identity(&order))
  {
    return;
  }
  one.Geometry = rcn_geometry_reorder(&one.Geometry, &order);
  for (Volume& image : one.Images)
  {
    image = image.Reordered(context, order);
  }
  one.Channels = ChannelsOf(one.Images);
  if (one.Votes)
  {
    Check(rcn_votes_reorder(one.Votes.get(), context, &order), context, "Case " + one.Source.Id);
  }
}

void CaseStore::Prepare(LoadedCase& one)
{
  const double before = this->CoreBytes();
  rcn_context* context = this->Workspace_.Context();
  const std::string about = "Case " + one.Source.Id;
  one.Scale = FitScale(context, this->Normalize_, one.Images, about);
  rcn_target* target = nullptr;
  Check(rcn_target_create(&target, context, one.Votes.get(), &this->Strategy_, &this->Fusion_), context, about);
  one.Target.reset(target);
  rcn_foci* foci = nullptr;
  Check(rcn_foci_create(&foci, context, one.Votes.get()), context, about);
  one.Foci.reset(foci);
  this->Account(one, this->CoreBytes() - before);
}

void CaseStore::LetGo(LoadedCase& one)
{
  this->Held_ -= one.Images.empty() ? 0 : one.Bytes;
  one.Images.clear();
  one.Channels.clear();
  one.Votes.reset();
  one.Target.reset();
  one.Foci.reset();
}

/// What the core has allocated; differences of it are what a case takes.
double CaseStore::CoreBytes() const
{
  return static_cast<double>(rcn_context_bytes(this->Workspace_.Context()));
}

} // namespace rcn
