// SPDX-License-Identifier: Apache-2.0
/// Nothing that is read is overwritten: whether a file to be written is one of the files to be read.
#ifndef rcnOverwrite_h
#define rcnOverwrite_h

#include <string>
#include <vector>

#include "rcnDataList.h"

namespace rcn
{

/// A file and what a person calls it: "-o", "--rater A", "case c01 of list.json".
struct NamedFile
{
  std::string Name;
  std::string Path;
  std::string MayReplace = ""; ///< of an output: the name of the input in whose place it may come
};

/// The images and masks of a case, as `name` reads them.
std::vector<NamedFile> FilesOf(const Case& one, const std::string& name);

/// The list itself and the files of all its cases. `name` is what the list is called.
std::vector<NamedFile> FilesOf(const DataList& list, const std::string& name);

/// What is wrong when an output is one of the inputs, or two outputs are one file; empty: nothing. Files are the same when
/// device and inode are: through links and by whatever path. A folder that is read stands for its images, or for the
/// DICOM files in it; a header for its data file too. What is no ordinary file (a pipe, "-") cannot be overwritten.
std::string CheckOverwrite(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

} // namespace rcn

#endif
