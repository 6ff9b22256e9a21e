#include "tools/compare/trace_sequence.h"

#include <fmt/format.h>

#include <cctype>

namespace heddle::compare {
namespace {

using Names = std::map<std::string, std::string>;

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

trace::Expr Renamed(trace::Expr expr, const Names& names) {
  expr.text = RenameInExpression(expr.text, names);
  return expr;
}

template <typename Exprs>
void RenameAll(Exprs* exprs, const Names& names) {
  for (trace::Expr& expr : *exprs) expr = Renamed(std::move(expr), names);
}

trace::Launch Renamed(trace::Launch launch, const Names& names, uint32_t first_buffer) {
  for (auto* shape : {&launch.grid, &launch.block, &launch.cluster}) RenameAll(shape, names);
  launch.dynamic_shared_bytes = Renamed(std::move(launch.dynamic_shared_bytes), names);
  for (trace::ParameterPatch& patch : launch.patches) {
    if (patch.buffer != trace::kNone) patch.buffer += first_buffer;
    patch.value = Renamed(std::move(patch.value), names);
    patch.real = RenameInExpression(patch.real, names);
  }
  return launch;
}

trace::TensorMap Renamed(trace::TensorMap map, const Names& names, uint32_t first_buffer) {
  if (map.buffer != trace::kNone) map.buffer += first_buffer;
  map.offset = Renamed(std::move(map.offset), names);
  for (auto* sizes : {&map.size, &map.stride_bytes, &map.box, &map.element_stride}) RenameAll(sizes, names);
  return map;
}

trace::Content Renamed(trace::Content content, const Names& names, uint32_t first_buffer) {
  content.buffer += first_buffer;
  content.rule.copy_buffer += first_buffer;
  content.offset_bytes = Renamed(std::move(content.offset_bytes), names);
  for (std::string* text : {&content.rule.a, &content.rule.b, &content.rule.period, &content.rule.repeat}) {
    *text = RenameInExpression(*text, names);
  }
  return content;
}

}  // namespace

std::string RenameInExpression(const std::string& text, const Names& names) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (!IsWord(text[i])) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsWord(text[end])) ++end;
    const std::string word = text.substr(i, end - i);  // a number begins with a digit, and no name does
    const auto found = names.find(word);
    out += found == names.end() ? word : found->second;
    i = end;
  }
  return out;
}

uint32_t TraceSequence::AddFunction(const trace::Trace& trace, uint32_t function) {
  const trace::Function& source = trace.functions[function];
  const trace::Module& module = trace.modules[source.module];
  const auto [found, is_new] =
      functions_.try_emplace({module.sha256, source.name}, static_cast<uint32_t>(sequence_.functions.size()));
  if (!is_new) return found->second;
  const auto [at, is_new_module] =
      modules_.try_emplace(module.sha256, static_cast<uint32_t>(sequence_.modules.size()));
  if (is_new_module) sequence_.modules.push_back(module);
  sequence_.functions.push_back(source);
  sequence_.functions.back().module = at->second;
  for (const trace::Sass& sass : trace.sass) {
    if (sass.function != function) continue;
    sequence_.sass.push_back(sass);
    sequence_.sass.back().function = found->second;
  }
  return found->second;
}

uint32_t TraceSequence::Add(const trace::Trace& trace, uint32_t launch, const trace::Symbols& defines) {
  const auto number = static_cast<uint32_t>(added_.size());
  const auto first_buffer = static_cast<uint32_t>(sequence_.buffers.size());
  Names names;
  for (const auto& [name, value] : trace.defines) names[name] = fmt::format("l{}_{}", number, name);
  for (const trace::Buffer& buffer : trace.buffers)
    names[buffer.name] = fmt::format("l{}_{}", number, buffer.name);
  for (const auto& [name, value] : trace.defines) {
    const auto given = defines.find(name);
    sequence_.defines.emplace_back(
        names[name], given == defines.end() ? Renamed(value, names) : trace::Expr(given->second));
  }
  for (trace::Buffer buffer : trace.buffers) {
    buffer.name = names[buffer.name];
    RenameAll(&buffer.shape, names);
    buffer.alignment = Renamed(std::move(buffer.alignment), names);
    buffer.address = 0;
    sequence_.buffers.push_back(std::move(buffer));
  }
  Added& added = added_.emplace_back();
  added.launch = Renamed(trace.launches[launch], names, first_buffer);
  added.launch.function = AddFunction(trace, trace.launches[launch].function);
  for (const trace::TensorMap& map : trace.tensor_maps) {
    if (map.launch == launch) added.tensor_maps.push_back(Renamed(map, names, first_buffer));
  }
  for (const trace::Content& content : trace.contents) {
    if (content.before_launch <= launch) added.contents.push_back(Renamed(content, names, first_buffer));
  }
  return number;
}

void TraceSequence::Append(uint32_t number, uint32_t stream, int64_t measured_start_ns,
                           int64_t measured_end_ns) {
  Added& added = added_[number];
  const auto index = static_cast<uint32_t>(sequence_.launches.size());
  trace::Launch& launch = sequence_.launches.emplace_back(added.launch);
  launch.stream = stream;
  launch.measured_start_ns = measured_start_ns;
  launch.measured_end_ns = measured_end_ns;
  for (trace::TensorMap map : added.tensor_maps) {
    map.launch = index;
    sequence_.tensor_maps.push_back(std::move(map));
  }
  for (trace::Content& content : added.contents) {
    content.before_launch = index;
    sequence_.contents.push_back(std::move(content));
  }
  added.contents.clear();
}

trace::Trace TraceSequence::Finish(std::string name, std::string doc) {
  sequence_.name = std::move(name);
  sequence_.doc = std::move(doc);
  return std::move(sequence_);
}

}  // namespace heddle::compare
