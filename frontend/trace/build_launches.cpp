#include "frontend/trace/build_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/base/suggest.h"

namespace heddle::trace {
namespace {

constexpr int64_t kMaxRepeat = 1'000'000;

Error Bad(std::string place, std::string message, std::string next_step) {
  return Error{ExitCode::kTrace, std::move(place), std::move(message), std::move(next_step)};
}

std::string ListNames(const ModuleContents& contents) {
  std::string list;
  for (const ModuleFunction& f : contents.functions) list += (list.empty() ? "" : ", ") + f.function.name;
  constexpr size_t kMost = 400;
  return list.size() > kMost ? list.substr(0, kMost) + ", ..." : list;
}

std::array<Expr, 3> Literal(const Dim3& dim) {
  return {Expr{int64_t{dim.x}}, Expr{int64_t{dim.y}}, Expr{int64_t{dim.z}}};
}

// The integer type of a size, for parameters; a float type where `real`.
DType TypeOfSize(uint32_t size_bytes, bool real) {
  switch (size_bytes) {
    case 1:
      return real ? DType::kUnspecified : DType::kU8;
    case 2:
      return real ? DType::kUnspecified : DType::kU16;
    case 4:
      return real ? DType::kF32 : DType::kU32;
    case 8:
      return real ? DType::kF64 : DType::kU64;
    default:
      return DType::kUnspecified;
  }
}

}  // namespace

Result<uint32_t> LaunchBuilder::ChooseModule(const pb::Launch& launch, const Locator& at) const {
  if (launch.module().empty()) {
    if (modules_.size() == 1) return 0u;
    return Bad(at.Place("module"),
               fmt::format("which of the {} modules holds the kernel is not stated", modules_.size()),
               "add `module`");
  }
  std::vector<std::string> names;
  for (uint32_t i = 0; i < modules_.size(); ++i) {
    if (modules_[i].module.name == launch.module()) return i;
    names.push_back(modules_[i].module.name);
  }
  const std::string near = Suggest(launch.module(), names);
  return Bad(at.Place("module"), fmt::format("there is no module '{}'", launch.module()),
             near.empty() ? fmt::format("there are: {}", fmt::join(names, ", "))
                          : fmt::format("did you mean '{}'?", near));
}

Result<LaunchBuilder::Choice> LaunchBuilder::ChooseFunction(const pb::Launch& launch,
                                                            const Locator& at) const {
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t module, ChooseModule(launch, at));
  const LoadedModule& loaded = modules_[module];
  const std::string kernel =
      launch.kernel().empty() && loaded.triton ? loaded.triton->kernel : launch.kernel();
  std::vector<const ModuleFunction*> found;
  for (const ModuleFunction& f : loaded.contents.functions) {
    if (f.function.name == kernel) return Choice{module, &f};
    if (f.function.name.find(kernel) != std::string::npos) found.push_back(&f);
  }
  if (found.size() == 1) return Choice{module, found[0]};
  const std::string place = at.Place("kernel");
  if (kernel.empty())
    return Bad(place, fmt::format("the module has {} kernels", found.size()),
               fmt::format("name one with `kernel`: {}", ListNames(loaded.contents)));
  if (found.empty())
    return Bad(place, fmt::format("the module has no kernel '{}'", kernel),
               fmt::format("it has: {}", ListNames(loaded.contents)));
  return Bad(place, fmt::format("'{}' is part of {} kernels' names", kernel, found.size()),
             "give more of the name");
}

uint32_t LaunchBuilder::FunctionIndex(const Choice& choice) {
  for (uint32_t i = 0; i < trace_->functions.size(); ++i)
    if (trace_->functions[i].module == choice.module &&
        trace_->functions[i].name == choice.function->function.name)
      return i;
  Function& function = trace_->functions.emplace_back(choice.function->function);
  function.module = choice.module;
  return static_cast<uint32_t>(trace_->functions.size() - 1);
}

Status LaunchBuilder::SetExtents(const pb::Launch& launch, const Locator& at, const Choice& choice,
                                 Launch* out) const {
  const auto read = [&](const auto& texts, std::string_view field, std::array<Expr, 3>* extents) -> Status {
    if (texts.size() > 3)
      return Bad(at.Place(field, 3), fmt::format("{} has {} dimensions", field, texts.size()),
                 "there are at most 3");
    for (int i = 0; i < texts.size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN((*extents)[static_cast<size_t>(i)],
                              MakeExpr(texts.Get(i), scope_, at.Place(field, i)));
    }
    return Ok();
  };
  const std::optional<TritonLaunch>& triton = modules_[choice.module].triton;
  if (choice.function->required_block) out->block = Literal(*choice.function->required_block);
  if (choice.function->cluster) out->cluster = Literal(*choice.function->cluster);
  if (triton) {
    out->block = Literal({triton->threads, 1, 1});
    out->cluster = Literal(triton->cluster);
    out->dynamic_shared_bytes = Expr{int64_t{triton->shared_bytes}};
  }
  if (launch.grid_size() == 0)
    return Bad(at.Place("grid"), "the grid is not stated", "add `grid: [\"ceil_div(n, 128)\"]`");
  if (launch.block_size() == 0 && !choice.function->required_block && !triton)
    return Bad(at.Place("block"), "the block is not stated, and the cubin requires none",
               "add `block: [\"128\"]`");
  HEDDLE_RETURN_IF_ERROR(read(launch.grid(), "grid", &out->grid));
  HEDDLE_RETURN_IF_ERROR(read(launch.block(), "block", &out->block));
  HEDDLE_RETURN_IF_ERROR(read(launch.cluster(), "cluster", &out->cluster));
  if (!launch.dynamic_shared_bytes().empty()) {
    HEDDLE_ASSIGN_OR_RETURN(out->dynamic_shared_bytes, MakeExpr(launch.dynamic_shared_bytes(), scope_,
                                                                at.Place("dynamic_shared_bytes")));
  }
  return Ok();
}

Result<uint32_t> LaunchBuilder::FindBuffer(const std::string& name, const std::string& place) const {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < trace_->buffers.size(); ++i) {
    if (trace_->buffers[i].name == name) return i;
    names.push_back(trace_->buffers[i].name);
  }
  const std::string near = Suggest(name, names);
  return Bad(place, fmt::format("there is no buffer '{}'", name),
             near.empty() ? "declare it with `buffer`" : fmt::format("did you mean '{}'?", near));
}

Status LaunchBuilder::SetStruct(const pb::Parameter& parameter, const Locator& at, uint32_t offset,
                                uint32_t size_bytes, Launch* out) {
  const Locator fields = at.Sub("struct", 0, parameter.struct_());
  for (int i = 0; i < parameter.struct_().field_size(); ++i) {
    const pb::Parameter& field = parameter.struct_().field(i);
    const Locator sub = fields.Sub("field", i, field);
    if (field.at().empty()) return Bad(sub.Place("at"), "the field has no offset", "add `at: \"16\"`");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t inner, EvaluateInteger(field.at(), scope_, sub.Place("at")));
    uint32_t size = SizeOf(static_cast<DType>(field.type()));
    if (size == 0)
      size = field.has_buffer() ? 8 : field.has_raw() ? static_cast<uint32_t>(field.raw().size()) : 4;
    if (field.has_tensor_map()) size = isa::kTensorMapBytes;
    if (field.has_struct_())
      size = inner >= 0 && inner < size_bytes ? size_bytes - static_cast<uint32_t>(inner) : 0;
    if (inner < 0 || inner + size > size_bytes)
      return Bad(sub.Place("at"),
                 fmt::format("bytes {} to {} lie outside the {} bytes of the struct", inner, inner + size,
                             size_bytes),
                 "correct the offset");
    HEDDLE_RETURN_IF_ERROR(SetValue(field, sub, offset + static_cast<uint32_t>(inner), size, out));
  }
  return Ok();
}

Status LaunchBuilder::SetValue(const pb::Parameter& parameter, const Locator& at, uint32_t offset,
                               uint32_t size_bytes, Launch* out) {
  ParameterPatch patch;
  patch.offset = offset;
  patch.type = static_cast<DType>(parameter.type());
  const auto check_type = [&](std::string_view field) -> Status {
    if (SizeOf(patch.type) == size_bytes) return Ok();
    return Bad(at.Place(field),
               fmt::format("the parameter has {} bytes, {} {}", size_bytes, Name(patch.type),
                           SizeOf(patch.type) == 0 ? "must be stated: add `type`" : "another size"),
               "the cubin says how large each parameter is: `heddle trace info` lists them");
  };
  switch (parameter.value_case()) {
    case pb::Parameter::kRaw:
      if (parameter.raw().size() != size_bytes)
        return Bad(
            at.Place("raw"),
            fmt::format("{} bytes are given, the parameter has {}", parameter.raw().size(), size_bytes),
            "give as many bytes as the parameter has");
      std::memcpy(out->parameters.data() + offset, parameter.raw().data(), size_bytes);
      return Ok();
    case pb::Parameter::kStruct:
      return SetStruct(parameter, at, offset, size_bytes, out);
    case pb::Parameter::kTensorMap:
      return SetTensorMap(parameter.tensor_map(), at.Sub("tensor_map", 0, parameter.tensor_map()), offset,
                          size_bytes);
    case pb::Parameter::kInt: {
      if (patch.type == DType::kUnspecified) patch.type = TypeOfSize(size_bytes, false);
      HEDDLE_RETURN_IF_ERROR(check_type("int"));
      if (IsFloat(patch.type)) return Bad(at.Place("type"), "an `int` of a float type", "use `real`");
      HEDDLE_ASSIGN_OR_RETURN(patch.value, MakeExpr(parameter.int_(), scope_, at.Place("int")));
      break;
    }
    case pb::Parameter::kReal: {
      if (patch.type == DType::kUnspecified) patch.type = TypeOfSize(size_bytes, true);
      HEDDLE_RETURN_IF_ERROR(check_type("real"));
      const Result<double> value = EvaluateReal(parameter.real(), scope_, at.Place("real"));
      if (!value.ok()) return value.error();
      patch.real = parameter.real();
      break;
    }
    case pb::Parameter::kBuffer: {
      HEDDLE_ASSIGN_OR_RETURN(patch.buffer, FindBuffer(parameter.buffer(), at.Place("buffer")));
      patch.type = DType::kU64;
      HEDDLE_RETURN_IF_ERROR(check_type("buffer"));
      if (!parameter.offset().empty()) {
        HEDDLE_ASSIGN_OR_RETURN(patch.value, MakeExpr(parameter.offset(), scope_, at.Place("offset")));
      }
      break;
    }
    case pb::Parameter::VALUE_NOT_SET:
      return Bad(at.Place("value"), fmt::format("the parameter '{}' has no value", parameter.name()),
                 "add `int`, `real`, `buffer`, `raw`, `struct` or `tensor_map`");
  }
  std::erase_if(out->patches, [&](const ParameterPatch& p) { return p.offset == patch.offset; });
  out->patches.push_back(std::move(patch));
  return Ok();
}

Result<uint32_t> LaunchBuilder::FindLaunch(const std::string& label, const std::string& place) const {
  const auto found = labels_.find(label);
  if (found != labels_.end()) return found->second;
  return Bad(place, fmt::format("there is no earlier launch '{}'", label),
             "give the `name` of a launch that stands in front of this one");
}

Status LaunchBuilder::CopyParameters(const pb::Launch& launch, const Locator& at, const Choice& choice,
                                     Launch* out) {
  const std::string place = at.Place("parameters_of");
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t index, FindLaunch(launch.parameters_of(), place));
  const Launch& source = trace_->launches[index];
  const uint32_t size_bytes = choice.function->function.parameter_bytes;
  if (source.parameters.size() != size_bytes)
    return Bad(place, fmt::format("its parameters have {} bytes, this kernel's {}", source.parameters.size(), size_bytes),
               "only kernels that take the same parameters can share them: give `parameter`");
  out->parameters = source.parameters;
  out->patches = source.patches;
  for (const TensorMap& map : trace_->tensor_maps)
    if (map.launch == index) maps_.push_back(map);
  return Ok();
}

Status LaunchBuilder::SetParameters(const pb::Launch& launch, const Locator& at, const Choice& choice,
                                    Launch* out) {
  const Function& function = choice.function->function;
  out->parameters.resize(function.parameter_bytes);
  const bool copied = !launch.parameters_of().empty();
  if (copied) HEDDLE_RETURN_IF_ERROR(CopyParameters(launch, at, choice, out));
  std::vector<bool> given(function.parameters.size());
  uint32_t next = 0;
  for (int i = 0; i < launch.parameter_size(); ++i) {
    const pb::Parameter& parameter = launch.parameter(i);
    const Locator sub = at.Sub("parameter", i, parameter);
    const uint32_t ordinal = parameter.has_ordinal() ? parameter.ordinal() : next;
    next = ordinal + 1;
    if (ordinal >= given.size())
      return Bad(at.Place("parameter", i),
                 fmt::format("parameter {} of a kernel that takes {}", ordinal, given.size()),
                 "`heddle sass` and the kernel's source say what it takes");
    if (given[ordinal])
      return Bad(at.Place("parameter", i), fmt::format("parameter {} is given twice", ordinal), "remove one");
    given[ordinal] = true;
    const ParameterSlot& slot = function.parameters[ordinal];
    HEDDLE_RETURN_IF_ERROR(SetValue(parameter, sub, slot.offset, slot.size_bytes, out));
    if (parameter.has_tensor_map() && modules_[choice.module].triton) {
      HEDDLE_RETURN_IF_ERROR(SetTritonDescriptor(parameter.tensor_map(),
                                                 sub.Sub("tensor_map", 0, parameter.tensor_map()), ordinal,
                                                 function, &given, out));
      next = ordinal + 1 + 2 * static_cast<uint32_t>(parameter.tensor_map().size_size());
    }
  }
  // Triton's launcher adds the addresses of global and profile scratch memory, null when the kernel uses
  // none.
  if (modules_[choice.module].triton && given.size() >= 2 && !given[given.size() - 1] &&
      !given[given.size() - 2])
    given[given.size() - 1] = given[given.size() - 2] = true;
  std::string missing;
  for (size_t i = 0; i < given.size(); ++i)
    if (!given[i] && !copied)
      missing +=
          fmt::format("{}{} ({} bytes)", missing.empty() ? "" : ", ", i, function.parameters[i].size_bytes);
  if (!missing.empty())
    return Bad(at.Place("parameter", 0),
               fmt::format("these parameters of {} are not given: {}", function.name, missing),
               "add them in order, or with `ordinal`");
  return Ok();
}

Status LaunchBuilder::Add(const pb::Launch& launch, const Locator& at) {
  HEDDLE_ASSIGN_OR_RETURN(const Choice choice, ChooseFunction(launch, at));
  Launch out;
  out.name = launch.name().empty() ? choice.function->function.name : launch.name();
  out.stream = launch.stream();
  out.programmatic = launch.programmatic();
  out.frozen_grid = launch.frozen_grid();
  HEDDLE_RETURN_IF_ERROR(SetExtents(launch, at, choice, &out));
  maps_.clear();
  HEDDLE_RETURN_IF_ERROR(SetParameters(launch, at, choice, &out));
  out.function = FunctionIndex(choice);
  int64_t repeat = 1;
  if (!launch.repeat().empty()) {
    HEDDLE_ASSIGN_OR_RETURN(repeat, EvaluateInteger(launch.repeat(), scope_, at.Place("repeat")));
    if (repeat < 1 || repeat > kMaxRepeat)
      return Bad(at.Place("repeat"), fmt::format("{} launches", repeat), "give 1 to 1000000");
  }
  const auto first = static_cast<uint32_t>(trace_->launches.size());
  for (int i = 0; i < launch.after_size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const uint32_t earlier, FindLaunch(launch.after(i), at.Place("after", i)));
    trace_->edges.push_back({earlier, first});
  }
  for (int64_t i = 0; i < repeat; ++i) {
    for (TensorMap& map : maps_) {
      map.launch = static_cast<uint32_t>(trace_->launches.size());
      trace_->tensor_maps.push_back(map);
    }
    trace_->launches.push_back(out);
  }
  labels_[out.name] = static_cast<uint32_t>(trace_->launches.size() - 1);
  return Ok();
}

}  // namespace heddle::trace
