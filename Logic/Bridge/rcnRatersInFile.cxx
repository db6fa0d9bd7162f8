// SPDX-License-Identifier: Apache-2.0
/// Which raters, and which structures of theirs, a file of masks holds.
#include "rcnWorkspace.h"

#include <algorithm>

#include "rcnReport.h"

namespace rcn
{

namespace
{

/// The name of a rater whose file has none for him.
std::string NameFromPath(const std::string& path)
{
  const std::string::size_type slash = path.rfind('/');
  const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  return name.substr(0, name.find('.'));
}

/// A segment of that name; null: there is none.
const Segment* FindSegment(const Volume& volume, const std::string& name)
{
  const auto found = std::find_if(
    volume.Segments().begin(), volume.Segments().end(), [&](const Segment& segment) { return segment.Name == name; });
  return found == volume.Segments().end() ? nullptr : &*found;
}

void CheckLayer(const Segment& segment, const RaterFile& rater, const Volume& volume)
{
  if (segment.Layer < 0 || segment.Layer >= volume.ChannelCount())
  {
    throw Error(RCN_EFORMAT, rater.Path + ": segment " + segment.Name + " is in a layer that does not exist.");
  }
}

/// The segments of a segmentation that have the names of structures, as files of these: a person tells segments apart by name,
/// and their label values are the program's.
std::vector<StructureFile> StructuresIn(const RaterFile& rater, const Volume& volume, const std::vector<Structure>& structures)
{
  std::vector<StructureFile> files;
  bool found = false;
  for (const Structure& structure : structures)
  {
    const Segment* const segment = FindSegment(volume, structure.Name);
    files.emplace_back(); // without a path: nothing is marked
    if (segment)
    {
      CheckLayer(*segment, rater, volume);
      files.back() = { rater.Path, { segment->LabelValue }, segment->Layer };
      found = true;
    }
  }
  if (!found && structures.size() > 1)
  {
    throw Error(
      RCN_EDATA, rater.Path + ": no segment has the name of a structure; the first is " + volume.Segments().front().Name + ".");
  }
  return files;
}

/// The raters that a file stands for: itself, its segments, or its channels.
std::vector<RaterFile> ExpandRater(const RaterFile& rater, const Volume& volume, const std::vector<Structure>& structures)
{
  // volume: the file's header
  const bool ownValues = !rater.Values.empty() && (structures.size() != 1 || rater.Values != structures.front().Values);
  if (!structures.empty() && !volume.Segments().empty() && !ownValues && rater.Channel < 0)
  {
    RaterFile one = rater;
    one.Name = rater.Name.empty() ? NameFromPath(rater.Path) : rater.Name;
    one.Structures = StructuresIn(rater, volume, structures);
    one.Values.clear();
    return { one };
  }
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
  if (rater.Name.empty() && !volume.Segments().empty() && rater.Values.empty() && structures.size() < 2)
  {
    for (const Segment& segment : volume.Segments())
    {
      RaterFile one = rater;
      one.Name = segment.Name;
      one.Values = { segment.LabelValue };
      one.Channel = segment.Layer;
      CheckLayer(segment, rater, volume);
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
      expanded.back().Name = NameFromPath(rater.Path);
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

std::vector<RaterFile> RatersIn(const RaterFile& rater, const std::vector<Structure>& structures)
{
  return rater.Structures.empty() ? ExpandRater(rater, ReadMaskHeader(rater.Path), structures)
                                  : std::vector<RaterFile>{ rater };
}

} // namespace rcn
