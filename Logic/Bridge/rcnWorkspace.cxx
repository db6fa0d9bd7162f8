#include "rcnWorkspace.h"

#include <algorithm>
#include <map>
#include <set>

#include "rcnJson.h"

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
  this->Context_.reset(context);
}

int Workspace::ForwardProgress(double fraction, const char* stage, void* payload)
{
  const Workspace* self = static_cast<const Workspace*>(payload);
  return self->Progress_ && self->Progress_(fraction, stage);
}

void Workspace::SetProgress(ProgressFunction progress)
{
  this->Progress_ = std::move(progress);
  rcn_context_set_progress(
    this->Context_.get(), this->Progress_ ? ForwardProgress : nullptr, this);
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
      throw Error(RCN_EDATA, rater.Path + " holds " + std::to_string(volume.ChannelCount()) +
        " masks, but a mask for rater number " + std::to_string(rater.Channel + 1) + " is needed.");
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
    throw Error(RCN_EDATA, rater.Path + " is a colour picture; a mask must have one value per voxel.");
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

bool IsJpeg(const std::string& path)
{
  const std::string::size_type dot = path.rfind('.');
  std::string extension = dot == std::string::npos ? "" : path.substr(dot);
  std::transform(extension.begin(), extension.end(), extension.begin(), ::tolower);
  return extension == ".jpg" || extension == ".jpeg";
}

} // namespace

void Workspace::LoadCase(const Case& one, const std::vector<std::string>& raters)
{
  rcn_context* context = this->Context_.get();
  const std::vector<Volume> images = ReadImages(context, one.Images, this->Options_.Tolerance);
  std::vector<std::string> remarks;
  rcn_geometry reference{};
  std::string referenceName;
  if (!images.empty())
  {
    reference = images.front().Geometry();
    referenceName = one.Images.front();
  }
  if (one.Raters.empty())
  {
    throw Error(RCN_EINVALID, "There is no rater; give at least one mask with --rater NAME=FILE.");
  }

  // Headers first: they tell how many raters there are. Then each file's voxels once, packed while in
  // memory, so that a case never needs room for more than one file and the votes.
  std::vector<std::string> files, names = raters;
  std::map<std::string, std::vector<RaterFile>> byFile;
  std::set<std::string> answered;
  for (const RaterFile& rater : one.Raters)
  {
    if (IsJpeg(rater.Path))
    {
      throw Error(RCN_EDATA, rater.Path + ": JPEG changes values and cannot hold a mask; use PNG or NRRD.");
    }
    if (byFile.find(rater.Path) == byFile.end())
    {
      files.push_back(rater.Path);
    }
    for (const RaterFile& single : ExpandRater(rater, ReadImageHeader(rater.Path)))
    {
      if (single.Name.empty() || !JsonHandle(json_string(single.Name.c_str())))
      {
        throw Error(RCN_EINVALID, rater.Path + ": a rater's name in it is empty or not UTF-8 text; give it another one.");
      }
      if (!answered.insert(single.Name).second)
      {
        throw Error(RCN_EINVALID, "The rater " + single.Name + " is named twice (" + rater.Path +
          "); give each rater another name.");
      }
      if (raters.empty())
      {
        names.push_back(single.Name);
      }
      else if (std::find(raters.begin(), raters.end(), single.Name) == raters.end())
      {
        throw Error(RCN_EINVALID, rater.Path + ": the rater " + single.Name + " is not among the raters of this data set.");
      }
      byFile[rater.Path].push_back(single);
    }
  }
  if (names.size() > RCN_MAX_RATERS)
  {
    throw Error(RCN_EINVALID, "There must be 1 to " + std::to_string(RCN_MAX_RATERS) + " raters, not " +
      std::to_string(names.size()) + ".");
  }

  std::unique_ptr<rcn_votes, VotesDeleter> votes;
  for (const std::string& file : files)
  {
    Volume volume = ReadImage(file);
    if (referenceName.empty())
    {
      reference = volume.Geometry();
      referenceName = file;
    }
    const rcn_status same = rcn_geometry_compare(context, &volume.Geometry(), file.c_str(), &reference,
      referenceName.c_str(), this->Options_.Tolerance);
    if (same != RCN_OK)
    {
      if (!this->Options_.Resample)
      {
        throw Error(same, std::string(rcn_context_error(context)) + " Use --resample to resample it.");
      }
      volume = ResampleNearest(volume, reference);
      remarks.push_back(file + " was resampled to the geometry of " + referenceName + ".");
    }
    if (!votes)
    {
      rcn_votes* created = nullptr;
      Check(rcn_votes_create(&created, context, &reference, static_cast<int>(names.size())), context);
      votes.reset(created);
    }
    for (const RaterFile& rater : byFile[file])
    {
      const int index = static_cast<int>(std::find(names.begin(), names.end(), rater.Name) - names.begin());
      const Channel channel = volume.GetChannel(rater.Channel);
      rcn_mask mask{};
      mask.image = channel.Image;
      mask.image.geometry = reference; // compared above
      mask.component = channel.Component;
      mask.values = rater.Values.empty() ? nullptr : rater.Values.data();
      mask.value_count = static_cast<int>(rater.Values.size());
      mask.unanswered = this->Options_.HasUnanswered ? &this->Options_.Unanswered : nullptr;
      Check(rcn_votes_add(votes.get(), context, index, &mask), context, rater.Name + " (" + file + ")");
      if (rcn_votes_marked(votes.get(), index) > 0)
      {
        continue;
      }
      if (!rater.Values.empty() && this->Options_.AbsentLabelIsError)
      {
        std::string values;
        for (const int64_t value : rater.Values)
        {
          values += (values.empty() ? "" : " or ") + std::to_string(value);
        }
        throw Error(RCN_EDATA, "The label value " + values + " does not occur in " + file + "; which value did " +
          rater.Name + " use?");
      }
      remarks.push_back("Rater " + rater.Name + " marked nothing in " + file + ".");
    }
  }

  this->Votes_ = std::move(votes);
  this->Raters_ = names;
  this->Images_ = images;
  this->Remarks_ = remarks;
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
  report.Figures.reset(agreement, [context](rcn_agreement* a) { rcn_agreement_destroy(a, context); });
  if (surfaces)
  {
    this->MeasureSurfaces(agreement);
    report.HasSurfaces = true;
  }
  rcn_dispute* regions = nullptr;
  int64_t count = 0;
  Check(rcn_disputes_create(&regions, &count, context, this->Votes_.get()), context);
  report.Regions.assign(regions, regions + count);
  rcn_disputes_destroy(regions, context);
  return report;
}

void Workspace::MeasureSurfaces(rcn_agreement* agreement) const
{
  rcn_context* context = this->Context_.get();
  rcn_surfaces* created = nullptr;
  Check(rcn_surfaces_create(&created, context, this->Votes_.get()), context);
  const std::unique_ptr<rcn_surfaces, void (*)(rcn_surfaces*)> found(created, rcn_surfaces_destroy);
  const rcn_box* box = rcn_surfaces_box(created);
  rcn_geometry cropped = *rcn_votes_geometry(this->Votes_.get());
  for (int a = 0; a < 3; ++a)
  {
    cropped.size[a] = box->end[a] - box->first[a];
  }
  const size_t voxels = static_cast<size_t>(rcn_geometry_voxels(&cropped));
  std::vector<uint8_t> mask(voxels);
  std::vector<float> distance(voxels);
  for (int r = 0; r < agreement->raters; ++r)
  {
    if (!rcn_surfaces_count(created, r))
    {
      continue;
    }
    rcn_surfaces_mask(mask.data(), created, r);
    DistanceMap(distance.data(), mask.data(), cropped);
    Check(rcn_surfaces_measure(created, context, r, distance.data()), context);
  }
  Check(rcn_surfaces_finish(agreement, created, context), context);
}

FusionReport Workspace::Fuse(const rcn_fusion_options& options) const
{
  this->RequireCase();
  rcn_context* context = this->Context_.get();
  FusionReport report;
  report.Map = Volume::Allocate(*rcn_votes_geometry(this->Votes_.get()), RCN_FLOAT32);
  report.MapContent = ContentOf(options);
  Check(rcn_fuse(static_cast<float*>(report.Map.Data()), &report.Figures, context, this->Votes_.get(),
          &options), context);
  return report;
}

Volume Workspace::EntropyMap() const
{
  this->RequireCase();
  Volume map = Volume::Allocate(*rcn_votes_geometry(this->Votes_.get()), RCN_FLOAT32);
  Check(rcn_agreement_entropy_map(static_cast<float*>(map.Data()), this->Context_.get(),
          this->Votes_.get()), this->Context_.get());
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
    case RCN_STAPLE:
      return options.staple_output == RCN_STAPLE_MASK ? Content::Mask : Content::Probability;
    default: return Content::Probability;
  }
}

} // namespace rcn
