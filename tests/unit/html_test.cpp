// Is what heddle writes as HTML well formed, whatever names it is given, and do plots put values where they belong?
#include "tools/html/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "tools/html/plot.h"

namespace heddle::html {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Every element that is opened is closed, in order; void elements apart.
bool IsBalanced(const std::string& html) {
  static const std::regex tag("<(/?)([a-zA-Z0-9]+)[^>]*?(/?)>");
  std::vector<std::string> open;
  for (auto i = std::sregex_iterator(html.begin(), html.end(), tag); i != std::sregex_iterator(); ++i) {
    const std::string name = (*i)[2];
    if (name == "meta" || name == "br" || (*i)[3] == "/") continue;
    if ((*i)[1] == "") {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    }
  }
  return open.empty();
}

TEST(Html, EscapesWhatMeansSomething) {
  EXPECT_EQ(Escape("a<b>&\"'c"), "a&lt;b&gt;&amp;&quot;&#39;c");
  EXPECT_EQ(Escape(std::string_view("x\0y\x1b", 4)), "x\xef\xbf\xbdy\xef\xbf\xbd");
  EXPECT_EQ(Escape("µs\n"), "µs\n");
}

TEST(Html, PageIsWholeAndLoadsNothing) {
  const std::string name = "void k<int, 3>(A&, \"x\")</script><script>alert(1)</script>";
  const std::string page = Page(
      {name,
       Section(name, Table({{"kernel", false}, {"n", true}}, {{{name, "", name}, {"1", "bad", ""}}, {}})) +
           Card("3 %", name) + HorizontalBars({{name, {{2, "c1", name}, {-1, "c2", ""}}, name}}, 800, name),
       ""});
  EXPECT_TRUE(IsBalanced(page));
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, HasSubstr("<td class=\"num bad\">1</td>"));
}

TEST(Plot, AxesHoldTheirValues) {
  const Axis linear = AxisOver("x", {2, 10, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(linear.low, 0);
  EXPECT_DOUBLE_EQ(linear.high, 10.5);
  const Axis logarithmic = AxisOver("x", {-5, 0, 2, 900}, true);
  EXPECT_EQ(logarithmic.low, 1);
  EXPECT_EQ(logarithmic.high, 1000);
  EXPECT_THAT(Ticks({"", -20, 20, false}, 4), ElementsAre(-20, -10, 0, 10, 20));
  EXPECT_THAT(Ticks({"", 1, 1000, true}, 8), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(Ticks({"", 1, 100, true}, 8), ElementsAre(1, 2, 5, 10, 20, 50, 100));
  EXPECT_THAT(Ticks({"", 5, 5, false}), ElementsAre());
  EXPECT_THAT(Ticks({"", 0, 2.1, false, true}), ElementsAre(0, 1, 2)) << "there are no half rows";
  EXPECT_THAT(Ticks(AxisOver("", {}, true)), Not(ElementsAre()));
}

TEST(Plot, NumbersAreShort) {
  EXPECT_EQ(ShortNumber(1500), "1.5k");
  EXPECT_EQ(ShortNumber(-2e7), "-20M");
  EXPECT_EQ(ShortNumber(1e15), "1P");
  EXPECT_EQ(ShortNumber(0.25), "0.25");
  EXPECT_EQ(ShortNumber(999.9), "1k");
  EXPECT_EQ(ShortNumber(std::numeric_limits<double>::infinity()), "n/a");
}

TEST(Plot, MarksStandWhereTheirValuesAre) {
  // The inner area of a 276 x 156 plot is 200 x 100, from (62, 12) on.
  Plot plot(276, 156, {"x", 0, 10, false}, {"y", 1, 100, true}, "d");
  plot.Point(5, 10, "c1", "half");
  plot.Point(5, 0, "c2", "no logarithm");
  plot.Point(std::numeric_limits<double>::quiet_NaN(), 10, "c3");
  plot.Line({{0, 1}, {10, 100}}, "c4", true);
  plot.Box(0, 1, 5, 10, "c5", "<");
  const std::string svg = plot.Svg();
  EXPECT_TRUE(IsBalanced(svg));
  EXPECT_THAT(svg, HasSubstr("cx=\"162.0\" cy=\"62.0\""));
  EXPECT_THAT(svg, Not(HasSubstr("c2")));
  EXPECT_THAT(svg, Not(HasSubstr("c3")));
  EXPECT_THAT(svg, HasSubstr("d=\"M62.0 112.0L262.0 12.0\""));
  EXPECT_THAT(svg, HasSubstr("x=\"62.0\" y=\"62.0\" width=\"100.0\" height=\"50.0\"><title>&lt;</title>"));
}

TEST(Plot, LabelsLieOnNoMarkAndOnNoText) {
  Plot plot(276, 156, {"x", 0, 10, false}, {"y", 0, 10, false}, "d");
  plot.Point(2, 2, "p", {}, 5);
  plot.Point(5, 5, "p", {}, 5);
  plot.Point(5.4, 5.7, "p", {}, 5);  // 8 pixels to the right, 7 up
  plot.Text(4.6, 5.6, "t", "t", "end");
  plot.Label(2, 2, "1", "a");
  plot.Label(5, 5, "2", "b");  // above it lie a mark, to the right, and the text, to the left
  const std::string svg = plot.Svg();
  EXPECT_THAT(svg, HasSubstr("class=\"a\" x=\"108.0\" y=\"86.0\" text-anchor=\"start\""));
  EXPECT_THAT(svg, HasSubstr("class=\"b\" x=\"168.0\" y=\"71.0\" text-anchor=\"start\""));
}

}  // namespace
}  // namespace heddle::html
