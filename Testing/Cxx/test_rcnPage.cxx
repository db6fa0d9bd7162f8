// SPDX-License-Identifier: Apache-2.0
#include "rcnPage.h"

#include "rcnTest.h"

namespace
{

size_t CountOf(const std::string& text, const std::string& part)
{
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
  {
    ++count;
  }
  return count;
}

/// Every element that is opened is closed, in order; those that HTML never closes are skipped.
bool IsBalanced(const std::string& html)
{
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at))
  {
    const size_t end = html.find('>', at);
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
    at = end;
    if (tag[0] == '!' || name == "meta" || tag.back() == '/')
    {
      continue;
    }
    if (tag[0] == '/')
    {
      if (open.empty() || "/" + open.back() != tag)
      {
        std::fprintf(stderr, "<%s> closes %s\n", tag.c_str(), open.empty() ? "nothing" : open.back().c_str());
        return false;
      }
      open.pop_back();
    }
    else
    {
      open.push_back(name);
      if (name == "script" || name == "style")
      {
        at = html.find("</" + name, at); // what is inside is no HTML
      }
    }
  }
  return open.empty();
}

/// Everything a page can hold, with the same text everywhere.
rcn::Page MakePage(const std::string& text)
{
  rcn::Page page(text);
  page.SetSubtitle(text);
  page.Section("one", text);
  page.Heading(text);
  page.Paragraph(text);
  page.Note(text);
  page.List({ text, text });
  page.Code(text);
  page.Tiles({ { text, text, text } });
  page.Legend(text, { { "#123456", text } });
  rcn::PageTable table;
  table.Caption = text;
  table.Columns = { { text, text }, "Number" };
  table.Rows = { { text, rcn::PageCell(0.5, 2) }, { text, rcn::PageCell(NAN, 2) } };
  table.Rows[0][1].Small = text;
  table.Rows[0][1].Mark = rcn::CellMark::Best;
  table.Rows[1][1].Mark = rcn::CellMark::Tie;
  page.Add(table);
  rcn::Figure figure(100, 50, text, text);
  figure.Text(1, 2, text);
  figure.SlantedText(1, 2, text);
  figure.Hint(text);
  figure.Rectangle(0, 0, 5, 5, "#fafafa");
  figure.BeginGroup(0.5);
  figure.Hint(text);
  figure.Area({ { 0, 0, 1, 0, 1, 1 }, { 2, 2, 3, 2, 3, 3 } }, "#123456");
  figure.EndGroup();
  figure.SharedPicture(page.SharedPicture(std::vector<uint8_t>(2 * 2 * 3, 7), 2, 2, 100, 50));
  page.Add(figure, text);
  page.Section("two", text);
  page.Add({ { figure, text }, { figure, text } }, true);
  return page;
}

void Parts()
{
  const std::string html = MakePage("plain").Html();
  CHECK(IsBalanced(html));
  CHECK(html.rfind("<!DOCTYPE html>", 0) == 0 && CountOf(html, "</html>") == 1);
  CHECK(CountOf(html, "<section") == 2 && CountOf(html, "<h2>plain</h2>") == 2 && CountOf(html, "href=\"#one\"") == 1);
  CHECK(CountOf(html, "For research, not for clinical use.") == 3); // above, below, and on each sheet of paper
  CHECK(CountOf(html, "@top-center{content:\"For research, not for clinical use.\"") == 1);
  CHECK(CountOf(html, "<svg class=\"fig\"") == 3 && CountOf(html, "role=\"img\" aria-label=\"plain. plain\"") == 3);
  CHECK(CountOf(html, "data-v=\"0.5\"") == 1 && CountOf(html, "data-v=") == 1); // not-a-number has no value to sort by
  CHECK(CountOf(html, "≈ –") == 1 && CountOf(html, "class=\"number best\"") == 1);
  CHECK(CountOf(html, "href=\"data:image/png;base64,") == 1 && CountOf(html, "<use xlink:href=\"#picture1\"") == 3);
  // Nothing is asked from anywhere.
  CHECK(
    CountOf(html, "http:") == 0 && CountOf(html, "https:") == 0 && CountOf(html, "src=\"") == 0 && CountOf(html, "url(") == 0);
  CHECK(CountOf(html, "default-src 'none'") == 1 && CountOf(html, "@media print") == 1 &&
    CountOf(html, "prefers-color-scheme") == 1);
}

/// Names from files do not become part of the page.
void HostileText()
{
  const std::string hostile = "</title></style></script><script>alert(\"1\")</script><img src=x onerror='x'>&amp;\n\x01";
  const std::string html = MakePage(hostile).Html();
  CHECK(IsBalanced(html));
  CHECK(CountOf(html, "<script") == 1 && CountOf(html, "</script") == 1 && CountOf(html, "</style") == 1 &&
    CountOf(html, "<img") == 0);
  CHECK(CountOf(html, "alert(\"") == 0 && CountOf(html, "&amp;amp;") > 10 && CountOf(html, "\x01") == 0);
}

void Empty()
{
  CHECK(IsBalanced(rcn::Page("").Html()));
  rcn::Page page("nothing");
  page.Section("nothing", "");
  page.List({});
  page.Tiles({});
  page.Add(rcn::PageTable{});
  page.Add(std::vector<rcn::PagePanel>{});
  const std::string html = page.Html();
  CHECK(IsBalanced(html) && CountOf(html, "<ul>") == 1 && CountOf(html, "<dl") == 0 && CountOf(html, "class=\"panels") == 0);
  CHECK(CountOf(html, "class=\"sort\"") == 0); // one row or none: nothing to sort
}

/// A figure in a file of its own and in a page.
void Figures()
{
  rcn::Figure figure(10, 20, "Title", "Words");
  figure.Hint("hint");
  figure.Circle(1, 2, 3, "#111");
  figure.Circle(1, 2, 3, "#111");
  CHECK(CountOf(figure.Svg(), "<title>") == 2 && CountOf(figure.Svg(), "<desc>Words</desc>") == 1 &&
    CountOf(figure.Svg(), "xmlns=") == 1);
  CHECK(CountOf(figure.Inline(), "<title>hint</title>") == 1 && CountOf(figure.Inline(), "<title>") == 1);
  CHECK(CountOf(figure.Inline(), "xmlns") == 0 && IsBalanced(figure.Inline()));
  const std::vector<uint8_t> gray = { 9, 9, 9, 200, 200, 200 }, color = { 9, 9, 9, 200, 100, 200 };
  CHECK(rcn::PictureAddress(gray, 2, 1) != rcn::PictureAddress(color, 2, 1));
}

} // namespace

int main()
{
  RUN(Parts);
  RUN(HostileText);
  RUN(Empty);
  RUN(Figures);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
