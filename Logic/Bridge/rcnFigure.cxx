// SPDX-License-Identifier: Apache-2.0
#include "rcnFigure.h"

#include <cstdio>

#ifdef RCN_HAVE_RSVG
#include <librsvg/rsvg.h>
#endif

#include "rcn/rcn_color.h"
#include "rcnError.h"
#include "rcnFileName.h"
#include "rcnJson.h"
#include "rcnPng.h"

namespace rcn
{

namespace
{

/// Two digits after the point are finer than a pixel, and trailing zeros go: pages hold thousands of numbers.
std::string Number(double value)
{
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string number = text;
  while (number.back() == '0')
  {
    number.pop_back();
  }
  if (number.back() == '.')
  {
    number.pop_back();
  }
  return number == "-0" ? "0" : number;
}

/// Everything that goes into an attribute passes through here, and is escaped here: names of files and raters are anybody's.
std::string Attribute(const char* name, const std::string& value)
{
  return std::string(" ") + name + "=\"" + XmlEscape(value) + "\"";
}

std::string Attribute(const char* name, double value)
{
  return Attribute(name, Number(value));
}

std::string Points(const std::vector<double>& xy)
{
  std::string text;
  for (size_t i = 0; i + 1 < xy.size(); i += 2)
  {
    text += (i ? " " : "") + Number(xy[i]) + "," + Number(xy[i + 1]);
  }
  return text;
}

/// RFC 4648, without line breaks: pictures lie inside of the page, so that it is one file.
std::string Base64(const std::string& bytes)
{
  static const char* const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3)
  {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k)
    {
      three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k)
    {
      text += i + k > bytes.size() ? '=' : digits[three >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

} // namespace

std::string XmlEscape(const std::string& text)
{
  std::string out;
  for (const char c : text)
  {
    switch (c)
    {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      // Control characters are not allowed in XML, escaped or not.
      default: out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

std::string PictureAddress(const std::vector<uint8_t>& rgb, int64_t columns, int64_t rows)
{
  // Most slices are gray; a PNG of one channel takes about a third of one of three.
  std::vector<uint8_t> gray;
  for (size_t i = 0; i + 2 < rgb.size() && rgb[i] == rgb[i + 1] && rgb[i] == rgb[i + 2]; i += 3)
  {
    gray.push_back(rgb[i]);
  }
  const bool isGray = 3 * gray.size() == rgb.size();
  return "data:image/png;base64," + Base64(EncodePng(isGray ? gray : rgb, columns, rows, isGray ? 1 : 3));
}

std::string HexColor(const uint8_t rgb[3])
{
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
  return text;
}

std::string ShareColor(double share)
{
  uint8_t color[3];
  rcn_color_share(color, share);
  return HexColor(color);
}

std::string RaterColor(int rater)
{
  uint8_t color[3];
  rcn_color_rater(color, rater);
  return HexColor(color);
}

Figure::Figure(double width, double height, const std::string& title, const std::string& description)
  : Width_(width), Height_(height), Title_(title), Description_(description)
{
}

void Figure::Shape(const std::string& element)
{
  // element: "<name ...attributes"; a hint becomes its title
  if (this->Hint_.empty())
  {
    this->Body_ += element + "/>\n";
    return;
  }
  const std::string name = element.substr(1, element.find(' ') - 1);
  this->Body_ += element + "><title>" + XmlEscape(this->Hint_) + "</title></" + name + ">\n";
  this->Hint_.clear();
}

void Figure::Text(double x, double y, const std::string& text, double size, Anchor anchor, const std::string& color, bool bold)
{
  // In the order of Anchor.
  static const char* const anchors[] = { "start", "middle", "end" };
  this->Body_ += "<text" + Attribute("x", x) + Attribute("y", y) + Attribute("font-size", size) +
    Attribute("text-anchor", anchors[static_cast<int>(anchor)]) + Attribute("fill", color) +
    (bold ? " font-weight=\"bold\"" : "") + ">" + XmlEscape(text) + "</text>\n";
}

void Figure::TurnedText(double x, double y, const std::string& text, double size, int degrees, const char* anchor)
{
  this->Body_ += "<text" + Attribute("font-size", size) +
    Attribute("transform", "translate(" + Number(x) + "," + Number(y) + ") rotate(" + std::to_string(-degrees) + ")") +
    Attribute("text-anchor", anchor) + " fill=\"#222\">" + XmlEscape(text) + "</text>\n";
}

void Figure::VerticalText(double x, double y, const std::string& text, double size)
{
  this->TurnedText(x, y, text, size, 90, "middle");
}

void Figure::SlantedText(double x, double y, const std::string& text, double size)
{
  this->TurnedText(x, y, text, size, 45, "start");
}

void Figure::Rectangle(
  double x, double y, double width, double height, const std::string& fill, const std::string& stroke, double opacity)
{
  this->Shape("<rect" + Attribute("x", x) + Attribute("y", y) + Attribute("width", width) + Attribute("height", height) +
    Attribute("fill", fill) + Attribute("stroke", stroke) + Attribute("fill-opacity", opacity));
}

void Figure::Line(double x1, double y1, double x2, double y2, const std::string& color, double width, const std::string& dashes)
{
  this->Shape("<line" + Attribute("x1", x1) + Attribute("y1", y1) + Attribute("x2", x2) + Attribute("y2", y2) +
    Attribute("stroke", color) + Attribute("stroke-width", width) +
    (dashes.empty() ? "" : Attribute("stroke-dasharray", dashes)));
}

void Figure::Polyline(const std::vector<double>& xy, const std::string& color, double width)
{
  this->Shape("<polyline" + Attribute("points", Points(xy)) + Attribute("stroke", color) + Attribute("stroke-width", width) +
    " fill=\"none\" stroke-linejoin=\"round\"");
}

void Figure::Polygon(const std::vector<double>& xy, const std::string& fill, double opacity)
{
  this->Shape("<polygon" + Attribute("points", Points(xy)) + Attribute("fill", fill) + Attribute("fill-opacity", opacity));
}

void Figure::Circle(double x, double y, double radius, const std::string& fill)
{
  this->Shape("<circle" + Attribute("cx", x) + Attribute("cy", y) + Attribute("r", radius) + Attribute("fill", fill));
}

// Pixelated: a voxel stays a square, however large it is drawn, because smooth edges would show what was not measured. Not
// preserving the aspect ratio, because voxels need not be square: the place has the right shape.
void Figure::Picture(
  double x, double y, double width, double height, const std::vector<uint8_t>& rgb, int64_t columns, int64_t rows)
{
  this->Shape("<image" + Attribute("x", x) + Attribute("y", y) + Attribute("width", width) + Attribute("height", height) +
    " preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\"" +
    Attribute("xlink:href", PictureAddress(rgb, columns, rows)));
}

// xlink:href, because every reader of SVG knows it; SVG 2 calls it href.
void Figure::SharedPicture(const std::string& id)
{
  this->Shape("<use" + Attribute("xlink:href", "#" + id));
}

// Even-odd, so that holes stay open whichever way round their lines run.
void Figure::Area(
  const std::vector<std::vector<double>>& lines, const std::string& fill, const std::string& stroke, double width)
{
  std::string path;
  for (const std::vector<double>& line : lines)
  {
    path += "M" + Points(line) + "Z";
  }
  this->Shape("<path" + Attribute("d", path) + Attribute("fill", fill) + " fill-rule=\"evenodd\"" +
    (stroke == "none" ? "" : Attribute("stroke", stroke) + Attribute("stroke-width", width) + " stroke-linejoin=\"round\""));
}

void Figure::BeginGroup(double opacity)
{
  this->Body_ += "<g" + Attribute("opacity", opacity) + ">\n";
}

void Figure::EndGroup()
{
  this->Body_ += "</g>\n";
}

std::string Figure::Inline() const
{
  // No title element of its own: browsers would show it wherever the pointer rests.
  return "<svg class=\"fig\"" + Attribute("viewBox", "0 0 " + Number(this->Width_) + " " + Number(this->Height_)) +
    Attribute("width", this->Width_) + Attribute("height", this->Height_) + " role=\"img\"" +
    Attribute("aria-label", this->Title_ + (this->Description_.empty() ? "" : ". " + this->Description_)) + ">\n" +
    this->Body_ + "</svg>\n";
}

// A file of its own: with name spaces, a white ground for dark viewers, and title and description for those who cannot see.
std::string Figure::Svg() const
{
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"" +
    Attribute("viewBox", "0 0 " + Number(this->Width_) + " " + Number(this->Height_)) + Attribute("width", this->Width_) +
    Attribute("height", this->Height_) + " role=\"img\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n<title>" +
    XmlEscape(this->Title_) + "</title>\n<desc>" + XmlEscape(this->Description_) +
    "</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + this->Body_ + "</svg>\n";
}

// Before the work, so that nobody waits for a figure that cannot be written.
std::string Figure::CheckPath(const std::string& path)
{
  if (HasExtension(path, ".svg"))
  {
    return "";
  }
#ifdef RCN_HAVE_RSVG
  if (HasExtension(path, ".png"))
  {
    return "";
  }
  return path + ": a figure is written as .svg or .png.";
#else
  return path + ": this build writes figures as .svg.";
#endif
}

void Figure::Save(const std::string& path, double scale) const
{
  const std::string sentence = CheckPath(path);
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, sentence);
  }
  if (HasExtension(path, ".svg"))
  {
    WriteText(path, this->Svg());
    return;
  }
#ifdef RCN_HAVE_RSVG
  // PNG is rendered from the same SVG, so that both show the same.
  const std::string svg = this->Svg();
  GError* error = nullptr;
  RsvgHandle* handle = rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error);
  if (!handle)
  {
    const std::string reason = error ? error->message : "unknown reason";
    g_clear_error(&error);
    throw Error(RCN_EINTERNAL, path + " cannot be drawn: " + reason + ".");
  }
  // Without an alpha channel: the ground is white anyway, and some programs show transparency as black.
  cairo_surface_t* surface = cairo_image_surface_create(
    CAIRO_FORMAT_RGB24, static_cast<int>(this->Width_ * scale), static_cast<int>(this->Height_ * scale));
  cairo_t* cairo = cairo_create(surface);
  const RsvgRectangle viewport = { 0, 0, this->Width_ * scale, this->Height_ * scale };
  const bool drawn = rsvg_handle_render_document(handle, cairo, &viewport, &error);
  // Into memory, so that WriteText() can write a file that is complete or absent.
  std::string png;
  const cairo_status_t status = cairo_surface_write_to_png_stream(
    surface,
    [](void* closure, const unsigned char* data, unsigned int length) {
      static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
      return CAIRO_STATUS_SUCCESS;
    },
    &png);
  cairo_destroy(cairo);
  cairo_surface_destroy(surface);
  g_object_unref(handle);
  g_clear_error(&error);
  if (!drawn || status != CAIRO_STATUS_SUCCESS)
  {
    throw Error(RCN_EINTERNAL, path + " cannot be drawn.");
  }
  WriteText(path, png);
#else
  (void)scale;
#endif
}

} // namespace rcn
