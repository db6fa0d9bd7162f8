// SPDX-License-Identifier: Apache-2.0
/// The cases of a training in memory.
#ifndef rcnTrainingCases_h
#define rcnTrainingCases_h

#include <list>

#include "rcn/rcn_data.h"
#include "rcn/rcn_train.h"
#include "rcnWorkspace.h"

namespace rcn
{

struct TrainingDeleter
{
  void operator()(rcn_target* target) const { rcn_target_destroy(target); }
  void operator()(rcn_foci* foci) const { rcn_foci_destroy(foci); }
  void operator()(rcn_net* net) const { rcn_net_destroy(net); }
  void operator()(rcn_train* train) const { rcn_train_destroy(train); }
};
template <class T> using TrainingHandle = std::unique_ptr<T, TrainingDeleter>;

/// A case as it is kept: the image as read, packed votes, what the strategy makes of them.
struct LoadedCase
{
  Case Source;
  rcn_geometry Geometry{};
  bool Marked = false;        ///< somebody marked something
  std::vector<Volume> Images; ///< empty: not in memory now
  std::vector<rcn_channel> Channels;
  rcn_scale Scale{};
  std::shared_ptr<rcn_votes> Votes;
  TrainingHandle<rcn_target> Target;
  TrainingHandle<rcn_foci> Foci;
  double Bytes = 0; ///< in memory now, or when it last was
};

class CaseReader;

/// All cases of a training, by number: new, old, validation. Beyond the memory allowed, those not used for longest
/// are let go and read again when they are needed. Memory is counted as it is taken: what the core allocates for a case, and
/// its images.
class CaseStore
{
public:
  /// `room`: bytes; 0: no limit.
  CaseStore(Workspace& workspace, std::vector<std::string> raters, double room);
  ~CaseStore();

  /// Most bytes that were in memory at once; what is allowed.
  double Peak() const { return this->Peak_; }
  double Room() const { return this->Room_; }

  /// What every case's votes and image become, known only after the first look at all of them.
  void SetRules(const rcn_strategy& strategy, const rcn_fusion_options& fusion, const rcn_normalize& normalize);

  /// Brings all cases to common axes: those in memory, those that are read later, and what is known of the others.
  void SetAxes(const std::string& axes, bool slices);

  size_t Count() const { return this->Cases_.size(); }

  /// Gives a case a number; nothing is read yet.
  size_t Add(const Case& source);

  /// What is known of a case, whether it is in memory or not.
  LoadedCase& Peek(size_t index) { return this->Cases_[index]; }

  /// The case, read if need be; throws Error that begins with its id.
  LoadedCase& Get(size_t index);

  /// Begins to read, on a thread of its own, those of these cases that are not in memory, as far as there is room beside the
  /// others of them. Get() will be asked for them in this order; no other case is in use any more. What cannot be read is read
  /// again by Get(), which says why.
  void ReadAhead(const std::vector<size_t>& numbers);

  /// How many cases Get() found read, or being read, in this way.
  int64_t CountReadAhead() const { return this->CountReadAhead_; }

  /// Lets a case go that another process needs.
  void Release(size_t index);

private:
  double Needs(const LoadedCase& one) const;
  void MakeRoom(double bytes, size_t kept = 0);
  void DropReader();
  std::shared_ptr<Workspace> TakeRead(size_t index);
  void Account(LoadedCase& one, double bytes);
  double CoreBytes() const;
  void Read(LoadedCase& one, std::shared_ptr<Workspace> read);
  void Turn(LoadedCase& one);
  void Prepare(LoadedCase& one);
  void LetGo(LoadedCase& one);

  Workspace& Workspace_;
  std::vector<std::string> Raters_;
  double Room_, Held_ = 0, Peak_ = 0, Largest_ = 0; // bytes
  rcn_strategy Strategy_{};
  rcn_fusion_options Fusion_ = RCN_FUSION_OPTIONS_INIT;
  rcn_normalize Normalize_ = RCN_NORMALIZE_INIT;
  bool HasRules_ = false;
  std::string Axes_; // see SetAxes()
  bool Slices_ = false;
  std::vector<LoadedCase> Cases_;
  std::list<size_t> Recent_; // last used last
  int64_t CountReadAhead_ = 0;
  std::unique_ptr<CaseReader> Reader_; // what is kept free for its cases counts as held
};

} // namespace rcn

#endif
