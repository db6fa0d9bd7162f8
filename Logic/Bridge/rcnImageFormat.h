// SPDX-License-Identifier: Apache-2.0
/// What reading and writing image files share: ITK's formats, and how to live with its libraries. Private to both.
#ifndef rcnImageFormat_h
#define rcnImageFormat_h

#include <string>
#include <vector>

#include <itkImageIOBase.h>

#include "rcnVolume.h"

namespace rcn
{

/// ITK's key for a description; NRRD and MetaImage keep it.
constexpr const char* NoteKey = "ITK_FileNotes";

/// The format of a file, null for none. Formats are registered here and not by ITK's macros, because only a running program
/// knows whether it has some already: an application such as Slicer does, and a second set would conflict with them.
itk::ImageIOBase::Pointer FormatOf(const std::string& path, itk::IOFileModeEnum mode);

/// The core's name for a type of ITK's; false when it has none.
bool TypeOf(rcn_type& type, itk::IOComponentEnum component);

/// The first line of an exception's own description, without source positions.
std::string ReasonOf(const itk::ExceptionObject& exception);

/// The whole of the image that a format's header describes.
itk::ImageIORegion WholeRegion(const itk::ImageIOBase& io);

/// Writes an image as ITK does, compressed where the format can; `segments`: names of labels, for formats that keep them
/// (NRRD). Throws itk::ExceptionObject, or Error for a format that ITK does not write.
void WriteWithItk(
  const std::string& path, const rcn_image& image, const std::string& note, const std::vector<Segment>& segments = {});

/// While one of these lives, no other thread has one: the libraries under ITK keep state of their own beside the images, and
/// there is one standard error for all threads, which goes nowhere if SetLibrariesQuiet() asked for it.
class Quiet
{
public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

private:
  int Kept_ = -1;
};

} // namespace rcn

#endif
