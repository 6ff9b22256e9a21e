#include "frontend/trace/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/trace/build_check.h"
#include "frontend/trace/check_operations.h"
#include "frontend/trace/launch.pb.h"
#include "frontend/trace/text_format.h"

namespace heddle::trace {
namespace {

struct Tolerance {
  double absolute;
  double relative;
};

// About two units in the last place of the type, and what a sum of a row of products loses.
Tolerance DefaultOf(DType type) {
  switch (type) {
    case DType::kF64:
      return {1e-12, 1e-12};
    case DType::kF32:
      return {1e-5, 1e-5};
    case DType::kTf32:
    case DType::kF16:
      return {2e-3, 2e-3};
    case DType::kBf16:
      return {1.6e-2, 1.6e-2};
    case DType::kE4m3:
      return {0.13, 0.13};
    case DType::kE5m2:
      return {0.26, 0.26};
    default:
      return {0, 0};
  }
}

class Checker {
 public:
  Checker(const Trace& trace, const ResolvedTrace& resolved, const ReadMemory& read)
      : trace_(trace), resolved_(resolved), read_(read) {
    for (const auto& [name, value] : resolved.defines) scope_.symbols[name] = value;
    for (const ResolvedBuffer& b : resolved.buffers) scope_.buffers[b.name] = {b.shape, SizeOf(b.type)};
    operands_.scope = &scope_;
  }

  Result<CheckReport> Run() {
    CheckReport report;
    if (trace_.check.empty()) {
      report.none = "the trace states no check";
      return report;
    }
    pb::Check check;
    if (!check.ParseFromString(trace_.check) || !UnnamedEnum(check).empty())
      return Error{ExitCode::kTrace, trace_.name, "its check cannot be read", "build the trace again"};
    report.none = check.none();
    if (!report.none.empty()) return report;
    HEDDLE_RETURN_IF_ERROR(Compute(check));
    if (!unknown_.empty()) {
      report.none = fmt::format(
          "the contents of '{}' before the first launch are not all known: there is nothing to compare with",
          unknown_);
      return report;
    }
    for (int i = 0; i < check.compare_size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(report.comparisons.emplace_back(),
                              Compare(check.compare(i), fmt::format("{}, compare {}", trace_.name, i)));
    }
    return report;
  }

 private:
  Status Compute(const pb::Check& check) {
    for (int i = 0; i < check.op_size(); ++i) {
      const pb::Operation& op = check.op(i);
      operands_.place = fmt::format("{}, op '{}'", trace_.name, op.out());
      for (const std::string& input : InputsOf(op)) HEDDLE_RETURN_IF_ERROR(LoadBuffer(input));
      HEDDLE_ASSIGN_OR_RETURN(std::vector<Tensor> results, Apply(op, operands_));
      if (op.round() != pb::DType::unspecified && SizeOf(static_cast<DType>(op.round())) != 0)
        for (double& v : results[0].data) v = Round(static_cast<DType>(op.round()), v);
      if (static_cast<size_t>(op.also_size()) >= results.size())
        return operands_.Bad(
            fmt::format("it has {} further results, {} are named", results.size() - 1, op.also_size()));
      for (int j = 0; j <= op.also_size(); ++j)
        operands_.tensors[j == 0 ? op.out() : op.also(j - 1)] = std::move(results[static_cast<size_t>(j)]);
    }
    return Ok();
  }

  // The buffer's contents before the first launch, as a tensor. Bytes that are not given, or come by a copy, are zeros here, and the
  // reference that is computed from them is none: `unknown_`.
  Status LoadBuffer(const std::string& name) {
    if (operands_.tensors.contains(name)) return Ok();
    const auto found = std::find_if(resolved_.buffers.begin(), resolved_.buffers.end(),
                                    [&](const ResolvedBuffer& b) { return b.name == name; });
    if (found == resolved_.buffers.end()) return Ok();  // the operation says what it misses
    std::vector<std::byte> bytes(found->size_bytes);
    std::vector<bool> known(found->size_bytes, false);
    for (const ResolvedContent& content : resolved_.contents) {
      if (content.buffer != found - resolved_.buffers.begin() || content.before_launch != 0) continue;
      const auto first = known.begin() + static_cast<std::ptrdiff_t>(content.offset_bytes);
      std::fill(first, first + static_cast<std::ptrdiff_t>(content.size_bytes), content.source != nullptr);
      if (content.source == nullptr) continue;
      content.source->Fill(0, std::span(bytes).subspan(content.offset_bytes, content.size_bytes));
    }
    if (std::find(known.begin(), known.end(), false) != known.end()) unknown_ = name;
    operands_.tensors[name] = FromBytes(found->type, found->shape, bytes);
    return Ok();
  }

  static Tensor FromBytes(DType type, const std::vector<uint64_t>& shape, std::span<const std::byte> bytes) {
    Tensor tensor = MakeTensor(shape);
    for (uint64_t i = 0; i < tensor.size(); ++i) tensor.data[i] = Load(type, bytes, i);
    return tensor;
  }

  Result<Comparison> Compare(const pb::Compare& compare, const std::string& place) {
    operands_.place = place;
    const auto found = std::find_if(resolved_.buffers.begin(), resolved_.buffers.end(),
                                    [&](const ResolvedBuffer& b) { return b.name == compare.buffer(); });
    if (found == resolved_.buffers.end())
      return operands_.Bad(fmt::format("there is no buffer '{}'", compare.buffer()));
    std::vector<std::byte> got(found->size_bytes);
    HEDDLE_RETURN_IF_ERROR(read_(found->address, got));
    Tensor want;
    if (compare.has_reference()) {
      HEDDLE_ASSIGN_OR_RETURN(const Tensor* reference, operands_.Get(compare.reference()));
      want = *reference;
    } else {
      const auto type = static_cast<DType>(compare.file_type());
      if (SizeOf(type) == 0 ||
          compare.data().size() != found->size_bytes / SizeOf(found->type) * SizeOf(type))
        return operands_.Bad("the stored reference has another size than the buffer");
      want = FromBytes(type, found->shape, std::as_bytes(std::span(compare.data())));
    }
    const uint64_t elements = found->size_bytes / SizeOf(found->type);
    if (want.size() != elements)
      return operands_.Bad(
          fmt::format("'{}' has {} elements, the reference {}", found->name, elements, want.size()));
    HEDDLE_ASSIGN_OR_RETURN(
        const int64_t rows,
        operands_.Integer(compare.rows(), static_cast<int64_t>(elements / found->shape.back())));
    if (rows < 1 || static_cast<uint64_t>(rows) > elements / found->shape.back())
      return operands_.Bad(fmt::format("{} rows of {}", rows, elements / found->shape.back()));
    const Tolerance usual = DefaultOf(found->type);
    Comparison result;
    result.buffer = found->name;
    result.absolute = compare.has_absolute() ? compare.absolute() : usual.absolute;
    result.relative = compare.has_relative() ? compare.relative() : usual.relative;
    CompareRows(*found, got, want, static_cast<uint64_t>(rows), compare.one_step_share(), &result);
    return result;
  }

  static void CompareRows(const ResolvedBuffer& buffer, std::span<const std::byte> got, const Tensor& want,
                          uint64_t rows, double one_step_share, Comparison* out) {
    const uint64_t width = buffer.shape.back();
    double worst = -1;
    uint64_t one_step = 0;
    double sum = 0;
    for (uint64_t row = 0; row < rows; ++row) {
      double square = 0;
      for (uint64_t i = row * width; i < (row + 1) * width; ++i)
        square += std::isfinite(want.data[i]) ? want.data[i] * want.data[i] : 0;
      const double rms = std::sqrt(square / static_cast<double>(width));
      for (uint64_t i = row * width; i < (row + 1) * width; ++i) {
        const double value = Load(buffer.type, got, i);
        const double expected = want.data[i];
        ++out->elements;
        const bool same = value == expected || (std::isnan(value) && std::isnan(expected));
        const double error = same ? 0 : std::fabs(value - expected);
        const double allowed = out->absolute * rms + out->relative * std::fabs(expected);
        // A comparison that is false for NaN must fail.
        bool inside = same || error <= allowed;
        if (!inside && one_step_share > 0 &&
            StepsBetween(buffer.type, Encode(buffer.type, value), Encode(buffer.type, expected)) <= 1) {
          ++one_step;
          inside = true;
        }
        if (!inside) ++out->outside;
        sum += std::isfinite(error) ? error : 0;
        if (std::isfinite(error)) out->max_error = std::max(out->max_error, error);
        const double badness = same ? 0 : std::isfinite(error) ? error / std::max(allowed, 1e-300) : HUGE_VAL;
        if (badness > worst) {
          worst = badness;
          out->worst_index = i;
          out->worst_got = value;
          out->worst_want = expected;
        }
      }
    }
    out->mean_error = out->elements == 0 ? 0 : sum / static_cast<double>(out->elements);
    out->passed = out->elements > 0 && out->outside == 0 &&
                  static_cast<double>(one_step) <= one_step_share * static_cast<double>(out->elements);
  }

  const Trace& trace_;
  const ResolvedTrace& resolved_;
  const ReadMemory& read_;
  Scope scope_;
  Operands operands_;
  std::string unknown_;  // an input whose contents are not known; empty: none
};

}  // namespace

bool CheckReport::passed() const {
  return !comparisons.empty() &&
         std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& c) { return c.passed; });
}

Result<CheckReport> RunCheck(const Trace& trace, const ResolvedTrace& resolved, const ReadMemory& read) {
  return Checker(trace, resolved, read).Run();
}

}  // namespace heddle::trace
