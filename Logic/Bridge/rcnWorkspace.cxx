// SPDX-License-Identifier: Apache-2.0
#include "rcnWorkspace.h"

#include <algorithm>
#include <sstream>
#include <cstdio>
#include <map>
#include <set>

#include "rcnJson.h"
#include "rcnReport.h"
#include "rcnResample.h"

namespace rcn
{

Workspace::Workspace(const WorkspaceOptions& options) : Options_(options)
{
  rcn_context_options contextOptions = RCN_CONTEXT_OPTIONS_INIT;
  contextOptions.threads = options.Threads;
  if (const char* sentence = rcn_context_check(&contextOptions))
  {
    throw Error(RCN_EINVALID, sentence);
  }
  rcn_context* context = nullptr;
  const rcn_status status = rcn_context_create(&context, &contextOptions);
  if (status != RCN_OK)
  {
    throw Error(status, "Out of memory for a workspace.");
  }
  this->Context_.reset(context, ContextDeleter());
}

int Workspace::ForwardProgress(double fraction, const char* stage, void* payload)
{
  const Workspace* self = static_cast<const Workspace*>(payload);
  return self->Progress_ && self->Progress_(fraction, stage);
}

void Workspace::SetProgress(ProgressFunction progress)
{
  this->Progress_ = std::move(progress);
  rcn_context_set_progress(this->Context_.get(), this->Progress_ ? ForwardProgress : nullptr, this);
}

namespace
{

/// The raters that a file stands for: itself, its segments, or its channels.
std::vector<RaterFile> ExpandRater(const RaterFile& rater, const Volume& volume)
{
  // volume: the file's header
  if (rater.Channel >= 0)
  {
    if (rater.Channel >= volume.ChannelCount())
    {
      throw Error(RCN_EDATA,
        rater.Path + " holds " + Counted(volume.ChannelCount(), "mask") + ", but a mask for rater number " +
          std::to_string(rater.Channel + 1) + " is needed.");
    }
    return { rater };
  }
  std::vector<RaterFile> expanded;
  if (rater.Name.empty() && !volume.Segments().empty() && rater.Values.empty())
  {
    for (const Segment& segment : volume.Segments())
    {
      RaterFile one = rater;
      one.Name = segment.Name;
      one.Values = { segment.LabelValue };
      one.Channel = segment.Layer;
      if (one.Channel < 0 || one.Channel >= volume.ChannelCount())
      {
        throw Error(RCN_EFORMAT, rater.Path + ": segment " + segment.Name + " lies in a layer that is not there.");
      }
      expanded.push_back(one);
    }
    return expanded;
  }
  if (volume.IsColor())
  {
    throw Error(RCN_EDATA,
      rater.Path +
        " is a color picture; a mask must have one value per voxel. Save it in shades of gray or with a palette, with 8 bits "
        "or more.");
  }
  if (volume.ChannelCount() == 1)
  {
    expanded.push_back(rater);
    expanded.back().Channel = 0;
    if (rater.Name.empty())
    {
      const std::string::size_type slash = rater.Path.rfind('/');
      const std::string name = rater.Path.substr(slash == std::string::npos ? 0 : slash + 1);
      expanded.back().Name = name.substr(0, name.find('.'));
    }
    return expanded;
  }
  for (int c = 0; c < volume.ChannelCount(); ++c)
  {
    RaterFile one = rater;
    one.Name = (rater.Name.empty() ? "r" : rater.Name + ".") + std::to_string(c + 1);
    one.Channel = c;
    expanded.push_back(one);
  }
  return expanded;
}

} // namespace

Case CaseOf(
  const std::string& id, const std::vector<Volume>& images, const std::string& imageName, const std::vector<RaterMask>& masks)
{
  Case one;
  one.Id = id;
  one.Images.assign(images.size(), imageName);
  one.Memory = std::make_shared<CaseInMemory>(CaseInMemory{ images, masks });
  for (const RaterMask& mask : masks)
  {
    RaterFile rater;
    rater.Name = mask.Name;
    rater.Path = imageName;
    one.Raters.push_back(rater);
  }
  return one;
}

std::vector<Volume> ImagesOf(rcn_context* context, const Case& one, double tolerance)
{
  if (one.Memory)
  {
    return one.Images.empty() ? std::vector<Volume>() : one.Memory->Images;
  }
  return ReadImages(context, one.Images, tolerance);
}

std::vector<RaterFile> RatersIn(const RaterFile& rater)
{
  return ExpandRater(rater, ReadMaskHeader(rater.Path));
}

/// Collects a case's answers; the workspace takes them over when all went well.
class Workspace::Ballot
{
public:
  /// `raters`: the slots; empty: those who are named.
  Ballot(const Workspace& workspace, const std::vector<std::string>& raters)
    : Options_(workspace.Options_), Context_(workspace.Context_.get()), Fixed_(!raters.empty()), Names_(raters)
  {
  }

  /// Where voxels have to be; `name` stands in sentences.
  void SetReference(const rcn_geometry& geometry, const std::string& name)
  {
    this->Reference_ = geometry;
    this->ReferenceName_ = name;
  }

  /// A rater will answer in `place`, a file or a node. All are named before the first answers.
  void Name(const std::string& rater, const std::string& place)
  {
    if (rater.empty() || !JsonHandle(json_string(rater.c_str())))
    {
      throw Error(RCN_EINVALID, place + ": a rater's name in it is empty or not UTF-8 text; give it another one.");
    }
    if (!this->Answered_.insert(rater).second)
    {
      throw Error(RCN_EINVALID, "The rater " + rater + " is named twice (" + place + "); give each rater another name.");
    }
    if (!this->Fixed_)
    {
      this->Names_.push_back(rater);
    }
    else if (std::find(this->Names_.begin(), this->Names_.end(), rater) == this->Names_.end())
    {
      throw Error(RCN_EINVALID, place + ": the rater " + rater + " is not among the raters of this data set.");
    }
  }

  /// The volume where raters answered, in the reference's geometry from now on.
  void Place(Volume& volume, const std::string& place)
  {
    if (this->Names_.size() > RCN_MAX_RATERS)
    {
      throw Error(RCN_EINVALID,
        "There must be 1 to " + std::to_string(RCN_MAX_RATERS) + " raters, not " + std::to_string(this->Names_.size()) + ".");
    }
    if (this->ReferenceName_.empty())
    {
      this->SetReference(volume.Geometry(), place);
    }
    const rcn_status same = rcn_geometry_compare(this->Context_, &volume.Geometry(), place.c_str(), &this->Reference_,
      this->ReferenceName_.c_str(), this->Options_.Tolerance);
    if (same != RCN_OK)
    {
      const bool pixels = volume.Geometry().unit == RCN_PIXELS || this->Reference_.unit == RCN_PIXELS;
      if (!this->Options_.Resample || pixels)
      {
        const char* const more = pixels ? " A picture without spacing cannot be resampled; give a mask of the same size." : "";
        throw Error(same, rcn_context_error(this->Context_) + std::string(more), pixels ? "" : "geometry");
      }
      volume = ResampleNearest(volume, this->Reference_);
      this->Remarks_.push_back(place + " was resampled to the geometry of " + this->ReferenceName_ + ".");
    }
    else if (volume.Geometry().unit != this->Reference_.unit)
    {
      // One of them is a picture without spacing. A grid of 1 mm was made from such pixels; any other deserves a word.
      rcn_geometry mine = volume.Geometry(), theirs = this->Reference_;
      mine.unit = theirs.unit = RCN_MM;
      if (rcn_geometry_compare(this->Context_, &mine, "", &theirs, "", this->Options_.Tolerance) != RCN_OK)
      {
        const bool picture = this->Reference_.unit == RCN_PIXELS;
        this->Remarks_.push_back((picture ? this->ReferenceName_ : place) +
          " has no spacing; its pixels are taken for those of " + (picture ? place : this->ReferenceName_) +
          ", which has as many.");
      }
    }
    if (!this->Votes_)
    {
      rcn_votes* created = nullptr;
      Check(
        rcn_votes_create(&created, this->Context_, &this->Reference_, static_cast<int>(this->Names_.size())), this->Context_);
      this->Votes_.reset(created);
    }
  }

  /// A rater's answer in a volume that was placed.
  void Add(const std::string& rater, const std::string& place, const Channel& channel, const std::vector<int64_t>& values)
  {
    const int index = static_cast<int>(std::find(this->Names_.begin(), this->Names_.end(), rater) - this->Names_.begin());
    rcn_mask mask{};
    mask.image = channel.Image;
    mask.image.geometry = this->Reference_; // compared before
    mask.component = channel.Component;
    mask.values = values.empty() ? nullptr : values.data();
    mask.value_count = static_cast<int>(values.size());
    mask.unanswered = this->Options_.HasUnanswered ? &this->Options_.Unanswered : nullptr;
    Check(rcn_votes_add(this->Votes_.get(), this->Context_, index, &mask), this->Context_, rater + " (" + place + ")");
    if (values.empty())
    {
      this->NoteLabels(rater + " (" + place + ")", mask);
    }
    if (rcn_votes_marked(this->Votes_.get(), index) > 0)
    {
      return;
    }
    if (!values.empty() && this->Options_.AbsentLabelIsError)
    {
      std::string text;
      for (const int64_t value : values)
      {
        text += (text.empty() ? "" : " or ") + std::to_string(value);
      }
      throw Error(
        RCN_EDATA, "The label value " + text + " does not occur in " + place + "; which value did " + rater + " use?");
    }
    this->Remarks_.push_back("Rater " + rater + " marked nothing in " + place + ".");
  }

  void HandOver(Workspace& workspace, const std::vector<Volume>& images)
  {
    workspace.LabelRemark_.clear();
    if (!this->Labels_.empty() && !workspace.LabelsRemarked_)
    {
      const size_t others = this->Labels_.size() - 1;
      workspace.LabelRemark_ = "Several label values count as marked: " + this->Labels_.front() +
        (others == 0      ? ""
            : others == 1 ? ", and in another mask"
                          : ", and in " + std::to_string(others) + " other masks") +
        ". To take one of them, give its value (NAME=FILE:3 for a file, \"value\" in a data list).";
      workspace.LabelsRemarked_ = true;
      this->Remarks_.push_back(workspace.LabelRemark_);
    }
    workspace.Votes_ = std::move(this->Votes_);
    workspace.Raters_ = this->Names_;
    workspace.Images_ = images;
    workspace.Remarks_ = this->Remarks_;
  }

private:
  /// Remembers a mask in which more than one label means "marked".
  void NoteLabels(const std::string& who, const rcn_mask& mask)
  {
    constexpr int shown = 8;
    double labels[shown + 1];
    const int count = rcn_image_labels(labels, shown + 1, &mask.image, mask.component, mask.unanswered);
    std::string text;
    for (int i = 0; i < std::min(count, shown); ++i)
    {
      char number[32];
      std::snprintf(number, sizeof number, "%.15g", labels[i]);
      text += (i == 0 ? "" : i + 1 == count ? " and " : ", ") + std::string(number);
    }
    if (count > 1)
    {
      this->Labels_.push_back(text + (count > shown ? " and more" : "") + " of " + who);
    }
  }

  const WorkspaceOptions& Options_;
  rcn_context* Context_;
  bool Fixed_;
  std::vector<std::string> Names_, Remarks_, Labels_;
  std::set<std::string> Answered_;
  rcn_geometry Reference_{};
  std::string ReferenceName_;
  std::unique_ptr<rcn_votes, VotesDeleter> Votes_;
};

void Workspace::LoadCase(const Case& one, const std::vector<std::string>& raters)
{
  const std::vector<Volume> images = ImagesOf(this->Context_.get(), one, this->Options_.Tolerance);
  Ballot ballot(*this, raters);
  if (!images.empty())
  {
    ballot.SetReference(images.front().Geometry(), one.Images.front());
  }
  if (one.Raters.empty())
  {
    throw Error(RCN_EINVALID, "There is no rater; at least one is needed.", "raters");
  }
  if (one.Memory)
  {
    CountMasks(ballot, one);
  }
  else
  {
    CountFiles(ballot, one);
  }
  ballot.HandOver(*this, images);
}

/// Headers first: they show how many raters there are. Then each file's voxels once, packed while in memory, so that a case
/// never needs room for more than one file and the votes.
void Workspace::CountFiles(Ballot& ballot, const Case& one)
{
  std::vector<std::string> files;
  std::map<std::string, std::vector<RaterFile>> byFile;
  for (const RaterFile& rater : one.Raters)
  {
    if (HasExtension(rater.Path, ".jpg") || HasExtension(rater.Path, ".jpeg"))
    {
      throw Error(RCN_EDATA, rater.Path + ": JPEG changes values and cannot hold a mask; use PNG or NRRD.");
    }
    if (byFile.find(rater.Path) == byFile.end())
    {
      files.push_back(rater.Path);
    }
    for (const RaterFile& single : RatersIn(rater))
    {
      ballot.Name(single.Name, rater.Path);
      byFile[rater.Path].push_back(single);
    }
  }
  for (const std::string& file : files)
  {
    Volume volume = ReadMask(file);
    ballot.Place(volume, file);
    for (const RaterFile& rater : byFile[file])
    {
      ballot.Add(rater.Name, file, volume.GetChannel(rater.Channel), rater.Values);
    }
  }
}

void Workspace::CountMasks(Ballot& ballot, const Case& one)
{
  for (const RaterFile& rater : one.Raters)
  {
    ballot.Name(rater.Name, "the raters");
  }
  for (const RaterFile& rater : one.Raters)
  {
    const std::vector<RaterMask>& masks = one.Memory->Masks;
    const auto mask = std::find_if(masks.begin(), masks.end(), [&](const RaterMask& m) { return m.Name == rater.Name; });
    if (mask == masks.end() || mask->Channel < 0 || mask->Channel >= mask->Mask.ChannelCount())
    {
      throw Error(RCN_EINVALID,
        rater.Name +
          (mask == masks.end() ? " has no mask." : " has no component number " + std::to_string(mask->Channel + 1) + "."));
    }
    Volume volume = mask->Mask; // shares the voxels
    ballot.Place(volume, rater.Name);
    ballot.Add(rater.Name, rater.Path, volume.GetChannel(mask->Channel), mask->Values);
  }
}

const Volume& Workspace::Image() const
{
  static const Volume none;
  return this->Images_.empty() ? none : this->Images_.front();
}

void Workspace::RequireCase() const
{
  if (!this->Votes_)
  {
    throw Error(RCN_EINVALID, "No case is loaded.");
  }
}

AgreementReport Workspace::Agree(bool surfaces) const
{
  this->RequireCase();
  rcn_context* context = this->Context_.get();
  rcn_agreement* agreement = nullptr;
  Check(rcn_agreement_create(&agreement, context, this->Votes_.get()), context);
  AgreementReport report;
  report.Geometry = *rcn_votes_geometry(this->Votes_.get());
  report.Figures.reset(agreement, [owner = this->Context_](rcn_agreement* a) { rcn_agreement_destroy(a, owner.get()); });
  if (surfaces)
  {
    Check(rcn_agreement_measure_surfaces(agreement, context, this->Votes_.get()), context);
    report.HasSurfaces = true;
  }
  rcn_dispute* regions = nullptr;
  int64_t count = 0;
  Check(rcn_disputes_create(&regions, &count, context, this->Votes_.get()), context);
  report.Regions.assign(regions, regions + count);
  rcn_disputes_destroy(regions, context);
  return report;
}

namespace
{

const char* const FusionNoteBegin = "rater-consensus fuse ";

} // namespace

std::string FusionNote(const std::string& method, const std::vector<std::string>& raters)
{
  std::string note = FusionNoteBegin + method + ": ";
  for (size_t r = 0; r < raters.size(); ++r)
  {
    note += (r ? "," : "") + raters[r];
  }
  return note;
}

bool IsFusedFrom(const std::string& note, const std::vector<std::string>& raters)
{
  if (note.rfind(FusionNoteBegin, 0) != 0)
  {
    return false;
  }
  std::istringstream names(note.substr(std::min(note.size(), note.find(": ") + 2)));
  for (std::string name; std::getline(names, name, ',');)
  {
    if (std::find(raters.begin(), raters.end(), name) != raters.end())
    {
      return true;
    }
  }
  return false;
}

FusionReport Workspace::Fuse(const rcn_fusion_options& options) const
{
  this->RequireCase();
  rcn_context* context = this->Context_.get();
  FusionReport report;
  report.Map = Volume::Allocate(*rcn_votes_geometry(this->Votes_.get()), RCN_FLOAT32);
  report.MapContent = ContentOf(options);
  Check(rcn_fuse(static_cast<float*>(report.Map.Data()), &report.Figures, context, this->Votes_.get(), &options), context);
  std::vector<std::string> present;
  for (size_t r = 0; r < this->RaterNames().size(); ++r)
  {
    if (rcn_votes_present(this->Votes_.get()) >> r & 1)
    {
      present.push_back(this->RaterNames()[r]);
    }
  }
  report.Map.SetNote(FusionNote(rcn_method_name(options.method), present));
  return report;
}

Volume Workspace::EntropyMap() const
{
  this->RequireCase();
  Volume map = Volume::Allocate(*rcn_votes_geometry(this->Votes_.get()), RCN_FLOAT32);
  Check(
    rcn_agreement_entropy_map(static_cast<float*>(map.Data()), this->Context_.get(), this->Votes_.get()), this->Context_.get());
  return map;
}

Content ContentOf(const rcn_fusion_options& options)
{
  switch (options.method)
  {
    case RCN_ORC: return Content::Levels;
    case RCN_RANDOM:
    case RCN_MEDIAN:
    case RCN_SIMPLE: return Content::Mask;
    case RCN_STAPLE: return options.staple_output == RCN_STAPLE_MASK ? Content::Mask : Content::Probability;
    default: return Content::Probability;
  }
}

} // namespace rcn
