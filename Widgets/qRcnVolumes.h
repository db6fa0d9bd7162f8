// SPDX-License-Identifier: Apache-2.0
/// What raters would measure on a predicted map: the sentence, and on demand the figures and the connected components.
#ifndef qRcnVolumes_h
#define qRcnVolumes_h

#include <memory>

#include <QWidget>

#include "rcnVolumes.h"

class qRcnVolumesPrivate;

class qRcnVolumes : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnVolumes(QWidget* parent = nullptr);
  ~qRcnVolumes() override;

  /// Those that are not known hide the widget.
  void setVolumes(const rcn::PredictedVolumes& volumes);

signals:
  /// A component was chosen: its number in PredictedVolumes::Components.
  void componentActivated(int index);

private:
  std::unique_ptr<qRcnVolumesPrivate> d;
};

#endif
