// SPDX-License-Identifier: Apache-2.0
/// Sentences in the language that Slicer was set to.
#ifndef rcnMrmlText_h
#define rcnMrmlText_h

#include <string>

#if __has_include(<vtkMRMLI18N.h>)
#include <vtkMRMLI18N.h>
#else // before Slicer 5.4
#define vtkMRMLTr(context, text) std::string(text)
#endif

namespace rcn
{
namespace mrml
{

/// A sentence with what stands for %1 and %2 in it.
inline std::string Filled(const std::string& text, const std::string& first, const std::string& second = "")
{
  std::string filled;
  for (size_t i = 0; i < text.size(); ++i)
  {
    const bool place = text[i] == '%' && i + 1 < text.size() && (text[i + 1] == '1' || text[i + 1] == '2');
    if (place)
    {
      filled += text[++i] == '1' ? first : second;
    }
    else
    {
      filled += text[i];
    }
  }
  return filled;
}

} // namespace mrml
} // namespace rcn

#endif
