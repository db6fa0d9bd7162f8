// SPDX-License-Identifier: Apache-2.0
/// The bridge speaks std::string (UTF-8), the window QString.
#ifndef qRcnText_h
#define qRcnText_h

#include <string>
#include <vector>

#include <QStringList>

namespace qRcnText
{

inline QString Text(const std::string& text)
{
  return QString::fromStdString(text);
}

inline QStringList Texts(const std::vector<std::string>& texts)
{
  QStringList list;
  for (const std::string& text : texts)
  {
    list << Text(text);
  }
  return list;
}

} // namespace qRcnText

#endif
