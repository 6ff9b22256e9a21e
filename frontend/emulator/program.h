// A kernel lowered for execution. Lowering happens once per kernel; a Program is read only afterwards and
// shared by all SMs and launches of the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "frontend/emulator/lowered.h"
#include "sim/isa/instruction.h"

namespace heddle::emulator {

// The immediates and constants that a kernel's operands name, each to be splat over one row.
class PoolLayout {
 public:
  uint16_t Immediate(uint32_t value);
  uint16_t ImmediatePair(uint64_t value);  // two rows: low, high
  // `words` consecutive rows with the 32-bit words at c[bank][offset], c[bank][offset + 4], ...
  uint16_t Constant(uint8_t bank, uint32_t offset, uint32_t words);

  size_t rows() const { return entries_.size(); }
  bool overflowed() const { return overflowed_; }  // more than 65,535 rows: row numbers are meaningless

 private:
  friend class ConstantPool;
  struct Entry {
    bool constant = false;
    uint8_t bank = 0;
    uint32_t offset = 0;
    uint32_t value = 0;
  };
  uint16_t Find(std::tuple<bool, uint64_t, uint64_t> key, std::span<const Entry> entries);

  std::vector<Entry> entries_;
  std::map<std::tuple<bool, uint64_t, uint64_t>, uint16_t> index_;
  bool overflowed_ = false;
};

// The rows of a PoolLayout with the constants of one launch.
class ConstantPool {
 public:
  // Words that lie beyond the given banks read as zero and are counted in missing_words().
  ConstantPool(const PoolLayout& layout, const std::array<std::span<const uint8_t>, kConstantBanks>& banks);

  const Row* rows() const { return rows_.data(); }
  uint32_t missing_words() const { return missing_words_; }

 private:
  std::vector<Row> rows_;
  uint32_t missing_words_ = 0;
};

// Rows and predicates that an instruction reads and writes, for tracking unknown values.
struct UnknownFlow {
  uint32_t first_read = 0;  // into Program::flow_rows
  uint32_t read_count = 0;
  uint32_t first_write = 0;
  uint32_t write_count = 0;
  uint32_t predicate_reads = 0;  // bit per predicate index of Warp::predicates; guard not included
  uint32_t predicate_writes = 0;
  bool crosses_lanes = false;  // SHFL, VOTE, REDUX, ...: one unknown lane makes all results unknown
};

class Program {
 public:
  // `needed`, when not empty, holds one entry per instruction: local instructions whose entry is false are
  // traced and not executed (skeleton mode). `code` must outlive the program.
  explicit Program(const isa::KernelCode& code, const std::vector<bool>& needed = {});

  const isa::KernelCode& code() const { return *code_; }
  const RowLayout& layout() const { return layout_; }
  const PoolLayout& pool() const { return pool_; }
  uint32_t size() const { return static_cast<uint32_t>(steps.size()); }
  // "0x0120 FOO.BAR R1, R2: modifier .BAR is not supported", one per instruction without a handler.
  const std::vector<std::string>& unsupported() const { return unsupported_; }

  // Indexed by instruction.
  std::vector<Lowered> steps;
  std::vector<uint32_t> run_end;      // first instruction at or after this one that is not local
  std::vector<uint32_t> ahead_begin;  // size() + 1 entries: where its local part starts in `ahead`
  std::vector<uint8_t> wait_masks;    // scoreboards that must be clear before issue
  std::vector<isa::Effect> effects;
  std::vector<UnknownFlow> flows;
  std::vector<uint16_t> flow_rows;
  // The local instructions that are executed, in the order of the code.
  std::vector<Lowered> ahead;

 private:
  void ComputeLayout();
  void LowerAll(const std::vector<bool>& needed);
  void ComputeFlows();

  const isa::KernelCode* code_;
  RowLayout layout_;
  PoolLayout pool_;
  std::vector<std::string> unsupported_;
};

}  // namespace heddle::emulator
