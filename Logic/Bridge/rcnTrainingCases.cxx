// SPDX-License-Identifier: Apache-2.0
#include "rcnTrainingCases.h"

#include <algorithm>
#include <cmath>

#include "rcnPrediction.h"

namespace rcn
{

CaseStore::CaseStore(Workspace& workspace, std::vector<std::string> raters, double room)
  : Workspace_(workspace), Raters_(std::move(raters)), Room_(room > 0 ? room : INFINITY)
{
}

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
    this->MakeRoom(this->Needs(one));
    try
    {
      this->Read(one);
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

/// Lets cases go, those not used for longest first, until there is room for so many bytes more.
void CaseStore::MakeRoom(double bytes)
{
  while (this->Held_ + bytes > this->Room_ && !this->Recent_.empty())
  {
    this->LetGo(this->Cases_[this->Recent_.front()]);
    this->Recent_.pop_front();
  }
}

void CaseStore::Account(LoadedCase& one, double bytes)
{
  one.Bytes += bytes;
  this->Held_ += bytes;
  this->Peak_ = std::max(this->Peak_, this->Held_);
}

void CaseStore::Read(LoadedCase& one)
{
  one.Bytes = 0;
  const double before = this->CoreBytes();
  try
  {
    this->Workspace_.LoadCase(one.Source, this->Raters_);
  }
  catch (const Error& error)
  {
    throw error.In("Case " + one.Source.Id);
  }
  one.Images = this->Workspace_.TakeImages();
  one.Geometry = *rcn_votes_geometry(this->Workspace_.Votes());
  one.Votes = this->Workspace_.TakeVotes();
  for (int r = 0; r < rcn_votes_raters(one.Votes.get()); ++r)
  {
    one.Marked = one.Marked || rcn_votes_marked(one.Votes.get(), r) > 0;
  }
  this->Turn(one);
  one.Channels = ChannelsOf(one.Images);
  this->Account(one, this->CoreBytes() - before);
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
