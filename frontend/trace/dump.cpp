// A trace as text, and its digest, which is the text's.
#include <fmt/format.h>

#include "frontend/trace/blob.h"
#include "frontend/trace/htrace.h"
#include "frontend/trace/sass_codec.h"
#include "sim/base/digest.h"

namespace heddle::trace {
namespace {

// One line a value, strings quoted with escapes, so that no value can look like another line.
class Printer {
 public:
  std::string Take() { return std::move(text_); }

  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  static std::string Quote(std::string_view raw) {
    std::string out = "\"";
    for (const char c : raw) {
      if (c == '"' || c == '\\')
        out += {'\\', c};
      else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
        out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
      else
        out += c;
    }
    return out + '"';
  }

  static std::string Show(const Expr& expr) {
    return expr.text.empty() ? fmt::format("{}", expr.value) : Quote(expr.text);
  }
  template <typename Range>
  static std::string ShowAll(const Range& exprs) {
    std::string out = "[";
    for (const Expr& expr : exprs) out += (out.size() > 1 ? ", " : "") + Show(expr);
    return out + "]";
  }
  static std::string Hex(const std::vector<std::byte>& bytes) {
    std::string out;
    for (const std::byte b : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(b));
    return out;
  }

 private:
  std::string text_;
};

void PrintCode(const Trace& trace, Printer* out) {
  for (const Module& m : trace.modules)
    out->Line("module {} sm_{} {} bytes sha256 {}", Printer::Quote(m.name), m.sm_version, m.cubin.size(),
              m.sha256);
  for (const Function& f : trace.functions) {
    out->Line(
        "function {} module {} registers {} static_shared {} local {} barriers {} max_threads {} "
        "parameter_bytes {}",
        Printer::Quote(f.name), f.module, f.registers, f.static_shared_bytes, f.local_bytes, f.barriers,
        f.max_threads, f.parameter_bytes);
    for (const ParameterSlot& p : f.parameters)
      out->Line("  parameter {} offset {} size {}", p.ordinal, p.offset, p.size_bytes);
  }
  // What is decoded from a cubin follows from it; what was recorded is all there is.
  for (const Sass& s : trace.sass) {
    if (s.code.has_control_bits) continue;
    const std::string code = EncodeSass(s.code);
    out->Line("recorded_code function {} instructions {} {}", s.function, s.code.instructions.size(),
              Sha256Hex(std::as_bytes(std::span(code))));
  }
}

void PrintLaunches(const Trace& trace, Printer* out) {
  for (const Launch& l : trace.launches) {
    out->Line(
        "launch {} function {} stream {} grid {} block {} cluster {} dynamic_shared {} programmatic {} "
        "frozen_grid {} measured_ns {} {}",
        Printer::Quote(l.name), l.function, l.stream, Printer::ShowAll(l.grid), Printer::ShowAll(l.block),
        Printer::ShowAll(l.cluster), Printer::Show(l.dynamic_shared_bytes), l.programmatic, l.frozen_grid,
        l.measured_start_ns, l.measured_end_ns);
    out->Line("  parameters {}", Printer::Hex(l.parameters));
    for (const ParameterPatch& p : l.patches)
      out->Line("  patch offset {} type {} buffer {} value {} real {}", p.offset, Name(p.type),
                static_cast<int32_t>(p.buffer), Printer::Show(p.value), Printer::Quote(p.real));
  }
  for (const Edge& e : trace.edges) out->Line("edge {} {}", e.from, e.to);
}

void PrintMemory(const Trace& trace, Printer* out) {
  for (const Buffer& b : trace.buffers)
    out->Line("buffer {} {} {} alignment {} address {:#x}", Printer::Quote(b.name), Name(b.type),
              Printer::ShowAll(b.shape), Printer::Show(b.alignment), b.address);
  for (const Content& c : trace.contents) {
    const ContentRule& r = c.rule;
    out->Line(
        "content buffer {} offset {} before_launch {} rule {} {} seed {} a {} b {} period {} repeat {} bytes "
        "{} {}{}",
        c.buffer, Printer::Show(c.offset_bytes), c.before_launch, static_cast<int>(r.kind), Name(r.type),
        r.seed, Printer::Quote(r.a), Printer::Quote(r.b), Printer::Quote(r.period), Printer::Quote(r.repeat),
        r.bytes.size(), r.kind == RuleKind::kBytes ? Sha256Hex(r.bytes) : "",
        r.kind == RuleKind::kCopy ? fmt::format(" copy {} bytes of buffer {} from {}", r.copy_bytes,
                                                r.copy_buffer, r.copy_offset_bytes)
        : r.kind == RuleKind::kUnknown && r.copy_bytes != 0 ? fmt::format(" {} bytes", r.copy_bytes)
                                                            : "");
  }
  for (const TensorMap& t : trace.tensor_maps)
    out->Line(
        "tensor_map launch {} offset {} buffer {} offset {} {} size {} stride {} box {} element_stride {} "
        "swizzle {} interleave {} fill {} promotion {}",
        t.launch, t.parameter_offset, static_cast<int32_t>(t.buffer), Printer::Show(t.offset),
        Name(t.element), Printer::ShowAll(t.size), Printer::ShowAll(t.stride_bytes), Printer::ShowAll(t.box),
        Printer::ShowAll(t.element_stride), static_cast<int>(t.swizzle), static_cast<int>(t.interleave),
        static_cast<int>(t.fill), static_cast<int>(t.promotion));
}

void PrintMeasured(const Trace& trace, Printer* out) {
  for (const Counter& c : trace.counters)
    out->Line("counter launch {} {} {} {}", c.launch, Printer::Quote(c.name), c.value,
              Printer::Quote(c.unit));
  for (const Collective& c : trace.collectives)
    out->Line("collective launch {} {} bytes {} ranks {}", c.launch, Printer::Quote(c.kind), c.size_bytes,
              c.ranks);
  for (const WarpStreamBlob& w : trace.warp_streams)
    out->Line("warp_stream launch {} cta {} warp {} bytes {} {}", w.launch, w.cta, w.warp, w.bytes.size(),
              Sha256Hex(w.bytes));
}

}  // namespace

std::string DumpText(const Trace& trace) {
  Printer out;
  out.Line("trace {}", Printer::Quote(trace.name));
  out.Line("doc {}", Printer::Quote(trace.doc));
  for (const auto& [name, value] : trace.defines)
    out.Line("define {} = {}", Printer::Quote(name), Printer::Show(value));
  out.Line("device {} sm_{}", Printer::Quote(trace.device.name), trace.device.sm_version);
  for (const auto& [name, value] : trace.device.attributes)
    out.Line("  attribute {} = {}", Printer::Quote(name), value);
  PrintCode(trace, &out);
  PrintLaunches(trace, &out);
  PrintMemory(trace, &out);
  PrintMeasured(trace, &out);
  out.Line("check {} bytes sha256 {}", trace.check.size(), Sha256Hex(std::as_bytes(std::span(trace.check))));
  return out.Take();
}

std::string Digest(const Trace& trace) {
  const std::string text = DumpText(trace);
  return Sha256Hex(std::as_bytes(std::span(text)));
}

}  // namespace heddle::trace
