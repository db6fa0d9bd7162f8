// SPDX-License-Identifier: Apache-2.0
#include "rcnImageFormat.h"

#include <atomic>
#include <mutex>

#include <itkGDCMImageIOFactory.h>
#include <itkImageIOFactory.h>
#include <itkJPEGImageIOFactory.h>
#include <itkMetaImageIOFactory.h>
#include <itkNiftiImageIOFactory.h>
#include <itkNrrdImageIOFactory.h>
#include <itkPNGImageIOFactory.h>
#include <itkTIFFImageIOFactory.h>

#include "rcnImageIO.h"
#include "rcnPlatform.h"

namespace rcn
{

namespace
{

// ITK and its formats print warnings of their own to standard error, which is the process's: hiding it is for one thread at a
// time. Recursive, because reading a series reads files.
std::atomic<bool> LibrariesQuiet{ false };
std::recursive_mutex OneAtATime;

} // namespace

void SetLibrariesQuiet(bool quiet)
{
  LibrariesQuiet = quiet;
}

Quiet::Quiet()
{
  OneAtATime.lock();
  this->Kept_ = LibrariesQuiet ? platform::HideStandardError() : -1;
}

Quiet::~Quiet()
{
  platform::ShowStandardError(this->Kept_);
  OneAtATime.unlock();
}

std::string ReasonOf(const itk::ExceptionObject& exception)
{
  // "ITK ERROR: Class(0x55...): what happened" without the part for developers.
  std::string text = exception.GetDescription();
  const std::string::size_type colon = text.rfind("): ");
  if (text.rfind("ITK ERROR", 0) == 0 && colon != std::string::npos)
  {
    text = text.substr(colon + 3);
  }
  text = OneLine(text);
  while (!text.empty() && text.back() == ' ')
  {
    text.pop_back();
  }
  return text.empty() ? "unknown reason" : text;
}

bool TypeOf(rcn_type& type, itk::IOComponentEnum component)
{
  switch (component)
  {
    case itk::IOComponentEnum::UCHAR: type = RCN_UINT8; return true;
    case itk::IOComponentEnum::CHAR: type = RCN_INT8; return true;
    case itk::IOComponentEnum::USHORT: type = RCN_UINT16; return true;
    case itk::IOComponentEnum::SHORT: type = RCN_INT16; return true;
    case itk::IOComponentEnum::UINT: type = RCN_UINT32; return true;
    case itk::IOComponentEnum::INT: type = RCN_INT32; return true;
    // long has 4 bytes on Windows and 8 elsewhere.
    case itk::IOComponentEnum::ULONG: type = sizeof(long) == 8 ? RCN_UINT64 : RCN_UINT32; return true;
    case itk::IOComponentEnum::LONG: type = sizeof(long) == 8 ? RCN_INT64 : RCN_INT32; return true;
    case itk::IOComponentEnum::ULONGLONG: type = RCN_UINT64; return true;
    case itk::IOComponentEnum::LONGLONG: type = RCN_INT64; return true;
    case itk::IOComponentEnum::FLOAT: type = RCN_FLOAT32; return true;
    case itk::IOComponentEnum::DOUBLE: type = RCN_FLOAT64; return true;
    default: return false;
  }
}

itk::ImageIOBase::Pointer FormatOf(const std::string& path, itk::IOFileModeEnum mode)
{
  static const bool registered = [] {
    // Inside of Slicer all formats are registered already; elsewhere it is done here, once.
    if (itk::ObjectFactoryBase::CreateAllInstance("itkImageIOBase").empty())
    {
      itk::NrrdImageIOFactory::RegisterOneFactory();
      itk::NiftiImageIOFactory::RegisterOneFactory();
      itk::MetaImageIOFactory::RegisterOneFactory();
      itk::PNGImageIOFactory::RegisterOneFactory();
      itk::TIFFImageIOFactory::RegisterOneFactory();
      itk::JPEGImageIOFactory::RegisterOneFactory();
      itk::GDCMImageIOFactory::RegisterOneFactory();
    }
    return true;
  }();
  (void)registered;
  return itk::ImageIOFactory::CreateImageIO(path.c_str(), mode);
}

itk::ImageIORegion WholeRegion(const itk::ImageIOBase& io)
{
  const unsigned int dimensions = io.GetNumberOfDimensions();
  itk::ImageIORegion region(dimensions);
  for (unsigned int a = 0; a < dimensions; ++a)
  {
    region.SetIndex(a, 0);
    region.SetSize(a, io.GetDimensions(a));
  }
  return region;
}

} // namespace rcn
