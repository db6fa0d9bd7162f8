// SPDX-License-Identifier: Apache-2.0
/// The structures of a case: which of them everything is about, and which others are outlined beside it. A row has an eye, a
/// color and a name; with fewer than two rows there is nothing to choose, and the list is not shown.
#ifndef qRcnStructures_h
#define qRcnStructures_h

#include <QColor>
#include <QVector>
#include <QWidget>

class QListWidget;

/// One of several structures, as a list shows it.
struct qRcnStructure
{
  QString Name;
  QColor Color;
  bool Visible = true;    ///< whether its outline is drawn while another one is chosen
  bool HasOutline = true; ///< otherwise there is no eye
};

class qRcnStructures : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnStructures(QWidget* parent = nullptr);

  /// `chosen`: 1, 2, ...
  void setStructures(const QVector<qRcnStructure>& structures, int chosen);
  /// 0: none.
  int chosen() const;
  QListWidget* list() const { return this->List; }

signals:
  /// A person wants everything to be about this one.
  void structureChosen(int structure);
  void visibilityChanged(int structure, bool visible);

private:
  QListWidget* List;
};

#endif
