// SPDX-License-Identifier: Apache-2.0
#include "rcnWorkspace.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
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
  rcn_context* context = nullptr; // none yet, so that there is nowhere to ask for the core's sentence
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

Case CaseOf(const std::string& id, const std::vector<Volume>& images, const std::string& imageName,
  const std::vector<RaterMask>& masks, const std::vector<Structure>& structures)
{
  Case one;
  one.Id = id;
  one.Structures = structures;
  one.Images.assign(images.size(), imageName); // no files: names for sentences, as the raters' paths below
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
    return one.Images.empty() ? std::vector<Volume>() : one.Memory->Images; // who clears Images wants none
  }
  return ReadImages(context, one.Images, tolerance);
}

/// Collects a case's answers; the workspace takes them over when all went well.
class Workspace::Ballot
{
public:
  /// `raters`: the slots; empty: those who are named.
  Ballot(const Workspace& workspace, const Case& one, const std::vector<std::string>& raters)
    : Options_(workspace.Options_),
      Context_(workspace.Context_.get()),
      Structures_(one.Structures),
      Fixed_(!raters.empty()),
      Names_(raters)
  {
    if (this->Options_.HasUnanswered || one.Unanswered)
    {
      this->Unanswered_ = this->Options_.HasUnanswered ? this->Options_.Unanswered : *one.Unanswered;
    }
    const std::string sentence = CheckStructures(one.Structures);
    if (!sentence.empty())
    {
      throw Error(RCN_EINVALID, one.Id + ": " + sentence);
    }
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
    if (rater.empty() || !JsonHandle(json_string(rater.c_str()))) // jansson takes only UTF-8, and names end up in JSON
    {
      throw Error(RCN_EINVALID, place + ": a rater's name in it is empty or not UTF-8 text; give it another one.");
    }
    if (!this->Answered_.insert(rater).second)
    {
      throw Error(RCN_EINVALID, "The rater " + rater + " is named twice (" + place + "); give each rater a different name.");
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
    if (this->Names_.size() > RCN_MAX_RATERS) // all are named by now
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
      const auto raters = static_cast<int>(this->Names_.size()), structures = static_cast<int>(this->Structures_.size());
      Check(structures > 1 ? rcn_votes_create_labels(&created, this->Context_, &this->Reference_, raters, structures)
                           : rcn_votes_create(&created, this->Context_, &this->Reference_, raters),
        this->Context_);
      this->Votes_.reset(created);
    }
  }

  /// A rater's answer in a volume that was placed.
  void Add(const std::string& rater, const std::string& place, const Channel& channel, const std::vector<int64_t>& values)
  {
    const int index = this->IndexOf(rater);
    rcn_mask mask{};
    mask.image = channel.Image;
    mask.image.geometry = this->Reference_; // compared before
    mask.component = channel.Component;
    mask.values = values.empty() ? nullptr : values.data();
    mask.value_count = static_cast<int>(values.size());
    mask.unanswered = this->Unanswered_ ? &*this->Unanswered_ : nullptr;
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
        RCN_EDATA, "The label value " + text + " does not occur in " + place + "; check which value " + rater + " used.");
    }
    this->Remarks_.push_back("Rater " + rater + " marked nothing in " + place + ".");
  }

  /// One of the images of a rater's answer about several structures, in a volume that was placed.
  struct Part
  {
    Channel Where;
    int Structure = 0;           ///< 0: all of them, by their values
    std::vector<int64_t> Values; ///< that mean the structure; empty: any non-zero
  };

  /// A rater's answer in such images; none: nothing of what the case is about was marked.
  void AddParts(const std::string& rater, const std::string& place, std::vector<Part> parts)
  {
    Volume empty;
    if (parts.empty()) // who marked nothing has answered: background everywhere, not "no answer"
    {
      if (this->ReferenceName_.empty())
      {
        throw Error(RCN_EINVALID, rater + " has no mask of a structure.");
      }
      empty = Volume::Allocate(this->Reference_, RCN_UINT8);
      std::memset(empty.Data(), 0, static_cast<size_t>(rcn_geometry_voxels(&this->Reference_)));
      this->Place(empty, place);
      parts.push_back({ empty.GetChannel(0), 1, {} });
    }
    if (this->Structures_.size() > 1)
    {
      this->AddLabels(rater, place, parts);
    }
    else
    {
      this->Add(rater, place, parts.front().Where, parts.front().Values);
    }
  }

  /// A rater's answer about several structures.
  void AddLabels(const std::string& rater, const std::string& place, const std::vector<Part>& parts)
  {
    std::vector<LabelMap> maps;
    for (const Part& part : parts)
    {
      LabelMap& map = this->MapFor(maps, part);
      for (size_t c = 0; c < this->Structures_.size(); ++c)
      {
        const auto number = static_cast<int>(c) + 1;
        const bool meant = part.Structure == 0 || part.Structure == number;
        const std::vector<int64_t>& values = part.Structure == 0 ? this->Structures_[c].Values : part.Values;
        // Without values any non-zero one means the structure: one entry of Structures, none of Values.
        map.Values.insert(map.Values.end(), values.begin(), meant ? values.end() : values.begin());
        map.Structures.insert(
          map.Structures.end(), meant ? std::max<size_t>(values.size(), 1) : 0, static_cast<uint8_t>(number));
      }
    }
    std::vector<rcn_label_map> views;
    for (const LabelMap& map : maps)
    {
      views.push_back(this->ViewOf(map));
    }
    const int index = this->IndexOf(rater);
    const std::string who = rater + " (" + place + ")";
    int64_t unnamed = 0;
    const rcn_status status =
      rcn_votes_add_labels(this->Votes_.get(), this->Context_, index, views.data(), static_cast<int>(views.size()), &unnamed);
    if (status != RCN_OK)
    {
      throw Error(status, this->WithNames(rcn_context_error(this->Context_))).In(who);
    }
    const bool marked = rcn_votes_marked(this->Votes_.get(), index) > 0;
    const std::string others = unnamed > 0 ? this->UnnamedValues(views) : "";
    if (!marked && unnamed > 0 && this->Options_.AbsentLabelIsError)
    {
      throw Error(RCN_EDATA,
        "No label value of a structure occurs in " + place + ", which has " + others + "; check which values " + rater +
          " used.");
    }
    if (unnamed > 0)
    {
      this->Unnamed_.push_back(others + " (" + Counted(unnamed, "voxel") + ") of " + who);
    }
    if (!marked)
    {
      this->Remarks_.push_back("Rater " + rater + " marked nothing in " + place + ".");
    }
  }

  void HandOver(Workspace& workspace, const std::vector<Volume>& images)
  {
    workspace.LabelRemark_.clear();
    this->RemarkOnStructures(workspace);
    if (!this->Labels_.empty() && !workspace.LabelsRemarked_) // once for all cases: they tend to be alike
    {
      workspace.LabelRemark_ = "Several label values count as marked: " + this->Labels_.front() +
        AndOthers(this->Labels_.size() - 1) +
        ". To take one of them, give its value (NAME=FILE:3 for a file, \"value\" in a data list).";
      workspace.LabelsRemarked_ = true;
      this->Remarks_.push_back(workspace.LabelRemark_);
    }
    workspace.Selected_.reset(); // borrows the votes that go next
    workspace.Votes_ = std::move(this->Votes_);
    workspace.Structures_ = this->Structures_;
    workspace.Raters_ = this->Names_;
    workspace.Images_ = images;
    workspace.Remarks_ = this->Remarks_;
  }

private:
  /// Values of one image and what they mean, as rcn_label_map has them.
  struct LabelMap
  {
    Channel Where;
    std::vector<int64_t> Values;
    std::vector<uint8_t> Structures;
  };

  static constexpr int ShownLabels = 8;

  int IndexOf(const std::string& rater) const
  {
    return static_cast<int>(std::find(this->Names_.begin(), this->Names_.end(), rater) - this->Names_.begin());
  }

  /// The map that a part belongs to: structures in one image are told apart by its values, so they share a map.
  static LabelMap& MapFor(std::vector<LabelMap>& maps, const Part& part)
  {
    const auto same = [&](const LabelMap& map) {
      return map.Where.Image.data == part.Where.Image.data && map.Where.Component == part.Where.Component &&
        !map.Values.empty() && !part.Values.empty();
    };
    const auto found = std::find_if(maps.begin(), maps.end(), same);
    if (found != maps.end())
    {
      return *found;
    }
    maps.push_back({ part.Where, {}, {} });
    return maps.back();
  }

  rcn_label_map ViewOf(const LabelMap& map) const
  {
    rcn_label_map view{};
    view.image = map.Where.Image;
    view.image.geometry = this->Reference_; // compared before
    view.component = map.Where.Component;
    view.values = map.Values.empty() ? nullptr : map.Values.data();
    view.structures = map.Structures.data();
    view.value_count = static_cast<int>(map.Values.size());
    view.unanswered = this->Unanswered_ ? &*this->Unanswered_ : nullptr;
    return view;
  }

  /// The core numbers structures; a person has named them. What was replaced is not looked at again: a name may be
  /// "structure 1".
  std::string WithNames(std::string sentence) const
  {
    const std::string before = "as structure ";
    for (size_t at = sentence.find(before); at != std::string::npos; at = sentence.find(before, at))
    {
      size_t digits = 0;
      const std::string& name = this->Structures_.at(std::stoul(sentence.substr(at + before.size()), &digits) - 1).Name;
      sentence.replace(at, before.size() + digits, "as " + name);
      at += name.size() + 3;
    }
    return sentence;
  }

  /// "7, 8 and 9": the label values that no structure has.
  std::string UnnamedValues(const std::vector<rcn_label_map>& maps) const
  {
    std::set<double> values;
    for (const rcn_label_map& map : maps)
    {
      std::vector<double> labels(static_cast<size_t>(map.value_count + ShownLabels + 1));
      labels.resize(static_cast<size_t>(
        rcn_image_labels(labels.data(), static_cast<int>(labels.size()), &map.image, map.component, map.unanswered)));
      for (const double label : labels)
      {
        const int64_t* const end = map.values + map.value_count;
        const bool named =
          !map.values || std::any_of(map.values, end, [&](int64_t value) { return static_cast<double>(value) == label; });
        values.insert(named ? 0 : label); // 0 is never among them
      }
    }
    values.erase(0);
    return LabelText(std::vector<double>(values.begin(), values.end()));
  }

  /// "1, 2 and 3", "1, 2, ... and more".
  static std::string LabelText(const std::vector<double>& labels)
  {
    std::string text;
    for (size_t i = 0; i < std::min<size_t>(labels.size(), ShownLabels); ++i)
    {
      char number[32];
      std::snprintf(number, sizeof number, "%.15g", labels[i]);
      text += (i == 0 ? "" : i + 1 == labels.size() ? " and " : ", ") + std::string(number);
    }
    return text + (labels.size() > ShownLabels ? " and more" : "");
  }

  /// ", and in another mask": how many more of these sentences there would be.
  static std::string AndOthers(size_t others)
  {
    return others == 0 ? "" : others == 1 ? ", and in another mask" : ", and in " + std::to_string(others) + " other masks";
  }

  /// Values that no structure has, and structures that nobody marked.
  void RemarkOnStructures(Workspace& workspace)
  {
    if (this->Structures_.size() < 2)
    {
      return;
    }
    if (!this->Unnamed_.empty())
    {
      this->Remarks_.push_back("Label values that no structure has count as background: " + this->Unnamed_.front() +
        AndOthers(this->Unnamed_.size() - 1) + ".");
      workspace.LabelRemark_ = workspace.LabelsRemarked_ ? "" : this->Remarks_.back();
      workspace.LabelsRemarked_ = true;
    }
    const rcn_votes* const votes = this->Votes_.get();
    const int64_t raters = rcn_votes_raters(votes);
    std::vector<bool> marked(256);
    for (int64_t p = 0; p < rcn_votes_pattern_count(votes); ++p)
    {
      for (int64_t r = 0; r < raters && rcn_votes_patterns(votes)[p].voxels > 0; ++r)
      {
        marked[rcn_votes_labels(votes)[p * raters + r]] = true;
      }
    }
    for (size_t c = 0; c < this->Structures_.size(); ++c)
    {
      if (!marked[c + 1])
      {
        this->Remarks_.push_back("Nobody marked the structure " + this->Structures_[c].Name + ".");
      }
    }
  }

  /// Remembers a mask in which more than one label means "marked".
  void NoteLabels(const std::string& who, const rcn_mask& mask)
  {
    std::vector<double> labels(ShownLabels + 1);
    labels.resize(
      static_cast<size_t>(rcn_image_labels(labels.data(), ShownLabels + 1, &mask.image, mask.component, mask.unanswered)));
    if (labels.size() > 1)
    {
      this->Labels_.push_back(LabelText(labels) + " of " + who);
    }
  }

  const WorkspaceOptions& Options_;
  rcn_context* Context_;
  std::vector<Structure> Structures_;
  std::optional<int64_t> Unanswered_;
  bool Fixed_;
  std::vector<std::string> Names_, Remarks_, Labels_, Unnamed_;
  std::set<std::string> Answered_;
  rcn_geometry Reference_{};
  std::string ReferenceName_;
  std::unique_ptr<rcn_votes, VotesDeleter> Votes_;
};

void Workspace::LoadCase(const Case& one, const std::vector<std::string>& raters)
{
  const std::vector<Volume> images = ImagesOf(this->Context_.get(), one, this->Options_.Tolerance);
  Ballot ballot(*this, one, raters);
  if (!images.empty())
  {
    ballot.SetReference(images.front().Geometry(), one.Images.front());
  }
  if (one.Raters.empty())
  {
    throw Error(RCN_EINVALID, "No raters were given; at least one is needed.", "raters");
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
/// never needs room for more than the files of one rater and the votes.
void Workspace::CountFiles(Ballot& ballot, const Case& one)
{
  std::vector<std::vector<std::string>> groups; // raters who answered in the same files
  std::map<std::vector<std::string>, std::vector<RaterFile>> byFiles;
  for (const RaterFile& rater : one.Raters)
  {
    const std::vector<std::string> files = FilesOf(rater);
    for (const std::string& file : files)
    {
      if (HasExtension(file, ".jpg") || HasExtension(file, ".jpeg"))
      {
        throw Error(RCN_EDATA, file + ": JPEG changes values and cannot hold a mask; use PNG or NRRD.");
      }
    }
    if (byFiles.find(files) == byFiles.end())
    {
      groups.push_back(files);
    }
    for (const RaterFile& single : RatersIn(rater, one.Structures))
    {
      ballot.Name(single.Name, rater.Path);
      byFiles[files].push_back(single);
    }
  }
  for (const std::vector<std::string>& files : groups)
  {
    std::map<std::string, Volume> volumes;
    for (const std::string& file : files)
    {
      volumes[file] = ReadMask(file);
      ballot.Place(volumes[file], file);
    }
    for (const RaterFile& rater : byFiles[files])
    {
      CountFile(ballot, one, rater, volumes);
    }
  }
}

/// One rater's answer in files that were read and placed.
void Workspace::CountFile(Ballot& ballot, const Case& one, const RaterFile& rater, const std::map<std::string, Volume>& volumes)
{
  if (!one.HasStructures() && rater.Structures.empty())
  {
    ballot.Add(rater.Name, rater.Path, volumes.at(rater.Path).GetChannel(rater.Channel), rater.Values);
    return;
  }
  if (!rater.Values.empty())
  {
    throw Error(RCN_EINVALID,
      rater.Name + " (" + rater.Path +
        "): a label map of several structures uses their label values and cannot have one of its own.");
  }
  std::vector<Ballot::Part> parts;
  if (rater.Structures.empty())
  {
    parts.push_back({ volumes.at(rater.Path).GetChannel(rater.Channel), 0, {} });
  }
  for (size_t c = 0; c < rater.Structures.size(); ++c)
  {
    const StructureFile& file = rater.Structures[c];
    if (file.Path.empty())
    {
      continue;
    }
    const Volume& volume = volumes.at(file.Path);
    if (volume.IsColor() || file.Channel >= volume.ChannelCount() || (file.Channel < 0 && volume.ChannelCount() > 1))
    {
      throw Error(RCN_EDATA,
        file.Path + " must have one value per voxel to show where " + rater.Name + " marked " + one.Structures[c].Name + ".");
    }
    parts.push_back({ volume.GetChannel(std::max(file.Channel, 0)), static_cast<int>(c) + 1, file.Values });
  }
  ballot.AddParts(rater.Name, rater.Path, parts);
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
    if (mask == masks.end())
    {
      throw Error(RCN_EINVALID, rater.Name + " has no mask.");
    }
    if (!mask->Structures.empty() || one.HasStructures())
    {
      CountStructureMasks(ballot, one, rater, *mask);
      continue;
    }
    Volume volume = PlacedMask(ballot, rater.Name, mask->Mask, mask->Channel);
    const bool named = mask->Values.empty() && !one.Structures.empty();
    ballot.Add(rater.Name, rater.Path, volume.GetChannel(mask->Channel), named ? one.Structures.front().Values : mask->Values);
  }
}

/// A mask in memory, on the voxels of the case.
Volume Workspace::PlacedMask(Ballot& ballot, const std::string& rater, const Volume& mask, int channel)
{
  if (channel < 0 || channel >= mask.ChannelCount())
  {
    throw Error(RCN_EINVALID, rater + " has no component number " + std::to_string(channel + 1) + ".");
  }
  Volume volume = mask; // shares the voxels
  ballot.Place(volume, rater);
  return volume;
}

/// The same where structures have masks of their own, or share one in a case of several.
void Workspace::CountStructureMasks(Ballot& ballot, const Case& one, const RaterFile& rater, const RaterMask& mask)
{
  std::vector<Volume> volumes; // parts borrow from them
  std::vector<Ballot::Part> parts;
  if (mask.Structures.empty())
  {
    volumes.push_back(PlacedMask(ballot, rater.Name, mask.Mask, mask.Channel));
    parts.push_back({ volumes.back().GetChannel(mask.Channel), 0, {} });
  }
  for (const StructureMask& single : mask.Structures)
  {
    for (size_t c = 0; c < one.Structures.size(); ++c)
    {
      if (one.Structures[c].Name == single.Structure)
      {
        volumes.push_back(PlacedMask(ballot, rater.Name, single.Mask, single.Channel));
        parts.push_back({ volumes.back().GetChannel(single.Channel), static_cast<int>(c) + 1, single.Values });
      }
    }
  }
  ballot.AddParts(rater.Name, rater.Path, parts);
}

void Workspace::SelectStructure(int structure)
{
  this->RequireCase();
  if (structure < 0 || structure > static_cast<int>(std::max<size_t>(this->Structures_.size(), 1)))
  {
    throw Error(RCN_EINVALID, "Structure number " + std::to_string(structure) + " does not exist in this case.");
  }
  rcn_votes* selected = nullptr;
  if (structure > 0 && this->HasStructures()) // the only one is selected already
  {
    Check(rcn_votes_select(&selected, this->Context_.get(), this->Votes_.get(), structure), this->Context_.get());
  }
  this->Selected_.reset(selected);
  this->SelectedNumber_ = structure;
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

bool Workspace::HasRightAngles() const
{
  this->RequireCase();
  return !rcn_geometry_is_sheared(rcn_votes_geometry(this->Votes()));
}

AgreementReport Workspace::Agree(bool surfaces) const
{
  this->RequireCase();
  rcn_context* context = this->Context_.get();
  rcn_agreement* agreement = nullptr;
  Check(rcn_agreement_create(&agreement, context, this->Votes()), context);
  AgreementReport report;
  report.Geometry = *rcn_votes_geometry(this->Votes());
  report.Figures.reset(agreement, [owner = this->Context_](rcn_agreement* a) { rcn_agreement_destroy(a, owner.get()); });
  if (surfaces)
  {
    Check(rcn_agreement_measure_surfaces(agreement, context, this->Votes()), context);
    report.HasSurfaces = true;
  }
  rcn_dispute* regions = nullptr;
  int64_t count = 0;
  Check(rcn_disputes_create(&regions, &count, context, this->Votes()), context);
  report.Regions.assign(regions, regions + count);
  rcn_disputes_destroy(regions, context);
  return report;
}

LabelAgreement Workspace::AgreeLabels() const
{
  this->RequireCase();
  LabelAgreement labels;
  labels.Kappa.resize(this->Raters_.size() * this->Raters_.size());
  Check(
    rcn_agreement_labels(&labels.Figures, labels.Kappa.data(), this->Context_.get(), this->Votes_.get()), this->Context_.get());
  return labels;
}

Volume Workspace::EntropyMap() const
{
  this->RequireCase();
  Volume map = Volume::Allocate(*rcn_votes_geometry(this->Votes()), RCN_FLOAT32);
  Check(rcn_agreement_entropy_map(static_cast<float*>(map.Data()), this->Context_.get(), this->Votes()), this->Context_.get());
  return map;
}

Volume Workspace::MapOfEach(const std::function<Volume()>& map)
{
  this->RequireCase();
  if (!this->HasStructures())
  {
    return map();
  }
  const auto count = static_cast<int>(this->Structures_.size());
  const Volume all = Volume::Allocate(*rcn_votes_geometry(this->Votes_.get()), RCN_FLOAT32, count);
  for (int c = 0; c < count; ++c)
  {
    this->SelectStructure(c + 1);
    const Volume one = map();
    rcn_image_copy_component(static_cast<float*>(all.Data()) + c, count, &one.View(), 0);
  }
  this->SelectStructure(0);
  return all;
}

} // namespace rcn
