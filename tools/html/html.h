// One HTML file that opens offline, in light and dark: escaping, the document around the parts, tables. Nothing is loaded
// from a network and no script is needed; plots are inline SVG (tools/html/plot.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::html {

// Text as it may stand in an element or in a quoted attribute. Control characters that HTML forbids become U+FFFD.
std::string Escape(std::string_view text);

struct Document {
  std::string title;  // plain text
  std::string body;   // HTML
  std::string css;    // added after the common style; may be empty
};

// The whole file. The style names colours as variables, so that parts follow the reader's light or dark setting:
// --ink, --muted, --paper, --card, --line, --good, --bad, and --c1 ... --c8 (told apart by colour-blind readers too).
// Classes: "cards" (a row of "card"s), "good", "bad", "muted", "num" (a number in a table), "nowrap", "wide" (scrolls sideways).
std::string Page(const Document& document);

// "<section><h2>title</h2>body</section>"; `title` is plain text, `body` HTML.
std::string Section(std::string_view title, std::string_view body);

// A headline number with its caption, both plain text.
std::string Card(std::string_view value, std::string_view caption);

struct Cell {
  std::string text;       // plain text
  std::string css_class;  // "num", "good", ...; may be empty
  std::string tooltip;    // plain text; may be empty
};

struct Column {
  std::string title;
  bool is_number = false;
};

// Rows may be shorter than `columns`; the rest is left empty.
std::string Table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows);

}  // namespace heddle::html
