// SPDX-License-Identifier: Apache-2.0
/// The list under `?`: what keys and mouse do.
#ifndef qRcnShortcuts_h
#define qRcnShortcuts_h

#include <utility>
#include <vector>

#include "qRcnSheet.h"

class qRcnShortcuts : public qRcnSheet
{
  Q_OBJECT
public:
  using List = std::vector<std::pair<QString, QString>>;

  explicit qRcnShortcuts(QWidget* parent);

  /// Key or gesture, and what it does, under headings.
  void setLists(const std::vector<std::pair<QString, List>>& lists);
};

#endif
