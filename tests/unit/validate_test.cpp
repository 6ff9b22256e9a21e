// What `heddle validate` does without simulating: the suite's CSV, recipes and their expressions, errors in sum, the report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/config/describe.h"
#include "sim/config/load.h"
#include "tools/validate/ablate.h"
#include "tools/validate/evaluate.h"
#include "tools/validate/header_table.h"
#include "tools/validate/plan.h"
#include "tools/validate/recipe.h"
#include "tools/validate/report.h"
#include "tools/validate/statistics.h"
#include "tools/validate/suite.h"

namespace heddle::validate {
namespace {

using testing::HasSubstr;

const std::string kHeader = "id,category,gpu,op,dtype,shape,value_us,uncertainty,kernel,trust,source,note\n";

Row ParseRow(const std::string& line) {
  const Result<std::vector<Row>> rows = ParseSuite(kHeader + line, "s.csv");
  EXPECT_TRUE(rows.ok()) << rows.error().ToString();
  return rows.ok() ? rows->front() : Row{};
}

TEST(Suite, ReadsNumbersOfShapeAndNote) {
  const Row row = ParseRow(
      "7,membound,L4,add,fp32,rows=9;cols=681,102.04,0.03,k,A,s/"
      "x.csv,grid=19188x1x2;block=128x1;dram=2.5;torch 2.1\r\n");
  EXPECT_EQ(row.id, "7");
  EXPECT_EQ(row.line, 2u);
  EXPECT_DOUBLE_EQ(row.value, 102.04);
  EXPECT_DOUBLE_EQ(row.numbers.at("rows"), 9);
  EXPECT_DOUBLE_EQ(row.numbers.at("cols"), 681);
  EXPECT_DOUBLE_EQ(row.numbers.at("grid_x"), 19188);
  EXPECT_DOUBLE_EQ(row.numbers.at("grid_z"), 2);
  EXPECT_DOUBLE_EQ(row.numbers.at("block_y"), 1);
  EXPECT_DOUBLE_EQ(row.numbers.at("block_z"), 1);
  EXPECT_DOUBLE_EQ(row.numbers.at("dram"), 2.5);
}

TEST(Suite, ReadsQuotedFieldsWithJson) {
  const Row row = ParseRow(
      R"(1,m,g,"a ""b"", c",see cfg,"T=4;{""hidden"": 64, ""act"": ""silu"", ""T"": 5}",1,,k,B,s,unit=cycles at 1410.0 MHz)"
      "\n");
  EXPECT_EQ(row.op, R"(a "b", c)");
  EXPECT_DOUBLE_EQ(row.numbers.at("hidden"), 64);
  EXPECT_DOUBLE_EQ(row.numbers.at("T"), 4) << "what stands first wins";
  EXPECT_EQ(row.texts.at("act"), "silu");
  EXPECT_DOUBLE_EQ(row.numbers.at("MHz"), 1410);
}

TEST(Suite, SaysWhereItIsWrong) {
  const std::string good = "1,m,g,o,f,n=1,2,,k,A,s,\n";
  const std::pair<std::string, std::string> faults[] = {
      {"", "s.csv:1: has no column 'id'"},
      {"id,category\n", "s.csv:1: has no column 'gpu'"},
      {kHeader, "s.csv:1: holds no row"},
      {kHeader + good + "2,m,g\n", "s.csv:3: has 3 fields where the header has 12"},
      {kHeader + "1,m,g,o,f,n=1,zero,,k,A,s,\n", "s.csv:2: value_us 'zero' is not a number above 0"},
      {kHeader + "1,m,g,o,f,n=1,0,,k,A,s,\n", "s.csv:2: value_us '0'"},
      {kHeader + "1,m,g,o,f,n=1,nan,,k,A,s,\n", "s.csv:2: value_us 'nan'"},
      {kHeader + "1,m,g,o,f,n=1,2,-1,k,A,s,\n", "s.csv:2: uncertainty '-1'"},
      {kHeader + "1,,g,o,f,n=1,2,,k,A,s,\n", "s.csv:2: a row needs an id"},
      {kHeader + good + good, "s.csv:3: id '1' stands twice"},
      {kHeader + "1,m,g,o,f,\"n=1,2,,k,A,s,\n", "s.csv:2: a quoted field is not closed"},
      {kHeader + "1,m,g,o,f,\"n=1\"x,2,,k,A,s,\n", "s.csv:2: text follows the end of a quoted field"},
  };
  for (const auto& [text, message] : faults) {
    const Result<std::vector<Row>> rows = ParseSuite(text, "s.csv");
    ASSERT_FALSE(rows.ok()) << text;
    EXPECT_EQ(rows.error().code, ExitCode::kTrace);
    EXPECT_THAT(rows.error().ToString(), HasSubstr(message));
  }
}

// Every prefix of a text and every byte of it changed: rows or an error, never a crash.
TEST(Suite, SurvivesDamage) {
  const std::string text =
      kHeader +
      "1,m,g,o,f,\"T=4;{\"\"h\"\": 64}\",2,0.1,k,A,s,grid=1x2x3;unit=c at 14 MHz\n2,m,g,o,f,n=3,5,,k,A,s,\n";
  for (size_t i = 0; i <= text.size(); ++i) (void)ParseSuite(text.substr(0, i), "s.csv");
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'"', ',', '\n', '\0', '{', '=', 'x', '\xff'}) {
      std::string damaged = text;
      damaged[i] = c;
      (void)ParseSuite(damaged, "s.csv");
    }
  }
  EXPECT_TRUE(ParseSuite(text, "s.csv").ok());
}

const std::string kRecipe = R"({
  // comments are allowed
  "name": "r", "doc": "d", "kernel": "recreated",
  "match": {"category": "membound", "op": "add|mul", "kernel": "vectorized", "where": "rows * cols >= 100"},
  "traces": [{"sm": [80], "file": "t.htrace"}],
  "defines": {"n": "rows * cols"},
  "metrics": [{"name": "time", "kind": "microseconds"}]
})";

TEST(RecipeText, IsReadWithComments) {
  const Result<Recipe> recipe = ParseRecipe(kRecipe, "r.json");
  ASSERT_TRUE(recipe.ok()) << recipe.error().ToString();
  EXPECT_EQ(recipe->kernel, KernelKind::kRecreated);
  EXPECT_EQ(recipe->traces.front().sm, std::vector<uint32_t>{80});
  EXPECT_EQ(recipe->defines.at("n"), "rows * cols");
}

std::string Changed(const std::string& from, const std::string& to) {
  std::string text = kRecipe;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(RecipeText, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> faults[] = {
      {"{", "r.json:1: is not JSON"},
      {"[]", "r.json: is not an object"},
      {Changed("\"doc\"", "\"dok\""), "has no member 'dok'; did you mean \"doc\"?"},
      {Changed("recreated", "guessed"),
       "'kernel' is 'guessed', which is not one of exact, recreated, best_of, other"},
      {Changed("recreated", "other"), "another kernel than the one measured needs a note"},
      {Changed("add|mul", "add["), "is no regular expression"},
      {Changed("microseconds", "hours"), "r.json: metrics: 'kind' is 'hours'"},
      {Changed("\"kind\": \"microseconds\"", "\"kind\": \"bandwidth_gb_s\""),
       "'bytes' belongs to bandwidth_gb_s"},
      {Changed("\"category\": \"membound\", ", ""), "r.json: match: has no 'category'"},
      {Changed("[80]", "[-80]"), "'sm' holds something else"},
      {Changed("\"defines\"", "\"cache\": \"reuse\", \"defines\""),
       "'cache' is 'reuse', which is not one of cold, warm, flush"},
      {Changed("\"file\"", "\"launches\": [-1], \"file\""),
       "'launches' holds something else than numbers and expressions"},
  };
  for (const auto& [text, message] : faults) {
    const Result<Recipe> recipe = ParseRecipe(text, "r.json");
    ASSERT_FALSE(recipe.ok()) << text;
    EXPECT_EQ(recipe.error().code, ExitCode::kConfiguration);
    EXPECT_THAT(recipe.error().ToString(), HasSubstr(message));
  }
}

TEST(RecipeMatch, AsksEveryField) {
  const Recipe recipe = *ParseRecipe(kRecipe, "r.json");
  const auto matches = [&](const std::string& line) {
    const Row row = ParseRow(line);
    return Matches(recipe.match, row, RowSymbols(row));
  };
  EXPECT_TRUE(matches("1,membound,g,add,f,rows=10;cols=10,2,,at::vectorized<4>,A,s,\n"));
  EXPECT_FALSE(matches("1,membound_counters,g,add,f,rows=10;cols=10,2,,at::vectorized<4>,A,s,\n"))
      << "whole field";
  EXPECT_FALSE(matches("1,membound,g,div,f,rows=10;cols=10,2,,at::vectorized<4>,A,s,\n"));
  EXPECT_FALSE(matches("1,membound,g,add,f,rows=10;cols=10,2,,unrolled,A,s,\n"));
  EXPECT_FALSE(matches("1,membound,g,add,f,rows=9;cols=10,2,,at::vectorized<4>,A,s,\n")) << "where";
  EXPECT_FALSE(matches("1,membound,g,add,f,n=1000,2,,at::vectorized<4>,A,s,\n"))
      << "where names what the row lacks";
}

TEST(RecipeExpressions, SeeNumbersRoundedAndInThousandths) {
  const Row row = ParseRow("1,m,g,o,f,footprint_kB=3.6;n=5,2,,k,A,s,\n");
  const trace::Symbols symbols = RowSymbols(row);
  EXPECT_EQ(*Evaluate("footprint_kB", symbols, ""), 4);
  EXPECT_EQ(*Evaluate("footprint_kB_milli + n", symbols, ""), 3605);
  EXPECT_FALSE(Evaluate("m", symbols, "").ok());
}

// |errors| 10, 20, 30, 40, 50 percent, two of them negative.
TEST(Statistics, ByHand) {
  const std::vector<Pair> pairs = {{100, 110}, {100, 80}, {100, 130}, {100, 60}, {100, 150}};
  const Summary summary = Summarise(pairs);
  EXPECT_EQ(summary.count, 5u);
  EXPECT_NEAR(summary.median_abs_error_percent, 30, 1e-9);
  EXPECT_NEAR(summary.p90_abs_error_percent.value(), 46, 1e-9);  // rank 3.6 of 0..4
  EXPECT_NEAR(summary.mape_percent, 30, 1e-9);
  EXPECT_NEAR(summary.mean_error_percent, 6, 1e-9);  // (10 - 20 + 30 - 40 + 50) / 5
  EXPECT_FALSE(summary.correlation.has_value()) << "one side is constant";
  EXPECT_FALSE(Summarise({{1, 2}, {10, 30}}).correlation.has_value()) << "any two points lie on a line";
  // Whose mean is not exactly themselves.
  EXPECT_FALSE(Summarise({{7, 1}, {7, 2}, {7, 4}}).correlation.has_value());
  EXPECT_NEAR(Summarise({{1, 2}, {10, 20}, {100, 200}}).correlation.value(), 1, 1e-9);
  EXPECT_NEAR(Summarise({{1, 400}, {10, 40}, {100, 4}}).correlation.value(), -1, 1e-9);
  EXPECT_FALSE(Summarise({{1, 2}, {10, 30}}).p90_abs_error_percent.has_value()) << "of two it is the larger";
  EXPECT_NEAR(Summarise({{1, 2}, {10, 30}, {10, 40}}).p90_abs_error_percent.value(), 280, 1e-9);
  EXPECT_EQ(Summarise({}).count, 0u);
}

// Three rows of two GPUs: one by the kernel, one by another kernel, one without a machine description.
class ReportForm : public testing::Test {
 protected:
  void SetUp() override {
    recipes_.list = {*ParseRecipe(kRecipe, "r.json"),
                     *ParseRecipe(Changed("recreated", "other\", \"note\": \"a tile"), "o.json")};
    recipes_.machines = {{"G1", "a"}, {"G2", "b"}};
    rows_ = *ParseSuite(kHeader +
                            "1,membound,G1,add,f,rows=10;cols=10,100,,k,A,s,\n"
                            "2,membound,G1,mul,f,rows=10;cols=10,100,,k,A,s,\n"
                            "3,membound,G3,add,f,rows=10;cols=10,100,,k,A,s,\n",
                        "s.csv");
    plan_.simulations.resize(2);
    for (size_t i = 0; i < 3; ++i) {
      PlannedRow planned;
      planned.row = &rows_[i];
      if (i == 2)
        planned.skipped = "no machine description of G3";
      else
        planned.recipe = &recipes_.list[i], planned.candidates = {{"t.htrace", {i}, {}}};
      plan_.rows.push_back(planned);
    }
    measured_.resize(2);
    measured_[0].microseconds = 110;
    measured_[1].microseconds = 50;
  }

  Recipes recipes_;
  std::vector<Row> rows_;
  Plan plan_;
  std::vector<Measured> measured_;
};

TEST_F(ReportForm, JsonKeepsEveryRow) {
  const nlohmann::json json = nlohmann::json::parse(ReportJson(MakeReport(plan_, measured_, recipes_)));
  ASSERT_EQ(json["categories"].size(), 3u);  // all, G1, G3
  const auto& all = json["categories"][0];
  EXPECT_EQ(all["category"], "membound");
  EXPECT_EQ(all["gpu"], "all");
  EXPECT_EQ(all["rows"], 1);
  EXPECT_EQ(all["skipped"], 1);
  EXPECT_NEAR(all["median_abs_error_percent"].get<double>(), 10, 1e-9);
  EXPECT_TRUE(all["p90_abs_error_percent"].is_null()) << "of one row";
  EXPECT_TRUE(all["correlation"].is_null());
  EXPECT_NEAR(all["mape_percent"].get<double>(), 10, 1e-9);
  EXPECT_EQ(json["categories"][2]["gpu"], "G3");
  EXPECT_TRUE(json["categories"][2]["median_abs_error_percent"].is_null());
  EXPECT_EQ(json["other_kernels"][0]["rows"], 1) << "apart";
  EXPECT_NEAR(json["other_kernels"][0]["mape_percent"].get<double>(), 50, 1e-9);
  EXPECT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][1]["note"], "a tile");
  EXPECT_EQ(json["skipped"][0]["reason"], "no machine description of G3");
}

TEST_F(ReportForm, TextShowsNoNumberThatOneRowCannotHave) {
  EXPECT_THAT(ReportText(MakeReport(plan_, measured_, recipes_)),
              testing::ContainsRegex("all +1 +1 +10\\.0% +- +10\\.0% +\\+10\\.0% +-\n"));
}

TEST_F(ReportForm, ListCountsRowsWithAndWithoutRecipe) {
  const nlohmann::json json = nlohmann::json::parse(PlanJson(plan_));
  EXPECT_EQ(json["categories"][0]["gpu"], "G1");
  EXPECT_EQ(json["categories"][2]["gpu"], "all");
  EXPECT_EQ(json["categories"][2]["rows"], 3);
  EXPECT_EQ(json["categories"][2]["planned"], 2);
  EXPECT_EQ(json["categories"][2]["skipped"], 1);
  EXPECT_EQ(json["rows"][0]["traces"][0], "t.htrace");
  EXPECT_EQ(json["rows"][2]["skipped"], "no machine description of G3");
  const std::string text = PlanText(plan_);
  EXPECT_THAT(text, HasSubstr("skipped     1: no machine description of G3"));
  EXPECT_THAT(text, HasSubstr("recipe      1: " + recipes_.list[0].name));
}

TEST_F(ReportForm, FastestTraceCounts) {
  plan_.rows[0].candidates = {{"slow.htrace", {0}, {}}, {"fast.htrace", {1}, {}}};
  const Report report = MakeReport(plan_, measured_, recipes_);
  EXPECT_EQ(report.rows[0].trace_file, "fast.htrace");
  EXPECT_DOUBLE_EQ(report.rows[0].metrics[0].pair.simulated, 50);
}

TEST_F(ReportForm, PlacementsSpread) {
  plan_.rows[0].candidates = {{"t.htrace", {0, 1}, {}}};
  const MetricResult metric = MakeReport(plan_, measured_, recipes_).rows[0].metrics[0];
  EXPECT_DOUBLE_EQ(metric.pair.simulated, 110) << "the first one counts";
  EXPECT_DOUBLE_EQ(metric.least, 50);
  EXPECT_DOUBLE_EQ(metric.most, 110);
}

TEST_F(ReportForm, WrongWorkIsSkippedWithItsNumber) {
  recipes_.list[0].work = Work{"inst_FFMA", "100", "120"};
  measured_[0].counters["inst_FFMA"] = 99;
  plan_.rows[0].recipe = &recipes_.list[0];
  EXPECT_EQ(MakeReport(plan_, measured_, recipes_).rows[0].skipped,
            "wrong work: inst_FFMA is 99, not from 100 to 120");
  measured_[0].counters["inst_FFMA"] = 100;
  EXPECT_EQ(MakeReport(plan_, measured_, recipes_).rows[0].skipped, "");
}

TEST_F(ReportForm, HarnessAddsItsTime) {
  recipes_.harnesses["h"].overhead_us = {{"", 5}, {"G1", 7}};
  recipes_.list[0].harness = "h";
  EXPECT_DOUBLE_EQ(MakeReport(plan_, measured_, recipes_).rows[0].metrics[0].pair.simulated, 117);
}

TEST(Harnesses, ValuesAreOfTheGpuOrOfAll) {
  const std::map<std::string, bool, std::less<>> in_graph = {{"", true}, {"G1", false}};
  EXPECT_FALSE(ForGpu(in_graph, "G1", true));
  EXPECT_TRUE(ForGpu(in_graph, "G2", false));
  EXPECT_TRUE(ForGpu<bool>({{"G1", false}}, "G2", true));
}

// "a" has a simulated row and "b" none at all; of a machine whose rows were left out nothing new is known.
TEST_F(ReportForm, HeadersAreWrittenOfWhatWasRun) {
  const Report report = MakeReport(plan_, measured_, recipes_);
  Row row;
  row.gpu = "G9";
  recipes_.machines["G9"] = "c";
  EXPECT_TRUE(WritesHeader(report, recipes_, {row}, "a"));
  EXPECT_TRUE(WritesHeader(report, recipes_, {row}, "b"));
  EXPECT_FALSE(WritesHeader(report, recipes_, {row}, "c"));
}

TEST_F(ReportForm, TableStandsAtTheHeadOnce) {
  const Report report = MakeReport(plan_, measured_, recipes_);
  const std::string table = HeaderTable(report, recipes_, "a");
  EXPECT_THAT(table, HasSubstr("membound             G1                       1     10.0        -     10.0"));
  EXPECT_THAT(HeaderTable(report, recipes_, "b"), HasSubstr("no rows here: held out"));
  const std::string text = "# A machine.\n#\n# Sources.\n\nname: \"a\"\n";
  const std::string once = WithTable(text, table);
  EXPECT_EQ(once, "# A machine.\n#\n# Sources.\n#\n" + table + "\nname: \"a\"\n");
  EXPECT_EQ(WithTable(once, table), once);
  const std::string other = HeaderTable(report, recipes_, "b");
  EXPECT_EQ(WithTable(once, other), WithTable(text, other));
}

// An ablation that no machine takes would be a row of dashes; one that changes nothing would be decoration.
TEST(Ablation, EachMechanismIsOneOfAMachine) {
  for (const Mechanism& mechanism : Mechanisms()) {
    size_t taken = 0;
    for (const char* name : {"a100_sxm4_80gb", "h100_sxm5"}) {
      const auto without = config::LoadGpu(name, mechanism.overrides);
      const auto with = config::LoadGpu(name);
      ASSERT_TRUE(with.ok());
      if (!without.ok()) continue;
      ++taken;
      EXPECT_FALSE(config::Compare(*with, *without).empty()) << mechanism.name << " on " << name;
    }
    EXPECT_GT(taken, 0u) << mechanism.name;
  }
}

TEST(Ablation, ShowsNoNumberThatOneRowCannotHave) {
  Ablated one;
  one.mechanism = "mechanism";
  one.category = "membound";
  one.base = Summarise({{100, 110}});
  one.without = Summarise({{100, 120}});
  EXPECT_THAT(AblationText({one}), testing::ContainsRegex("membound +20\\.0 +- +20\\.0"));
  EXPECT_TRUE(nlohmann::json::parse(AblationJson({one}))["ablation"][0]["p90_abs_error_percent"].is_null());
}

// Which launches of a trace a row takes follows from its numbers; a negative one is left out, one that the trace lacks is a reason.
TEST(PlanOfARow, LaunchesAreExpressions) {
  const auto plan_of = [](const std::string& launches, const std::string& shape) {
    Recipe recipe = *ParseRecipe(Changed("t.htrace\"", "traces/rms_norm.sm_80.htrace\", \"launches\": " + launches), "r.json");
    Recipes recipes{HEDDLE_SOURCE_DIR, {recipe}, {}, {{"A100-SXM4-80GB", "a100_sxm4_80gb"}}};
    const std::vector<Row> rows = {ParseRow("1,membound,A100-SXM4-80GB,add,f," + shape + ",2,,vectorized,A,s,\n")};
    const Result<Plan> plan = MakePlan(rows, recipes, {});
    EXPECT_TRUE(plan.ok()) << plan.error().ToString();
    return plan->simulations.empty() ? std::pair(std::vector<uint32_t>{}, plan->rows.front().skipped)
                                     : std::pair(plan->simulations.front().launches, std::string());
  };
  using Launches = std::vector<uint32_t>;
  const std::string some = R"x(["select(rows > 20, 0, -1)", 0])x";
  EXPECT_EQ(plan_of(some, "rows=30;cols=9").first, (Launches{0, 0}));
  EXPECT_EQ(plan_of(some, "rows=20;cols=9").first, (Launches{0}));
  EXPECT_THAT(plan_of(R"(["rows"])", "rows=20;cols=9").second, HasSubstr("launches: 'rows' is 20, the trace has 1"));
  EXPECT_THAT(plan_of(R"(["0 - rows"])", "rows=20;cols=9").second, HasSubstr("launches: each is left out"));
  EXPECT_THAT(plan_of(R"(["tiles"])", "rows=20;cols=9").second, HasSubstr("'tiles' is not defined"));
}

TEST(RecipesOfTheSources, AreReadable) {
  const Result<Recipes> recipes = ReadRecipes(HEDDLE_SOURCE_DIR "/kernels/recipes");
  ASSERT_TRUE(recipes.ok()) << recipes.error().ToString();
  EXPECT_FALSE(recipes->list.empty());
  EXPECT_FALSE(ReadRecipes("/nonexistent").ok());
}

}  // namespace
}  // namespace heddle::validate
