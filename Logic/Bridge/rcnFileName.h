// SPDX-License-Identifier: Apache-2.0
/// What the name of a file says: its stem, its extension, and what kind of file it should be.
#ifndef rcnFileName_h
#define rcnFileName_h

#include <string>
#include <vector>

namespace rcn
{

/// With lower-case letters for A to Z, whatever the locale.
std::string LowerCase(std::string text);

/// Whether a name ends with an extension (".png", ".nii.gz", given in small letters), and has something in front of it.
bool HasExtension(const std::string& path, const std::string& extension);

/// ".nrrd" of "folder/C01.NRRD", ".nii.gz" of "c01.nii.gz"; in small letters, empty where there is none.
std::string ExtensionOf(const std::string& path);

/// "c01" of "folder/c01.nii.gz", "series" of "folder/series/": a case's id from its file.
std::string StemOf(const std::string& path);

/// A part of a file's name from any text, such as the name of a structure: what a file system or a shell may stumble over
/// (spaces, slashes, colons, ...) becomes an underscore; umlauts stay.
std::string FileNameFrom(std::string text);

/// Whether a file is a picture (PNG, JPEG, BMP) by its name. Such a file stores the size on paper, not in the world: it
/// has no spacing, and rcn_geometry.unit is RCN_PIXELS.
bool IsPictureName(const std::string& path);

/// Whether a file is an image in one of the formats that are read, by its name.
bool IsImageName(const std::string& path);

/// The files of a folder that are named like images, sorted; none in a folder that may be a DICOM series. Throws Error
/// (RCN_EIO) when the folder cannot be read.
std::vector<std::string> ImagesIn(const std::string& folder);

} // namespace rcn

#endif
