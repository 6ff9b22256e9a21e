#include "tools/html/html.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::html {
namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --muted: #5c6670; --paper: #ffffff; --card: #f4f6f8; --line: #d5dae0;
  --good: #17703a; --bad: #b3261e; --c1: #1f6fb4; --c2: #d1750c; --c3: #178a68; --c4: #b84c8c; --c5: #6a51a3;
  --c6: #8a6d00; --c7: #4b5563; --c8: #c0392b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --muted: #9aa5b1; --paper: #14171b; --card: #1e2329; --line: #39414a;
    --good: #5fce8a; --bad: #ff8a80; --c1: #62aef0; --c2: #f5a24a; --c3: #4fc9a3; --c4: #ea8cc3; --c5: #b09ae8;
    --c6: #d9bb45; --c7: #a3adb8; --c8: #f0776a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1200px; padding: 1.2rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 1.8rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; } p { margin: .4rem 0; max-width: 75ch; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .92em; }
.muted { color: var(--muted); } .good { color: var(--good); } .bad { color: var(--bad); }
.cards { display: flex; flex-wrap: wrap; gap: .6rem; margin: .8rem 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .5rem .9rem; min-width: 8rem; }
.card b { display: block; font-size: 1.35rem; font-weight: 600; } .card span { color: var(--muted); font-size: .85rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td:first-child:not(.num) { overflow-wrap: anywhere; min-width: 12rem; }
th { color: var(--muted); font-weight: 600; position: sticky; top: 0; background: var(--paper); }
.nowrap { white-space: nowrap; }
.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; } figure { margin: 0; }
figcaption { color: var(--muted); font-size: .85rem; }
svg { max-width: 100%; height: auto; font: 12px system-ui, "Liberation Sans", sans-serif; }
svg text { fill: var(--ink); } svg text.muted { fill: var(--muted); }
svg .axis { stroke: var(--muted); fill: none; } svg .grid { stroke: var(--line); fill: none; }
svg .line { fill: none; stroke-width: 1.6; } svg .dashed { stroke-dasharray: 5 4; } svg line.muted, svg .line.muted { stroke: var(--muted); }
svg .mark { fill-opacity: .75; stroke-width: .8; }
svg .box { stroke: none; }
svg rect.muted { fill: var(--line); }
@media print { body { max-width: none; } th { position: static; } }
)css";

std::string SeriesStyle() {
  std::string css;
  for (int i = 1; i <= 8; ++i) {
    css += fmt::format("svg .c{0} {{ fill: var(--c{0}); stroke: var(--c{0}); }}\n", i);
    css += fmt::format("svg text.c{0} {{ stroke: none; }}\n", i);
  }
  // After the series' own, so that a line stays a line.
  css += "svg .line { fill: none; }\nsvg .box { stroke: none; }\n";
  css += "svg .good { fill: var(--good); } svg .bad { fill: var(--bad); }\n";
  return css;
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        const bool forbidden = (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
        if (forbidden) {
          out += "\xef\xbf\xbd";
        } else {
          out += c;
        }
      }
    }
  }
  return out;
}

std::string Page(const Document& document) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<title>{}</title>\n<style>{}{}{}</style>\n</head>\n<body>\n{}\n</body>\n</html>\n",
      Escape(document.title), kStyle, SeriesStyle(), document.css, document.body);
}

std::string Section(std::string_view title, std::string_view body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}\n</section>\n", Escape(title), body);
}

std::string Card(std::string_view value, std::string_view caption) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>\n", Escape(value), Escape(caption));
}

std::string Table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
  std::string out = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const Column& column : columns) {
    out += fmt::format("<th{}>{}</th>", column.is_number ? " class=\"num\"" : "", Escape(column.title));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < columns.size(); ++i) {
      const Cell cell = i < row.size() ? row[i] : Cell{};
      std::string classes = columns[i].is_number ? "num" : "";
      if (!cell.css_class.empty()) classes += (classes.empty() ? "" : " ") + cell.css_class;
      out += "<td";
      if (!classes.empty()) out += fmt::format(" class=\"{}\"", Escape(classes));
      if (!cell.tooltip.empty()) out += fmt::format(" title=\"{}\"", Escape(cell.tooltip));
      out += fmt::format(">{}</td>", Escape(cell.text));
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table></div>\n";
}

}  // namespace heddle::html
