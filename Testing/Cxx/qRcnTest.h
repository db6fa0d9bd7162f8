// SPDX-License-Identifier: Apache-2.0
/// What the tests of widgets share: reports made from nothing, and pictures compared with stored ones.
#ifndef qRcnTest_h
#define qRcnTest_h

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include <QAbstractButton>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QFont>
#include <QHeaderView>
#include <QHelpEvent>
#include <QImage>
#include <QLabel>
#include <QPalette>
#include <QScrollBar>
#include <QStyle>
#include <QStyleFactory>
#include <QStyleOptionComboBox>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <QToolTip>
#include <QWidget>
#include <QtTest>

#include "rcn/rcn_phantom.h"
#include "rcnEvaluation.h"
#include "rcnWorkspace.h"

/// Call first: the same style and font everywhere.
inline void SetUpLook()
{
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  QFont font("DejaVu Sans");
  font.setPixelSize(12);
  QApplication::setFont(font);
  QPalette light = QApplication::style()->standardPalette();
  QApplication::setPalette(light);
}

inline QPalette DarkPalette()
{
  QPalette dark;
  dark.setColor(QPalette::Window, QColor(50, 50, 52));
  dark.setColor(QPalette::WindowText, QColor(230, 230, 230));
  dark.setColor(QPalette::Base, QColor(32, 32, 34));
  dark.setColor(QPalette::AlternateBase, QColor(42, 42, 44));
  dark.setColor(QPalette::Text, QColor(230, 230, 230));
  dark.setColor(QPalette::Button, QColor(62, 62, 64));
  dark.setColor(QPalette::ButtonText, QColor(230, 230, 230));
  dark.setColor(QPalette::Highlight, QColor(60, 120, 190));
  dark.setColor(QPalette::HighlightedText, Qt::white);
  dark.setColor(QPalette::PlaceholderText, QColor(140, 140, 140));
  return dark;
}

/// The widget at a size, laid out, and without a blinking cursor.
inline QImage PictureOf(QWidget& widget, const QSize& size)
{
  widget.resize(size);
  widget.show();
  QApplication::processEvents();
  if (QWidget* focused = widget.focusWidget())
  {
    focused->clearFocus();
  }
  return widget.grab().toImage().convertToFormat(QImage::Format_RGB32);
}

/// Mean colors of all squares of a picture: sums over everything above and to the left of a pixel (Crow 1984).
class MeanColors
{
public:
  explicit MeanColors(const QImage& picture) : Width(picture.width() + 1), Sums(3 * Width * (picture.height() + 1))
  {
    for (int y = 0; y < picture.height(); ++y)
    {
      for (int x = 0; x < picture.width(); ++x)
      {
        const QRgb pixel = picture.pixel(x, y);
        const int64_t color[3] = { qRed(pixel), qGreen(pixel), qBlue(pixel) };
        for (int c = 0; c < 3; ++c)
        {
          this->at(x + 1, y + 1, c) = color[c] + this->at(x, y + 1, c) + this->at(x + 1, y, c) - this->at(x, y, c);
        }
      }
    }
  }

  int64_t sumOf(int left, int top, int side, int c) const
  {
    return this->at(left + side, top + side, c) - this->at(left, top + side, c) - this->at(left + side, top, c) +
      this->at(left, top, c);
  }

private:
  int64_t at(int x, int y, int c) const { return this->Sums[static_cast<size_t>(3 * (x + this->Width * y) + c)]; }
  int64_t& at(int x, int y, int c) { return this->Sums[static_cast<size_t>(3 * (x + this->Width * y) + c)]; }

  int Width;
  std::vector<int64_t> Sums;
};

/// The share of 8 x 8 blocks of a picture whose mean color is visibly another than in every square of the other picture that
/// is at most `reach` pixels away. Blocks do not see how a font is smoothed, and do see a curve that is not there; with a
/// reach they do not see either that a style gives a control two pixels more.
inline double BlocksNotFound(const QImage& one, const QImage& two, int reach)
{
  const int block = 8, visible = 20 * block * block;
  const MeanColors own(one), other(two);
  int64_t different = 0, blocks = 0;
  for (int top = 0; top + block <= one.height(); top += block)
  {
    for (int left = 0; left + block <= one.width(); left += block)
    {
      bool found = false;
      for (int y = std::max(0, top - reach); y <= std::min(top + reach, one.height() - block) && !found; ++y)
      {
        for (int x = std::max(0, left - reach); x <= std::min(left + reach, one.width() - block) && !found; ++x)
        {
          found = true;
          for (int c = 0; c < 3; ++c)
          {
            found &= std::abs(own.sumOf(left, top, block, c) - other.sumOf(x, y, block, c)) <= visible;
          }
        }
      }
      ++blocks;
      different += !found;
    }
  }
  return blocks ? static_cast<double>(different) / static_cast<double>(blocks) : 1;
}

/// How far two pictures differ, whichever of them has more in it: 0 ... 1. 1 for pictures of different sizes.
inline double PictureDifference(const QImage& one, const QImage& two, int reach = 0)
{
  return one.size() != two.size() ? 1 : std::max(BlocksNotFound(one, two, reach), BlocksNotFound(two, one, reach));
}

/// What two pictures of the same program may differ by.
const double PictureTolerance = 0.004;

/// The stored pictures were made with Qt 5. The style of Qt 6 lays controls out and smooths text a little differently, so
/// that things may lie some pixels away there; a curve, a bar or a line of text that is missing is found all the same.
const bool SameQt = QT_VERSION < QT_VERSION_CHECK(6, 0, 0);
const int StoredReach = SameQt ? 0 : 8;
const double StoredTolerance = SameQt ? PictureTolerance : 0.006;

/// How far a picture differs from Testing/Data/Widgets/NAME.png; 1 where there is none.
inline double DifferenceFromStored(const QImage& picture, const QString& name)
{
  const QImage stored = QImage(QStringLiteral(RCN_PICTURES "/%1.png").arg(name)).convertToFormat(QImage::Format_RGB32);
  return stored.isNull() ? 1 : PictureDifference(picture, stored, StoredReach);
}

/// What a person reads when the pointer rests there.
inline QString HintAt(QWidget* widget, const QPoint& position)
{
  QToolTip::hideText();
  QHelpEvent help(QEvent::ToolTip, position, widget->mapToGlobal(position));
  QApplication::sendEvent(widget, &help);
  return QToolTip::text().replace(QChar(0xa0), ' ');
}

/// In few colors, so that the file is small; no color moves as far as a difference that counts.
inline QImage InFewColors(QImage picture)
{
  const auto step = [](int value) { return (value + 8) / 17 * 17; };
  for (int y = 0; y < picture.height(); ++y)
  {
    for (int x = 0; x < picture.width(); ++x)
    {
      const QRgb color = picture.pixel(x, y);
      picture.setPixel(x, y, qRgb(step(qRed(color)), step(qGreen(color)), step(qBlue(color))));
    }
  }
  return picture;
}

/// The first control that a screen reader could not name; empty when there is none.
inline QString NamelessControl(const QWidget& widget)
{
  for (const QWidget* child : widget.findChildren<QWidget*>())
  {
    const auto* button = qobject_cast<const QAbstractButton*>(child);
    const bool own = child->objectName().startsWith("qt_") || qobject_cast<const QScrollBar*>(child) ||
      qobject_cast<const QHeaderView*>(child) || qobject_cast<const QTabBar*>(child) ||
      qobject_cast<const QTabWidget*>(child) || qobject_cast<const QLabel*>(child) ||
      child->inherits("QComboBoxPrivateContainer") || child->inherits("QComboBoxListView") ||
      child->inherits("QTableCornerButton");
    const bool controls = child->focusPolicy() != Qt::NoFocus && !own;
    if (controls && child->accessibleName().isEmpty() && !(button && !button->text().isEmpty()))
    {
      return QStringLiteral("%1 %2").arg(child->metaObject()->className(), child->objectName());
    }
  }
  return QString();
}

/// Why the words of a widget do not fit into it; empty: they do.
inline QString CutWords(const QLabel& label)
{
  const bool wraps = label.wordWrap();
  const QSize room = label.size(), wanted = label.sizeHint();
  const int height = wraps ? label.heightForWidth(room.width()) : wanted.height();
  const int width = wraps ? label.minimumSizeHint().width() : wanted.width();
  const bool fits = label.text().isEmpty() || (room.width() >= width && room.height() >= height);
  return fits ? QString() : QStringLiteral("needs %1 x %2").arg(wanted.width()).arg(height);
}

inline QString CutWords(const QComboBox& box)
{
  QStyleOptionComboBox option;
  option.initFrom(&box);
  option.subControls = QStyle::SC_All;
  const int room = box.style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, &box).width();
  const int icon = box.itemIcon(box.currentIndex()).isNull() ? 0 : box.iconSize().width() + 4;
  const int words = box.fontMetrics().horizontalAdvance(box.currentText()) + icon;
  const bool fits = words <= room && box.height() >= box.minimumSizeHint().height();
  return fits ? QString() : QStringLiteral("'%1' needs %2, has %3").arg(box.currentText()).arg(words).arg(room);
}

inline QString CutWords(const QTabBar& tabs)
{
  const int end = tabs.count() > 0 ? tabs.tabRect(tabs.count() - 1).right() : 0;
  return end <= tabs.width() ? QString() : QStringLiteral("needs %1").arg(end);
}

inline QString CutWords(const QTableView& table)
{
  const QHeaderView* header = table.horizontalHeader();
  for (int c = 0; c < header->count(); ++c)
  {
    const int cells = static_cast<const QAbstractItemView&>(table).sizeHintForColumn(c);
    const int heading = header->isHidden() ? 0 : header->sectionSizeHint(c);
    if (!header->isSectionHidden(c) && header->sectionSize(c) < std::max(cells, heading))
    {
      return QStringLiteral("column %1 needs %2 and %3, has %4").arg(c).arg(cells).arg(heading).arg(header->sectionSize(c));
    }
  }
  return header->length() <= table.viewport()->width()
    ? QString()
    : QStringLiteral("columns need %1, have %2").arg(header->length()).arg(table.viewport()->width());
}

/// Buttons and spin boxes.
inline QString CutWords(const QWidget& control)
{
  if (control.objectName() == "qt_toolbar_ext_button")
  {
    return QStringLiteral("buttons are behind it");
  }
  const QSize wanted = control.minimumSizeHint();
  const bool fits = control.width() >= wanted.width() && control.height() >= wanted.height();
  const bool own = control.inherits("QTableCornerButton") || control.objectName().startsWith("qt_");
  return fits || own ? QString() : QStringLiteral("needs %1 x %2").arg(wanted.width()).arg(wanted.height());
}

/// What a person cannot read or reach of a window as it is laid out now: labels, buttons, boxes, tabs, headings and cells
/// whose words do not fit, widgets that stick out of their parent, buttons behind a tool bar's arrow.
inline QStringList CutOff(const QWidget& window)
{
  QStringList found;
  for (const QWidget* widget : window.findChildren<QWidget*>())
  {
    if (!widget->isVisibleTo(&window) || widget->isWindow())
    {
      continue;
    }
    QString words = widget->objectName(), why;
    if (const auto* label = qobject_cast<const QLabel*>(widget))
    {
      words += ' ' + label->text();
      why = CutWords(*label);
    }
    else if (const auto* box = qobject_cast<const QComboBox*>(widget))
    {
      why = CutWords(*box);
    }
    else if (const auto* tabs = qobject_cast<const QTabBar*>(widget))
    {
      why = CutWords(*tabs);
    }
    else if (const auto* table = qobject_cast<const QTableView*>(widget))
    {
      why = CutWords(*table);
    }
    else if (const auto* button = qobject_cast<const QAbstractButton*>(widget))
    {
      words += ' ' + button->text();
      why = CutWords(*widget);
    }
    else if (qobject_cast<const QAbstractSpinBox*>(widget))
    {
      why = CutWords(*widget);
    }
    const QWidget* parent = widget->parentWidget();
    const bool scrolls = parent->parentWidget() && qobject_cast<const QAbstractScrollArea*>(parent->parentWidget());
    const QRect in = parent->rect(), own = widget->geometry();
    if (own.left() < in.left() || own.right() > in.right() ||
      (!scrolls && (own.top() < in.top() || own.bottom() > in.bottom())))
    {
      why += QStringLiteral(" sticks out of %1 (%2 x %3)")
               .arg(parent->metaObject()->className())
               .arg(parent->width())
               .arg(parent->height());
    }
    if (!why.isEmpty())
    {
      found << QStringLiteral("%1 '%2' (%3 x %4): %5")
                 .arg(widget->metaObject()->className(), words)
                 .arg(widget->width())
                 .arg(widget->height())
                 .arg(why);
    }
  }
  return found;
}

/// Empty when the widget looks like Testing/Data/Widgets/NAME.png, otherwise what to do. With RCN_RENEW_PICTURES=1 in the
/// environment the stored picture is replaced: look at it before it is committed.
inline QString ComparePicture(QWidget& widget, const QString& name, const QSize& size)
{
  const QImage picture = PictureOf(widget, size);
  if (picture.size() != size)
  {
    return QStringLiteral("%1 needs %2 x %3 pixels.").arg(name).arg(picture.width()).arg(picture.height());
  }
  if (!NamelessControl(widget).isEmpty())
  {
    return "A screen reader cannot name " + NamelessControl(widget);
  }
  const QString path = QStringLiteral(RCN_PICTURES "/%1.png").arg(name);
  if (qEnvironmentVariableIntValue("RCN_RENEW_PICTURES") == 1 && SameQt)
  {
    QDir().mkpath(QStringLiteral(RCN_PICTURES));
    return InFewColors(picture).save(path, "png", 0) ? QString() : "Cannot write " + path;
  }
  const double difference = DifferenceFromStored(picture, name);
  if (difference <= StoredTolerance)
  {
    return QString();
  }
  const QString seen = QDir::current().filePath(name + "_seen.png");
  picture.save(seen);
  return QStringLiteral("%1 differs from the stored picture in %2 % of its blocks; see %3; RCN_RENEW_PICTURES=1 renews it.")
    .arg(name)
    .arg(100 * difference, 0, 'f', 2)
    .arg(seen);
}

#define COMPARE_PICTURE(widget, name, width, height)                               \
  do                                                                               \
  {                                                                                \
    const QString complaint_ = ComparePicture(widget, name, QSize(width, height)); \
    QVERIFY2(complaint_.isEmpty(), qPrintable(complaint_));                        \
  } while (0)

/// The light picture NAME and the dark one NAME_dark.
#define COMPARE_PICTURES(widget, name, width, height)                                                      \
  do                                                                                                       \
  {                                                                                                        \
    COMPARE_PICTURE(widget, name, width, height);                                                          \
    const QPalette light_ = QApplication::palette();                                                       \
    QApplication::setPalette(DarkPalette());                                                               \
    QApplication::processEvents();                                                                         \
    const QString complaint_ = ComparePicture(widget, QStringLiteral(name "_dark"), QSize(width, height)); \
    QApplication::setPalette(light_);                                                                      \
    QVERIFY2(complaint_.isEmpty(), qPrintable(complaint_));                                                \
  } while (0)

/// A model that promises too much: where it says p, raters mark p^power. Five raters; every figure follows from the bins.
inline rcn::EvaluationReport MadeReport(double power, int bins = 10, size_t cases = 12)
{
  rcn::EvaluationReport report;
  report.Cases = report.Patients = cases;
  std::fill(report.Figures, report.Figures + RCN_FIGURES, NAN);
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    report.Interval[f] = { NAN, NAN, NAN, NAN, NAN, 0 };
    report.Paper[f] = { NAN, NAN, 0 };
  }
  const int raters = 5;
  report.RaterBins.resize(raters);
  for (int b = 0; b < bins; ++b)
  {
    rcn_calib_bin bin = { static_cast<double>(b) / bins, (b + 1.0) / bins,
      static_cast<int64_t>(1e6 / (1 + 30 * std::sin(3.14159 * (b + 0.5) / bins))), 0, 0 };
    bin.confidence = (b + 0.5) / bins;
    bin.frequency = std::pow(bin.confidence, power);
    report.Bins.push_back(bin);
    report.BandLow.push_back(cases > 1 ? bin.frequency - 0.05 * std::sin(3.14159 * bin.confidence) : NAN);
    report.BandHigh.push_back(cases > 1 ? bin.frequency + 0.05 * std::sin(3.14159 * bin.confidence) : NAN);
    report.Pairs += bin.count;
    for (int r = 0; r < raters; ++r)
    {
      rcn_calib_bin own = bin;
      own.count /= raters;
      own.frequency = std::pow(bin.confidence, power * (0.6 + 0.2 * r));
      report.RaterBins[static_cast<size_t>(r)].push_back(own);
    }
  }
  report.Voxels = report.LevelVoxels = report.Pairs / raters;
  report.LevelCases = static_cast<int64_t>(cases);
  for (const auto& own : report.RaterBins)
  {
    double ece = 0;
    rcn_calib_gaps(&ece, nullptr, nullptr, own.data(), bins);
    report.RaterEce.push_back(ece);
    report.RaterBrier.push_back(0.1);
  }
  rcn_calib_gaps(&report.Figures[RCN_MR_ECE], nullptr, nullptr, report.Bins.data(), bins);
  report.Figures[RCN_DICE] = 0.84 - 0.02 * power;
  report.Figures[RCN_BRIER] = 0.05 + 0.01 * power;
  report.Auc = { 0.97, 0.96, 1, 1, 1, 1 };
  report.Brier = {};
  report.MassEce = report.MassMce = report.MassAce = NAN;
  if (cases > 1)
  {
    const double ece = report.Figures[RCN_MR_ECE];
    report.Interval[RCN_MR_ECE] = { ece, 0.002, ece * 0.8, ece * 1.2, NAN, static_cast<int>(cases) };
  }
  return report;
}

inline QStringList FiveRaters()
{
  return { "Ada", "Ben", "Cleo", "Dan", "Eve" };
}

/// A case of the phantom with its context, which must outlive the votes.
struct PhantomCase
{
  explicit PhantomCase(int raters = 5, int missing = -1)
  {
    rcn_context* made = nullptr;
    rcn_context_create(&made, nullptr);
    this->Context.reset(made, rcn_context_destroy);
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    options.size[0] = 64;
    options.size[1] = 56;
    options.size[2] = 10;
    options.raters = raters;
    const int64_t voxels = options.size[0] * options.size[1] * options.size[2];
    this->Image.resize(static_cast<size_t>(voxels));
    this->Masks.resize(static_cast<size_t>(voxels * raters));
    rcn_phantom_make(this->Image.data(), this->Masks.data(), made, &options);
    std::vector<rcn_mask> masks(static_cast<size_t>(raters));
    this->Geometry = rcn_geometry_make(options.size[0], options.size[1], options.size[2]);
    this->Geometry.spacing[2] = 3;
    for (int r = 0; r < raters; ++r)
    {
      masks[static_cast<size_t>(r)] = {};
      masks[static_cast<size_t>(r)].image = { r == missing ? nullptr : this->Masks.data() + r * voxels, RCN_UINT8, 1,
        this->Geometry };
    }
    rcn_votes* votes = nullptr;
    rcn_votes_from_masks(&votes, made, masks.data(), raters);
    this->Votes.reset(votes, rcn_votes_destroy);
  }

  rcn::AgreementReport Agree() const
  {
    rcn::AgreementReport report;
    report.Geometry = this->Geometry;
    rcn_agreement* made = nullptr;
    rcn_agreement_create(&made, this->Context.get(), this->Votes.get());
    report.Figures.reset(made, [context = this->Context](const rcn_agreement* figures) {
      rcn_agreement_destroy(const_cast<rcn_agreement*>(figures), context.get());
    });
    rcn_dispute* regions = nullptr;
    int64_t count = 0;
    rcn_disputes_create(&regions, &count, this->Context.get(), this->Votes.get());
    report.Regions.assign(regions, regions + count);
    rcn_disputes_destroy(regions, this->Context.get());
    return report;
  }

  std::shared_ptr<rcn_context> Context;
  rcn_geometry Geometry;
  std::vector<float> Image;
  std::vector<uint8_t> Masks;
  std::shared_ptr<rcn_votes> Votes;
};

#endif
