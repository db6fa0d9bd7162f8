// SPDX-License-Identifier: Apache-2.0
/// The disputed regions of a case, largest first, to visit one after another.
#ifndef qRcnDisputes_h
#define qRcnDisputes_h

#include <memory>
#include <vector>

#include <QStringList>
#include <QWidget>

#include "rcn/rcn_agreement.h"

class qRcnDisputesPrivate;

class qRcnDisputes : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnDisputes(QWidget* parent = nullptr);
  ~qRcnDisputes() override;

  /// Largest first, as the core gives them; world positions are ITK's (LPS) and shown as RAS. Nothing is current then.
  /// The geometry says what they measure.
  void setRegions(std::vector<rcn_dispute> regions, const QStringList& raters, const rcn_geometry& geometry);
  void clear();

  /// -1: none yet.
  int current() const;
  int count() const;

public slots:
  /// The next or previous region becomes the current one, and regionActivated() is sent; no step beyond the ends.
  void next();
  void previous();
  /// Sends no signal.
  void setCurrent(int index);

signals:
  void regionActivated(int index);

private:
  std::unique_ptr<qRcnDisputesPrivate> d;
};

#endif
