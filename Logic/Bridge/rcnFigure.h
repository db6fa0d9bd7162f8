// SPDX-License-Identifier: Apache-2.0
/// Figures for people: SVG written here, and PNG rendered from the same SVG by librsvg. The one way
/// anything is drawn outside the widgets.
#ifndef rcnFigure_h
#define rcnFigure_h

#include <cstdint>
#include <string>
#include <vector>

namespace rcn
{

/// Where a text stands relative to its position.
enum class Anchor
{
  Start,
  Middle,
  End
};

/// A drawing that is built from the back to the front. Units are pixels at normal size.
class Figure
{
public:
  /// `title` and `description` are read aloud by screen readers.
  Figure(double width, double height, const std::string& title, const std::string& description);

  void Text(double x, double y, const std::string& text, double size = 13, Anchor anchor = Anchor::Start,
    const std::string& color = "#222", bool bold = false);
  /// Turned by 90 degrees to read upwards.
  void VerticalText(double x, double y, const std::string& text, double size = 13);
  /// Turned by 45 degrees to read upwards from x, y.
  void SlantedText(double x, double y, const std::string& text, double size = 13);
  void Rectangle(double x, double y, double width, double height, const std::string& fill, const std::string& stroke = "none",
    double opacity = 1);
  void Line(double x1, double y1, double x2, double y2, const std::string& color = "#444", double width = 1,
    const std::string& dashes = "");
  /// x, y, x, y, ...
  void Polyline(const std::vector<double>& xy, const std::string& color, double width = 2);
  void Polygon(const std::vector<double>& xy, const std::string& fill, double opacity = 1);
  void Circle(double x, double y, double radius, const std::string& fill);
  /// Closed lines (x, y, x, y, ...): what they enclose, without their holes. "none" for no fill or no stroke.
  void Area(const std::vector<std::vector<double>>& lines, const std::string& fill, const std::string& stroke = "none",
    double width = 1);
  /// Shapes up to EndGroup() cover each other, and then lie over the rest with one opacity.
  void BeginGroup(double opacity);
  void EndGroup();
  /// 8-bit RGB, shown with sharp pixels.
  void Picture(double x, double y, double width, double height, const std::vector<uint8_t>& rgb, int64_t columns, int64_t rows);
  /// A picture that a page holds once for many figures (Page::SharedPicture()); it stands at 0, 0 and has its own size.
  void SharedPicture(const std::string& id);
  /// Shown while the pointer rests on the next shape drawn.
  void Hint(const std::string& text) { this->Hint_ = text; }

  /// A file of its own.
  std::string Svg() const;
  /// The same as a part of a page, which gives it its background and, by their values, its grays (rcnPage.cxx).
  std::string Inline() const;

  /// Writes .svg or .png (`scale` pixels for each unit); throws Error for other endings, or for .png in a
  /// build without librsvg.
  void Save(const std::string& path, double scale = 2) const;

  /// The sentence Save() would fail with because of the path alone; empty when it looks fine.
  static std::string CheckPath(const std::string& path);

private:
  void Shape(const std::string& element);
  void TurnedText(double x, double y, const std::string& text, double size, int degrees, const char* anchor);

  double Width_, Height_;
  std::string Title_, Description_, Body_, Hint_;
};

/// 8-bit RGB as a PNG inside an address ("data:..."); one channel where all pixels are gray.
std::string PictureAddress(const std::vector<uint8_t>& rgb, int64_t columns, int64_t rows);

/// "#rrggbb"
std::string HexColor(const uint8_t rgb[3]);
/// The same of the color of a share of raters or a probability (rcn_color.h), and of a rater's own.
std::string ShareColor(double share);
std::string RaterColor(int rater);

/// The text with <, >, & and quotes as entities.
std::string XmlEscape(const std::string& text);

} // namespace rcn

#endif
