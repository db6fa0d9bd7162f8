// SPDX-License-Identifier: Apache-2.0
#include "rcnFileName.h"

#include <algorithm>
#include <filesystem>

#include "rcnError.h"

namespace rcn
{

namespace fs = std::filesystem;

std::string LowerCase(std::string text)
{
  for (char& c : text)
  {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

bool HasExtension(const std::string& path, const std::string& extension)
{
  return path.size() > extension.size() && LowerCase(path.substr(path.size() - extension.size())) == extension;
}

std::string ExtensionOf(const std::string& path)
{
  const std::string name = LowerCase(fs::path(path).filename().string());
  const std::string::size_type dot = name.rfind('.');
  if (dot == std::string::npos)
  {
    return "";
  }
  return HasExtension(name, ".nii.gz") ? ".nii.gz" : name.substr(dot);
}

std::string StemOf(const std::string& path)
{
  const fs::path file(path);
  const std::string name = (file.has_filename() ? file : file.parent_path()).filename().string();
  return name.substr(0, name.find('.', 1));
}

std::string FileNameFrom(std::string text)
{
  static const std::string refused = " /\\:*?\"<>|'`$&;~#%";
  for (char& c : text)
  {
    const auto code = static_cast<unsigned char>(c);
    c = code < ' ' || code == 127 || refused.find(c) != std::string::npos ? '_' : c;
  }
  if (!text.empty() && (text[0] == '.' || text[0] == '-'))
  {
    text[0] = '_'; // neither a hidden file nor an option
  }
  return text;
}

bool IsPictureName(const std::string& path)
{
  const std::string extension = ExtensionOf(path);
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg" || extension == ".bmp";
}

bool IsImageName(const std::string& path)
{
  static const char* const known[] = { ".nrrd", ".nhdr", ".nii", ".nii.gz", ".mha", ".mhd", ".png", ".tif", ".tiff", ".jpg",
    ".jpeg" };
  const std::string extension = ExtensionOf(path);
  // ".png" alone is a hidden file, not a picture.
  return std::find(std::begin(known), std::end(known), extension) != std::end(known) &&
    fs::path(path).filename().string().size() > extension.size();
}

std::vector<std::string> ImagesIn(const std::string& folder)
{
  std::vector<std::string> images;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure))
  {
    const std::string name = entry.path().filename().string();
    if (name[0] != '.' && IsImageName(name))
    {
      images.push_back(entry.path().string());
    }
  }
  if (failure)
  {
    throw Error(RCN_EIO, folder + " cannot be read: " + failure.message() + ".");
  }
  std::sort(images.begin(), images.end());
  return images;
}

} // namespace rcn
