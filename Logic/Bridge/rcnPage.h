// SPDX-License-Identifier: Apache-2.0
/// Pages for people: one HTML file that needs nothing else. Figures and pictures are inside it, nothing is asked from
/// anywhere (and a policy in it forbids that), it follows the reader's choice of light or dark, prints (each sheet says that it
/// is not for clinical use), and fits a phone.
///
///   Page page("Agreement of five raters");
///   page.Section("agreement", "How far they agree");
///   page.Paragraph("Two raters overlap with a Dice of 0.82.");
///   page.Add(figure, "Each pair of raters");
///   WriteText("report.html", page.Html());
///
/// Every text is escaped here; nobody else writes HTML.
#ifndef rcnPage_h
#define rcnPage_h

#include <cmath>
#include <string>
#include <vector>

#include "rcnFigure.h"

namespace rcn
{

/// How a cell of a table is shown.
enum class CellMark
{
  None,
  Best,
  Tie
};

struct PageCell
{
  PageCell(const std::string& text) : Text(text) {}
  PageCell(const char* text) : Text(text) {}
  /// A number is sorted by its value; "–" where it is not defined.
  PageCell(double value, int digits);
  PageCell(double value, const std::string& text) : Text(text), Value(value), IsNumber(true) {}

  std::string Text;
  std::string Small; ///< below it
  double Value = NAN;
  bool IsNumber = false;
  CellMark Mark = CellMark::None;
};

struct PageColumn
{
  PageColumn(const std::string& name, const std::string& meaning = "") : Name(name), Meaning(meaning) {}
  PageColumn(const char* name) : Name(name) {}

  std::string Name;
  std::string Meaning; ///< shown while the pointer rests on the name
};

/// A table that a reader sorts by clicking on a column's name.
struct PageTable
{
  std::string Caption;
  std::vector<PageColumn> Columns;
  std::vector<std::vector<PageCell>> Rows;
};

/// A figure for a small place, with its words.
struct PagePanel
{
  Figure Drawing;
  std::string Caption;
};

/// A number at the top.
struct PageTile
{
  std::string Name, Value, Words;
};

class Page
{
public:
  explicit Page(const std::string& title);

  /// One line below the title.
  void SetSubtitle(const std::string& subtitle) { this->Subtitle_ = subtitle; }

  /// A part with a heading, which is also in the list of contents; `id` is made of letters and digits. `newPage`: where it is
  /// printed.
  void Section(const std::string& id, const std::string& heading, bool newPage = false);
  void Heading(const std::string& heading);
  void Paragraph(const std::string& text);
  /// Smaller: how to read something.
  void Note(const std::string& text);
  void List(const std::vector<std::string>& items);
  /// As typed at a terminal.
  void Code(const std::string& text);
  void Tiles(const std::vector<PageTile>& tiles);
  void Add(const PageTable& table);
  void Add(const Figure& figure, const std::string& caption);
  /// Figures beside each other, as many as fit.
  void Add(const std::vector<PagePanel>& panels, bool large = false);
  /// What colors mean: "#rrggbb" and words.
  void Legend(const std::string& name, const std::vector<std::pair<std::string, std::string>>& colors);
  /// Keeps a picture for Figure::SharedPicture(), in the units of these figures; returns its id.
  std::string SharedPicture(const std::vector<uint8_t>& rgb, int64_t columns, int64_t rows, double width, double height);

  std::string Html() const;

private:
  void EndSection();

  std::string Title_, Subtitle_, Contents_, Body_, Shared_;
  int SharedCount_ = 0, TableCount_ = 0;
  bool InSection_ = false;
};

} // namespace rcn

#endif
