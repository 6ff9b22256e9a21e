#include "frontend/import/static_code.h"

#include <algorithm>

namespace heddle::importer {

bool StaticCode::Same(const Entry& entry, const TracegInstruction& line) {
  const TracegInstruction& own = entry.line;
  return own.has_destination == line.has_destination &&
         (!own.has_destination || own.destination == line.destination) &&
         own.source_count == line.source_count &&
         std::equal(own.sources.begin(), own.sources.begin() + own.source_count, line.sources.begin()) &&
         own.immediate == line.immediate &&
         (own.mode == AddressMode::kNone) == (line.mode == AddressMode::kNone) && entry.opcode == line.opcode;
}

StaticCode::Found StaticCode::Find(const TracegInstruction& line) {
  if (line.pc % isa::kInstructionBytes != 0) return {.fault = "a pc that is no multiple of 16"};
  const uint32_t place = line.pc / isa::kInstructionBytes;
  if (place >= kMostPlaces) return {.fault = "a pc beyond 4 MiB of code"};
  if (place >= first_.size()) first_.resize(place + 1, kNone);
  uint32_t* link = &first_[place];
  uint32_t variant = 0;
  for (; *link != kNone; link = &entries_[*link].next, ++variant) {
    const Entry& entry = entries_[*link];
    if (Same(entry, line)) return {entry.key, *link, entry.record, entry.fault};
  }
  const uint32_t stride = std::max(stride_, place + 1), variants = std::max(variants_, variant + 1);
  if (variant >= kMostVariants || uint64_t{stride} * variants >= kMostInstructions)
    return {.fault = "too many different instructions at one pc"};
  stride_ = stride;
  variants_ = variants;
  const auto id = static_cast<uint32_t>(entries_.size());
  *link = id;
  Entry& entry = entries_.emplace_back();
  entry.line = line;
  entry.opcode = line.opcode;
  entry.line.opcode = {};
  const Understood understood = Understand(line);
  entry.instruction = understood.instruction;
  entry.fault = understood.fault;
  entry.key = variant << kPlaceBits | place;
  entry.record = RecordOf(entry.instruction);
  return {entry.key, id, entry.record, entry.fault};
}

isa::KernelCode StaticCode::ToKernelCode(const std::string& name, uint32_t sm_version) const {
  isa::KernelCode code;
  code.name = name;
  code.sm_version = sm_version;
  code.has_control_bits = false;
  code.instructions.resize(size_t{stride_} * variants_ + 1);
  for (isa::Instruction& each : code.instructions) each.control.yield = true;
  for (const Entry& entry : entries_)
    code.instructions[size_t{VariantOf(entry.key)} * stride_ + PlaceOf(entry.key)] = entry.instruction;
  code.instructions.back().op = isa::Op::kEXIT;
  for (size_t i = 0; i < code.instructions.size(); ++i)
    code.instructions[i].pc = static_cast<uint32_t>(i * isa::kInstructionBytes);
  return code;
}

}  // namespace heddle::importer
