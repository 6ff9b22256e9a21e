#include "frontend/emulator/call_expansion.h"

#include <map>
#include <optional>

namespace heddle::emulator {
namespace {

using isa::Op;

constexpr int kMostDepth = 6;
constexpr size_t kMostInstructions = size_t{1} << 18;

class Expander {
 public:
  Expander(const isa::KernelCode& code, const Successors& successors)
      : kernel_(code), successors_(successors) {
    out_.code = code;
    out_.successors = successors;
    for (uint32_t i = 0; i < code.instructions.size(); ++i) out_.original.push_back(i);
  }

  ExpandedCode Run() {
    const auto count = static_cast<uint32_t>(kernel_.instructions.size());
    for (uint32_t i = 0; i < count; ++i)
      if (IsDirectCall(i)) Redirect(i, i, i + 1, 0);
    // Nobody comes to the functions' own bodies any more.
    if (!shared_)
      for (uint32_t i = 0; i < count; ++i)
        if (kernel_.instructions[i].op == Op::kRET) out_.successors[i].clear();
    return std::move(out_);
  }

 private:
  // Compilers also jump by CALL, to code that never returns.
  bool Returns(uint32_t entry) {
    const auto [known, fresh] = returns_.try_emplace(entry, false);
    if (!fresh) return known->second;
    std::vector<bool> seen(kernel_.instructions.size(), false);
    std::vector<uint32_t> work{entry};
    while (!work.empty()) {
      const uint32_t i = work.back();
      work.pop_back();
      if (seen[i]) continue;
      seen[i] = true;
      const Op op = kernel_.instructions[i].op;
      if (op == Op::kRET) return returns_[entry] = true;
      if (op == Op::kCALL && i + 1 < seen.size())
        work.push_back(i + 1);
      else
        work.insert(work.end(), successors_[i].begin(), successors_[i].end());
    }
    return false;
  }

  bool IsDirectCall(uint32_t i) {
    if (kernel_.instructions[i].op != Op::kCALL) return false;
    const std::optional<uint32_t> target = TargetOf(kernel_, kernel_.instructions[i]);
    if (target && !Returns(*target)) return false;
    const bool direct = target && successors_[i].size() <= 2 && i + 1 < kernel_.instructions.size();
    shared_ |= !direct;
    return direct;
  }

  // Leads the call at `node`, a copy of instruction `i`, to a copy of what it calls that returns to `behind`.
  void Redirect(uint32_t node, uint32_t i, uint32_t behind, int depth) {
    const uint32_t target = *TargetOf(kernel_, kernel_.instructions[i]);
    if (depth == kMostDepth || out_.original.size() > kMostInstructions) {
      shared_ = true;
      return;
    }
    const uint32_t entry = Copy(target, behind, depth);
    for (uint32_t& next : out_.successors[node])
      if (next == target) next = entry;
  }

  uint32_t Copy(uint32_t entry, uint32_t behind, int depth) {
    std::map<uint32_t, uint32_t> copies;  // instruction -> its copy
    std::vector<uint32_t> work;
    const auto copy_of = [&](uint32_t i) {
      const auto [at, fresh] = copies.try_emplace(i, static_cast<uint32_t>(out_.original.size()));
      if (fresh) {
        out_.code.instructions.push_back(kernel_.instructions[i]);
        out_.successors.emplace_back();
        out_.original.push_back(i);
        work.push_back(i);
      }
      return at->second;
    };
    copy_of(entry);
    std::vector<uint32_t> calls;
    while (!work.empty()) {
      const uint32_t i = work.back();
      work.pop_back();
      const Op op = kernel_.instructions[i].op;
      std::vector<uint32_t> next;
      if (op == Op::kRET) {
        next.push_back(behind);
        if (kernel_.instructions[i].IsPredicated() && i + 1 < kernel_.instructions.size())
          next.push_back(copy_of(i + 1));
      } else if (op == Op::kCALL && IsDirectCall(i)) {
        calls.push_back(i);
        copy_of(i + 1);
        next = successors_[i];
        for (uint32_t& each : next)
          if (each == i + 1) each = copies.at(each);
      } else {
        for (const uint32_t each : successors_[i]) next.push_back(copy_of(each));
      }
      out_.successors[copies.at(i)] = std::move(next);
    }
    for (const uint32_t i : calls) Redirect(copies.at(i), i, copies.at(i + 1), depth + 1);
    return copies.at(entry);
  }

  const isa::KernelCode& kernel_;
  const Successors& successors_;
  ExpandedCode out_;
  std::map<uint32_t, bool> returns_;  // by entry
  bool shared_ = false;               // a function's own body is still called
};

}  // namespace

ExpandedCode ExpandCalls(const isa::KernelCode& code, const Successors& successors) {
  return Expander(code, successors).Run();
}

}  // namespace heddle::emulator
