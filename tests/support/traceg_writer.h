// Writes small traces in Accel-Sim's text format, of every version of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/import/accel_sim.h"
#include "frontend/import/traceg.h"

namespace heddle::importer {

struct TestInstruction {
  uint32_t pc = 0;
  std::string opcode;
  std::optional<int> destination = {};
  std::vector<int> sources = {};
  uint32_t mask = 0xffffffff;
  uint32_t width_bytes = 0;  // 0: no memory access
  AddressMode mode = AddressMode::kStride;
  std::vector<uint64_t> addresses = {};  // of the active lanes, in order
  int64_t immediate = 0;
};

struct TestBlock {
  Dim3 id{0, 0, 0};
  std::vector<std::vector<TestInstruction>> warps;
};

TracegHeader TestHeader(Dim3 grid, Dim3 block);

std::string HeaderText(const TracegHeader& header);
std::string InstructionText(const TracegHeader& header, const TestBlock& block, size_t warp,
                            const TestInstruction& instruction);
std::string TracegText(const TracegHeader& header, const std::vector<TestBlock>& blocks);

// Imports a folder whose one kernel has this text; its list names a copy to the device in front. The folder belongs to
// the call alone: tests of one binary run at the same time, each in a process of its own.
Result<Imported> ImportText(const std::string& text, bool lenient = false);

// Two blocks of two warps, with a memory access of every mode, a loop, a barrier and lanes that leave early.
std::vector<TestBlock> SampleBlocks();

// The addresses of a full warp, `stride` apart.
std::vector<uint64_t> Strided(uint64_t base, int64_t stride, uint32_t lanes = 32);

}  // namespace heddle::importer
