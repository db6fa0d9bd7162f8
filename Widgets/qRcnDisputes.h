// SPDX-License-Identifier: Apache-2.0
/// The disputed regions of a case, to visit one after another: largest first, or slice by slice.
#ifndef qRcnDisputes_h
#define qRcnDisputes_h

#include <memory>
#include <vector>

#include <QStringList>
#include <QWidget>

#include "rcn/rcn_agreement.h"
#include "rcnReport.h"

class qRcnDisputesPrivate;

class qRcnDisputes : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnDisputes(QWidget* parent = nullptr);
  ~qRcnDisputes() override;

  /// Largest first, as the core gives them; world positions are ITK's (LPS) and shown as RAS. Nothing is current then.
  /// The geometry says what they measure; places are in mm.
  void setRegions(std::vector<rcn_dispute> regions, const QStringList& raters, const rcn_geometry& geometry,
    const rcn::Units& units = rcn::Units());
  void clear();

  enum Order
  {
    BySize, ///< largest first
    BySlice ///< from the first axial slice to the last; the largest of a slice first
  };
  Order order() const;

  /// The number of a region is its place among those of setRegions(), in either order. -1: none yet.
  int current() const;
  int count() const;

public slots:
  /// The current region stays.
  void setOrder(qRcnDisputes::Order order);
  /// The next or previous region in this order becomes the current one, and regionActivated() is sent; no step beyond the
  /// ends.
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
