#include "tools/report/stall_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "tools/html/html.h"

namespace heddle::report {
namespace {

using stats::Stall;

enum Family : uint8_t { kIssued, kMemory, kShared, kMath, kFixed, kFetch, kBarrier, kNoWarp };
constexpr std::array<StallFamily, 8> kFamilies = {{{"issued", "c3"},
                                                   {"memory: L1, L2, DRAM", "c1"},
                                                   {"shared memory, queues", "c5"},
                                                   {"math pipes", "c2"},
                                                   {"fixed latency", "c6"},
                                                   {"instructions, constants", "c4"},
                                                   {"barriers", "c8"},
                                                   {"no warp", "c7"}}};

Family FamilyIndex(Stall stall) {
  switch (stall) {
    case Stall::k_selected:
      return kIssued;
    case Stall::k_long_scoreboard:
    case Stall::k_lg_throttle:
    case Stall::k_membar:
    case Stall::k_drain:
      return kMemory;
    case Stall::k_short_scoreboard:
    case Stall::k_mio_throttle:
      return kShared;
    case Stall::k_math_pipe_throttle:
    case Stall::k_gmma:
    case Stall::k_warpgroup_arrive:
      return kMath;
    case Stall::k_wait:
    case Stall::k_dispatch_stall:
      return kFixed;
    case Stall::k_no_instruction:
    case Stall::k_branch_resolving:
    case Stall::k_imc_miss:
      return kFetch;
    case Stall::k_barrier:
    case Stall::k_sleeping:
    case Stall::k_misc:
      return kBarrier;
    case Stall::k_no_warp:
      return kNoWarp;
  }
  return kBarrier;
}

}  // namespace

const char* const kStallStyle = R"css(
.bar { display: flex; height: .8rem; border-radius: 3px; overflow: hidden; min-width: 2px; }
.bar i { display: block; height: 100%; }
i.c1 { background: var(--c1); } i.c2 { background: var(--c2); } i.c3 { background: var(--c3); } i.c4 { background: var(--c4); }
i.c5 { background: var(--c5); } i.c6 { background: var(--c6); } i.c7 { background: var(--c7); opacity: .45; } i.c8 { background: var(--c8); }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .85rem; color: var(--muted); margin: .4rem 0; }
.key i { display: inline-block; width: .8rem; height: .8rem; border-radius: 3px; margin-right: .35rem; vertical-align: -1px; }
)css";

const StallFamily& FamilyOf(Stall stall) { return kFamilies[FamilyIndex(stall)]; }

std::string StallKey() {
  std::string text = "<div class=\"key\">";
  for (const StallFamily& family : kFamilies)
    text += fmt::format("<span><i class=\"{}\"></i>{}</span>", family.css_class, html::Escape(family.name));
  return text + "</div>\n";
}

std::string StallBar(const std::vector<analysis::StallShare>& stalls, double share_of_full) {
  constexpr double kLeastShare = 0.004;  // of the bar: thinner parts cannot be seen
  std::array<double, kFamilies.size()> shares{};
  std::array<std::string, kFamilies.size()> names;
  double all = 0;
  for (const analysis::StallShare& stall : stalls) {
    const Family family = FamilyIndex(stall.stall);
    shares[family] += stall.share;
    all += stall.share;
    if (stall.share >= kLeastShare)
      names[family] += fmt::format("{}{} {:.1f} %", names[family].empty() ? "" : ", ",
                                   analysis::Name(stall.stall), 100 * stall.share);
  }
  std::string text =
      fmt::format("<div class=\"bar\" style=\"width:{:.1f}%\">", 100 * std::clamp(share_of_full, 0.0, 1.0));
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    if (all <= 0 || shares[family] < kLeastShare * all) continue;
    text += fmt::format("<i class=\"{}\" style=\"width:{:.1f}%\" title=\"{}\"></i>",
                        kFamilies[family].css_class, 100 * shares[family] / all, names[family]);
  }
  return text + "</div>";
}

}  // namespace heddle::report
