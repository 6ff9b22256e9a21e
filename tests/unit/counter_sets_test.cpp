// What `heddle capture --counters` asks for: sets by name, and, where CUPTI is installed, that chips have those metrics.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/capture/counter_sets.h"
#include "frontend/capture/inject/measure_kinds.h"
#include "frontend/capture/join_measured.h"
#include "frontend/capture/pc_counter.h"

namespace heddle::capture {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> Of(const std::string& words) {
  const Result<std::vector<std::string>> metrics = CountersOf(words);
  EXPECT_TRUE(metrics.ok()) << metrics.error().ToString();
  return metrics.ok() ? *metrics : std::vector<std::string>{};
}

TEST(CounterSets, SetsAndMetricsAreNamedOnce) {
  EXPECT_THAT(Of("tensor"),
              ElementsAre("sm__pipe_tensor_cycles_active.sum", "sm__inst_executed_pipe_tensor.sum"));
  EXPECT_THAT(Of("tensor,my__metric.sum,tensor"), SizeIs(3));
  EXPECT_THAT(Of("all"), Contains("dram__bytes_read.sum"));
  EXPECT_THAT(Of("all,memory"), SizeIs(Of("all").size()));
  for (const char* wrong : {"", "tensor,", "nothing", "TENSOR"}) {
    const auto metrics = CountersOf(wrong);
    ASSERT_FALSE(metrics.ok()) << wrong;
    EXPECT_EQ(metrics.error().code, ExitCode::kUsage);
    EXPECT_THAT(metrics.error().ToString(), HasSubstr("stalls"));
  }
}

TEST(PcCounters, NamesCarryTheirPlaceAndComeApart) {
  EXPECT_EQ(PcCounterName("a__b", 0x1f0), "a__b@0x1f0");
  const auto split = SplitPcCounter("a__b@0x1f0");
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->name, "a__b");
  EXPECT_EQ(split->pc, 0x1f0u);
  for (const char* whole : {"a__b", "a@0x", "@0x10", "a@0xz", "a@0x1 ", "a@0x11111111111111111"})
    EXPECT_FALSE(SplitPcCounter(whole).has_value()) << whole;
}

trace::Trace Launches(std::initializer_list<std::pair<int64_t, double>> grids) {
  trace::Trace trace;
  trace.modules.push_back({"m", "aa", {}, 80});
  trace.functions.emplace_back().name = "k";
  for (const auto& [grid, value] : grids) {
    trace.launches.emplace_back().grid[0] = trace::Expr(grid);
    if (value != 0)
      trace.counters.push_back({static_cast<uint32_t>(trace.launches.size() - 1), "c", value, ""});
  }
  return trace;
}

// The second run launched them in another order, one more of one kind, and left one unmeasured.
TEST(JoinMeasured, TheNthLaunchOfAKernelAndGridIsTheNthOneThere) {
  trace::Trace first = Launches({{1, 0}, {2, 0}, {1, 0}, {3, 0}});
  const trace::Trace second = Launches({{2, 20}, {1, 10}, {1, 11}, {1, 12}, {3, 0}});
  const JoinedMeasurements joined = JoinMeasured(second, &first);
  EXPECT_EQ(joined.joined, 3u);
  EXPECT_EQ(joined.strangers, 1u);
  EXPECT_EQ(joined.unmeasured, 1u);
  std::vector<std::pair<uint32_t, double>> found;
  for (const trace::Counter& counter : first.counters) found.emplace_back(counter.launch, counter.value);
  EXPECT_THAT(found, ElementsAre(std::pair(0u, 10.0), std::pair(1u, 20.0), std::pair(2u, 11.0)));
  trace::Trace other = Launches({{1, 0}});
  other.modules[0].sha256 = "bb";
  EXPECT_EQ(JoinMeasured(second, &other).joined, 0u);
}

TEST(JoinMeasured, EachProcessFindsTheOneThatLaunchedTheSame) {
  const trace::Trace a = Launches({{1, 0}, {2, 0}}), b = Launches({{7, 0}}), b_again = Launches({{7, 1}}),
                     stranger = Launches({{9, 1}});
  EXPECT_THAT(PartnersOf({&b_again, &stranger, &a}, {&a, &b}), ElementsAre(1u, SIZE_MAX, 0u));
}

// CUPTI's host side answers without a GPU.
TEST(CounterSets, ChipsHaveTheMetrics) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool kSanitized = true;
#elif defined(__has_feature)
  constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
  constexpr bool kSanitized = false;
#endif
  if (kSanitized) GTEST_SKIP() << "CUPTI loads a library with RTLD_DEEPBIND, which sanitizers refuse";
  void* library = nullptr;
  for (const char* path :
       {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13", "/usr/local/cuda/lib/libcupti.so.13"})
    if (library == nullptr) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << "there is no libcupti.so.13";
  Profiler profiler;
#define HEDDLE_PROFILER(name, parameters, last)                                     \
  profiler.name = reinterpret_cast<decltype(profiler.name)>(dlsym(library, #name)); \
  ASSERT_NE(profiler.name, nullptr) << #name;
#include "frontend/capture/inject/profiler.def"
#undef HEDDLE_PROFILER
  abi::HostChips chips{};
  ASSERT_EQ(Call_cuptiProfilerHostGetSupportedChips(profiler, &chips), 0u);
  for (const char* chip : {"GA100", "GH100", "GB100"}) {
    abi::HostInitialize host{};
    host.chip = chip;
    ASSERT_EQ(Call_cuptiProfilerHostInitialize(profiler, &host), 0u) << chip;
    for (const std::string& metric : Of("all")) {
      abi::HostMetricProperties properties{};
      properties.host = host.host;
      properties.metric = metric.c_str();
      const bool is_of_some =
          metric.find("gmma") != std::string::npos || metric.find("imc_miss") != std::string::npos;
      const uint32_t status = Call_cuptiProfilerHostGetMetricProperties(profiler, &properties);
      EXPECT_TRUE(status == 0 || is_of_some) << chip << ' ' << metric;
    }
    for (const std::string& metric : SassMetrics()) {
      abi::SassProperties properties{};
      properties.chip = chip;
      properties.metric = metric.c_str();
      EXPECT_EQ(Call_cuptiSassMetricsGetProperties(profiler, &properties), 0u) << chip << ' ' << metric;
      EXPECT_NE(properties.details.id, 0u);
    }
    abi::HostObject end{};
    end.host = host.host;
    EXPECT_EQ(Call_cuptiProfilerHostDeinitialize(profiler, &end), 0u);
  }
}

}  // namespace
}  // namespace heddle::capture
