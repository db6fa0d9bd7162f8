// SPDX-License-Identifier: Apache-2.0
#include "rcnPage.h"

#include <cstdio>

#include "rcn/rcn.h"
#include "rcnReport.h"

namespace rcn
{

namespace
{

/// Colors by name, so that light and dark differ in one place. Figures (rcnFigure.h) have their grays by value; the rules at
/// the end give these values the page's colors.
const char* const Style = R"(
:root{--ink:#1b2420;--dim:#5a6660;--line:#d9dfdb;--paper:#fff;--card:#f5f8f6;--plot:#fafafa;--grid:#e4e4e4;--frame:#999;
--accent:#0b6b3f;--best:#dcefe2;--tie:#f0f6f2;--warn:#7a4a00;--warnpaper:#fff4de;--blue:#1f5f94;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ink:#e4eae6;--dim:#a3b0a9;--line:#35403b;--paper:#121614;--card:#1b211e;
--plot:#171c1a;--grid:#2c3531;--frame:#66736c;--accent:#6fd19b;--best:#1f4a32;--tie:#1c2b23;--warn:#f3c77a;--warnpaper:#33270f;
--blue:#8cc3ee}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main,footer{max-width:72rem;margin:0 auto;padding:0 1.25rem}
.banner{background:var(--warnpaper);color:var(--warn);text-align:center;margin:0;max-width:none;
padding:.35rem 1rem;font-size:.9rem;font-weight:600}
h1{font-size:clamp(1.5rem,4vw,2.1rem);line-height:1.2;margin:1.6rem 0 .3rem;overflow-wrap:anywhere}
h2{font-size:1.35rem;margin:2.6rem 0 .6rem;padding-top:.9rem;border-top:2px solid var(--line)}
h3{font-size:1.05rem;margin:1.8rem 0 .5rem;overflow-wrap:anywhere}
p,ul{max-width:46rem;margin:.5rem 0}
.lead{color:var(--dim);font-size:1.05rem;margin:0 0 .8rem}
.note{color:var(--dim);font-size:.88rem}
p,li,figcaption,dd{overflow-wrap:anywhere}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;padding:0;max-width:none}
a{color:var(--accent)}
a:focus-visible,button:focus-visible,.scroll:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.8rem;margin:1.2rem 0}
.tiles div{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.7rem .9rem}
dt{color:var(--dim);font-size:.85rem}
dd{margin:0}
dd.value{font-size:1.7rem;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums}
dd.words{color:var(--dim);font-size:.85rem}
.scroll{overflow-x:auto;width:fit-content;max-width:100%;margin:0 0 1.2rem;border:1px solid var(--line);border-radius:.5rem}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
.caption{color:var(--dim);font-size:.88rem;margin:1.2rem 0 .35rem}
th,td{padding:.42rem .8rem;text-align:left;vertical-align:top}
td{border-top:1px solid var(--line)}
thead th{background:var(--card);font-weight:600;vertical-align:bottom}
.number{text-align:right}
td.number{white-space:nowrap}
td small{display:block;color:var(--dim);white-space:nowrap}
.best{background:var(--best);font-weight:650}
.tie{background:var(--tie)}
th button{all:unset;cursor:pointer;display:inline-block}
th button::after{content:"\2195";color:var(--dim);padding-left:.3em;font-weight:400}
th[aria-sort=ascending] button::after{content:"\2191";color:var(--accent)}
th[aria-sort=descending] button::after{content:"\2193";color:var(--accent)}
figure{margin:.8rem 0 1.2rem}
figcaption{color:var(--dim);font-size:.88rem;max-width:46rem;padding-top:.25rem}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.8rem;
margin:.8rem 0 1.2rem;align-items:start}
.panels.large{grid-template-columns:repeat(auto-fit,minmax(min(100%,19rem),1fr));max-width:none}
.panels figure{margin:0}
svg.fig{display:block;max-width:100%;height:auto;border-radius:.35rem}
.panels svg.fig{width:100%}
.large svg.fig{max-width:30rem}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;padding:0;margin:.6rem 0;font-size:.9rem;max-width:none}
.legend svg{width:1.1em;height:.8em;margin-right:.4em;vertical-align:-.05em}
code{display:block;background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.6rem .8rem;
white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem;margin:.6rem 0}
footer{color:var(--dim);font-size:.85rem;margin-top:3rem;padding-bottom:2rem}
#tip{position:fixed;z-index:9;pointer-events:none;background:var(--ink);color:var(--paper);padding:.25rem .55rem;
border-radius:.35rem;font-size:.85rem;max-width:min(20rem,90vw)}
.fig text[fill="#111"],.fig text[fill="#222"]{fill:var(--ink)}
.fig text[fill="#444"],.fig text[fill="#555"],.fig text[fill="#666"],.fig text[fill="#777"]{fill:var(--dim)}
.fig text[fill="#1f5f94"]{fill:var(--blue)}
.fig [fill="#fafafa"]{fill:var(--plot)}
.fig [stroke="#e4e4e4"]{stroke:var(--grid)}
.fig [stroke="#999"]{stroke:var(--frame)}
@media print{:root{--ink:#000;--dim:#444;--line:#bbb;--paper:#fff;--card:#fff;--plot:#fff;--grid:#ddd;--frame:#888;
--accent:#000;--best:#e6e6e6;--tie:#f6f6f6;--warn:#000;--warnpaper:#fff;--blue:#1f5f94;color-scheme:light}
@page{margin:14mm 14mm 10mm;@top-center{content:"For research, not for clinical use.";font:600 9pt sans-serif}}
.banner{display:none}@supports (-moz-appearance:none){.banner{display:block}}
body{font-size:10pt;line-height:1.4}header,main,footer{max-width:none;padding:0}nav,#tip{display:none}
h1{font-size:16pt;margin:0 0 .2rem}h2{font-size:12pt;margin:.7rem 0 .3rem;padding-top:.3rem;border-width:1px}
h3{margin:.7rem 0 .3rem}.lead{font-size:9pt;margin-bottom:.4rem}p,ul{max-width:none;margin:.3rem 0}.new{break-before:page}
.note,.caption,figcaption,dt,dd.words,.legend,table,footer{font-size:8.5pt}
code{font-size:8pt;padding:.3rem .5rem;margin:.3rem 0}
th button::after{content:""}.scroll{overflow:visible;border:0;margin-bottom:.5rem}
th,td{padding:.13rem .4rem;white-space:normal}thead{display:table-header-group}.caption{margin:.5rem 0 .2rem}
h2,h3,.caption{break-after:avoid}figure,tr,.tiles div,.legend{break-inside:avoid}
figure{margin:.4rem 0}.legend{margin:.3rem 0}
.panels{grid-template-columns:repeat(4,1fr);margin:.4rem 0;gap:.4rem}.panels svg.fig{max-height:45mm}
.panels.large{grid-template-columns:repeat(2,1fr)}.panels.large svg.fig{max-height:112mm}
.tiles{grid-template-columns:repeat(auto-fit,minmax(38mm,1fr));margin:.4rem 0;gap:.4rem}
.tiles div{padding:.25rem .5rem}dd.value{font-size:13pt}
footer{margin-top:.4rem;padding-bottom:0}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)";

/// Sorting and hints. Without it everything is still there, in the order it was written. The policy names it by its
/// fingerprint, so that no other script can ever run; a test prints the new one when a letter changes.
const char* const Script = R"(
for(const table of document.querySelectorAll("table.sort")){
const heads=[...table.tHead.rows[0].cells],body=table.tBodies[0];
const key=(row,i)=>{const c=row.cells[i];return c.dataset.v===undefined?c.textContent.trim():Number(c.dataset.v)};
heads.forEach((head,i)=>{
const button=document.createElement("button");
button.type="button";button.append(...head.childNodes);head.append(button);
button.addEventListener("click",()=>{
const up=head.getAttribute("aria-sort")!=="ascending";
for(const h of heads)h.removeAttribute("aria-sort");
head.setAttribute("aria-sort",up?"ascending":"descending");
const gone=v=>v===""||v==="\u2013"||Number.isNaN(v);
body.append(...[...body.rows].sort((a,b)=>{const x=key(a,i),y=key(b,i);
if(gone(x)||gone(y))return gone(x)-gone(y);
const d=typeof x==="number"&&typeof y==="number"?x-y:String(x).localeCompare(String(y),undefined,{numeric:true});
return up?d:-d}))})})}
const tip=document.createElement("div");tip.id="tip";tip.hidden=true;tip.setAttribute("role","tooltip");
document.body.append(tip);
for(const t of document.querySelectorAll("svg.fig title")){t.parentNode.dataset.tip=t.textContent;t.remove()}
const show=e=>{const text=e.target.dataset&&e.target.dataset.tip;tip.hidden=!text;if(!text)return;tip.textContent=text;
tip.style.left=Math.max(4,Math.min(e.clientX+12,innerWidth-tip.offsetWidth-8))+"px";
tip.style.top=Math.max(4,e.clientY-tip.offsetHeight-10)+"px"};
for(const kind of["pointermove","pointerdown"])document.addEventListener(kind,show);
document.addEventListener("scroll",()=>{tip.hidden=true},{passive:true});
)";
const char* const ScriptFingerprint = "sha256-eulFMo6f9u/zjRA7MCrr0ZzkmC+Cgki4Lb3XPXSkAkU=";

/// Content goes in as it is: whoever calls this has escaped it, or made it here.
std::string Element(const std::string& name, const std::string& content, const std::string& kind = "")
{
  return "<" + name + (kind.empty() ? "" : " class=\"" + kind + "\"") + ">" + content + "</" + name + ">";
}

/// The cell's sorting value, exactly.
std::string ValueAttribute(const PageCell& cell)
{
  char text[64];
  std::snprintf(text, sizeof text, " data-v=\"%.10g\"", cell.Value);
  return std::isfinite(cell.Value) ? text : "";
}

/// A column of numbers stands to the right.
bool IsNumeric(const PageTable& table, size_t column)
{
  // Empty cells do not decide, and a column of nothing else is text.
  bool any = false;
  for (const std::vector<PageCell>& row : table.Rows)
  {
    if (column < row.size())
    {
      any = any || row[column].IsNumber;
      if (!row[column].IsNumber && !row[column].Text.empty())
      {
        return false;
      }
    }
  }
  return any;
}

} // namespace

PageCell::PageCell(double value, int digits) : Text(Fixed(value, digits)), Value(value), IsNumber(true) {}

Page::Page(const std::string& title) : Title_(title) {}

// Sections are closed when the next one begins, or the page ends: nobody has to think of it.
void Page::EndSection()
{
  this->Body_ += this->InSection_ ? "</section>\n" : "";
  this->InSection_ = false;
}

void Page::Section(const std::string& id, const std::string& heading, bool newPage)
{
  this->EndSection();
  this->InSection_ = true;
  this->Contents_ += "<li><a href=\"#" + XmlEscape(id) + "\">" + XmlEscape(heading) + "</a></li>\n";
  this->Body_ += "<section id=\"" + XmlEscape(id) + "\"" + (newPage ? " class=\"new\"" : "") + ">\n" +
    Element("h2", XmlEscape(heading)) + "\n";
}

void Page::Heading(const std::string& heading)
{
  this->Body_ += Element("h3", XmlEscape(heading)) + "\n";
}

// All text is escaped on its way in: names of raters, cases and files are anybody's.
void Page::Paragraph(const std::string& text)
{
  this->Body_ += Element("p", XmlEscape(text)) + "\n";
}

void Page::Note(const std::string& text)
{
  this->Body_ += Element("p", XmlEscape(text), "note") + "\n";
}

void Page::List(const std::vector<std::string>& items)
{
  std::string list;
  for (const std::string& item : items)
  {
    list += Element("li", XmlEscape(item)) + "\n";
  }
  this->Body_ += items.empty() ? "" : Element("ul", "\n" + list) + "\n";
}

void Page::Code(const std::string& text)
{
  this->Body_ += Element("code", XmlEscape(text)) + "\n";
}

void Page::Tiles(const std::vector<PageTile>& tiles)
{
  std::string list;
  for (const PageTile& tile : tiles)
  {
    list += Element("div",
              Element("dt", XmlEscape(tile.Name)) + Element("dd", XmlEscape(tile.Value), "value") +
                Element("dd", XmlEscape(tile.Words), "words")) +
      "\n";
  }
  this->Body_ += tiles.empty() ? "" : Element("dl", "\n" + list, "tiles") + "\n";
}

void Page::Add(const PageTable& table)
{
  std::string head, body;
  std::vector<bool> numeric;
  for (size_t c = 0; c < table.Columns.size(); ++c)
  {
    const PageColumn& column = table.Columns[c];
    numeric.push_back(IsNumeric(table, c));
    head += std::string("<th scope=\"col\"") + (numeric[c] ? " class=\"number\"" : "") +
      (column.Meaning.empty() ? "" : " title=\"" + XmlEscape(column.Meaning) + "\"") + ">" + XmlEscape(column.Name) + "</th>";
  }
  for (const std::vector<PageCell>& row : table.Rows)
  {
    body += "<tr>";
    for (size_t c = 0; c < row.size(); ++c)
    {
      const PageCell& cell = row[c];
      // Never by color alone: the best is bold, and one that is not significantly different has a sign in front.
      std::string kind = c < numeric.size() && numeric[c] ? "number" : "";
      kind += cell.Mark == CellMark::Best ? " best" : cell.Mark == CellMark::Tie ? " tie" : "";
      body += "<td" + (kind.empty() ? "" : " class=\"" + kind + "\"") + ValueAttribute(cell) + ">" +
        (cell.Mark == CellMark::Tie ? "≈ " : "") + XmlEscape(cell.Text) +
        (cell.Small.empty() ? "" : Element("small", XmlEscape(cell.Small))) + "</td>";
    }
    body += "</tr>\n";
  }
  // A box of its own to scroll sideways in: the page never does.
  const std::string id = "table" + std::to_string(++this->TableCount_);
  this->Body_ += "<p class=\"caption\" id=\"" + id + "\">" + XmlEscape(table.Caption) +
    "</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
    "aria-labelledby=\"" +
    id + "\"><table aria-labelledby=\"" + id + "\"" + (table.Rows.size() > 1 ? " class=\"sort\"" : "") + ">\n<thead><tr>" +
    head + "</tr></thead>\n<tbody>\n" + body + "</tbody></table></div>\n";
}

void Page::Add(const Figure& figure, const std::string& caption)
{
  this->Body_ += Element("figure", figure.Inline() + (caption.empty() ? "" : Element("figcaption", XmlEscape(caption)))) + "\n";
}

void Page::Add(const std::vector<PagePanel>& panels, bool large)
{
  this->Body_ += panels.empty() ? "" : std::string("<div class=\"panels") + (large ? " large" : "") + "\">\n";
  for (const PagePanel& panel : panels)
  {
    this->Add(panel.Drawing, panel.Caption);
  }
  this->Body_ += panels.empty() ? "" : "</div>\n";
}

void Page::Legend(const std::string& name, const std::vector<std::pair<std::string, std::string>>& colors)
{
  std::string list = Element("li", Element("b", XmlEscape(name)));
  for (const auto& color : colors)
  {
    list += "<li><svg viewBox=\"0 0 22 16\" aria-hidden=\"true\"><rect width=\"22\" height=\"16\" rx=\"3\" fill=\"" +
      XmlEscape(color.first) + "\"/></svg>" + XmlEscape(color.second) + "</li>\n";
  }
  this->Body_ += Element("ul", list, "legend") + "\n";
}

// A slice that stands behind several figures is in the file once; each figure refers to it.
std::string Page::SharedPicture(const std::vector<uint8_t>& rgb, int64_t columns, int64_t rows, double width, double height)
{
  const std::string id = "picture" + std::to_string(++this->SharedCount_);
  this->Shared_ += "<image id=\"" + id + "\" width=\"" + Fixed(width, 2) + "\" height=\"" + Fixed(height, 2) +
    "\" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" xlink:href=\"" + PictureAddress(rgb, columns, rows) +
    "\"/>\n";
  return id;
}

// One file without anything from elsewhere. The policy in it forbids what the page does not need, so that a name that got past
// the escaping could still do nothing: no network, no other script, no form.
std::string Page::Html() const
{
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline';img-src "
         "data:;script-src '" +
    std::string(ScriptFingerprint) +
    "';base-uri 'none';form-action 'none'\">\n"
    "<meta name=\"generator\" content=\"RaterConsensus " RCN_VERSION "\">\n" +
    Element("title", XmlEscape(this->Title_)) + "\n<style>" + Style +
    "</style>\n</head>\n<body>\n<p class=\"banner\">For research, not for clinical use.</p>\n<header>\n" +
    Element("h1", XmlEscape(this->Title_)) + "\n" +
    (this->Subtitle_.empty() ? "" : Element("p", XmlEscape(this->Subtitle_), "lead") + "\n") +
    (this->Contents_.empty() ? "" : "<nav aria-label=\"Contents\"><ul>\n" + this->Contents_ + "</ul></nav>\n") +
    "</header>\n<main>\n" +
    (this->Shared_.empty() ? ""
                           : "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>\n" +
          this->Shared_ + "</defs></svg>\n") +
    this->Body_ + (this->InSection_ ? "</section>\n" : "") +
    "</main>\n<footer>RaterConsensus " RCN_VERSION ". For research, not for clinical use.</footer>\n<script>" + Script +
    "</script>\n</body>\n</html>\n";
}

} // namespace rcn
