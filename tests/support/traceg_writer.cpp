#include "tests/support/traceg_writer.h"

#include <fmt/format.h>

#include <fstream>

#include "tests/support/shell.h"

namespace heddle::importer {
namespace {

std::string AddressText(const TestInstruction& instruction) {
  const std::vector<uint64_t>& at = instruction.addresses;
  const uint64_t base = at.empty() ? 0 : at[0];
  switch (instruction.mode) {
    case AddressMode::kList: {
      std::string text = "0 ";
      for (const uint64_t each : at) text += fmt::format("0x{:016x} ", each);
      return text;
    }
    case AddressMode::kStride:
      return fmt::format("1 0x{:x} {} ", base, at.size() < 2 ? 0 : static_cast<int64_t>(at[1] - at[0]));
    default: {
      std::string text = fmt::format("2 0x{:x} ", base);
      for (size_t i = 1; i < at.size(); ++i)
        text += fmt::format("{} ", static_cast<int64_t>(at[i] - at[i - 1]));
      return text;
    }
  }
}

}  // namespace

TracegHeader TestHeader(Dim3 grid, Dim3 block) {
  TracegHeader header;
  header.kernel_name = "test_kernel";
  header.kernel_id = 1;
  header.grid = grid;
  header.block = block;
  header.shared_bytes = 1024;
  header.registers = 32;
  header.binary_version = 80;
  header.shared_base = 0x7f3a00000000;
  header.local_base = 0x7f39fe000000;
  header.version = 5;
  return header;
}

std::string HeaderText(const TracegHeader& h) {
  std::string text = fmt::format(
      "-kernel name = {}\n-kernel id = {}\n-grid dim = ({},{},{})\n-block dim = ({},{},{})\n-shmem = "
      "{}\n-nregs = {}\n"
      "-binary version = {}\n-cuda stream id = {}\n-shmem base_addr = 0x{:016x}\n-local mem base_addr = "
      "0x{:016x}\n"
      "-nvbit version = 1.7\n",
      h.kernel_name, h.kernel_id, h.grid.x, h.grid.y, h.grid.z, h.block.x, h.block.y, h.block.z,
      h.shared_bytes, h.registers, h.binary_version, h.stream, h.shared_base, h.local_base);
  if (h.version > 1) text += fmt::format("-accelsim tracer version = {}\n", h.version);
  if (h.version >= 4) text += fmt::format("-enable lineinfo = {}\n", h.has_line_numbers ? 1 : 0);
  return text + "\n#traces format = as the version says\n\n";
}

std::string InstructionText(const TracegHeader& header, const TestBlock& block, size_t warp,
                            const TestInstruction& instruction) {
  std::string text;
  if (header.version < 3) text += fmt::format("{} {} {} {} ", block.id.x, block.id.y, block.id.z, warp);
  if (header.has_line_numbers) text += "42 ";
  text += fmt::format("{:04x} {:08x} ", instruction.pc, instruction.mask);
  text += instruction.destination ? fmt::format("1 R{} ", *instruction.destination) : "0 ";
  text += fmt::format("{} {} ", instruction.opcode, instruction.sources.size());
  for (const int source : instruction.sources) text += fmt::format("R{} ", source);
  text += fmt::format("{} ", instruction.width_bytes);
  if (instruction.width_bytes != 0) text += AddressText(instruction);
  if (header.version >= 5) text += fmt::format("{} ", instruction.immediate);
  return text + "\n";
}

std::string TracegText(const TracegHeader& header, const std::vector<TestBlock>& blocks) {
  std::string text = HeaderText(header);
  for (const TestBlock& block : blocks) {
    text += fmt::format("#BEGIN_TB\n\nthread block = {},{},{}\n\n", block.id.x, block.id.y, block.id.z);
    for (size_t warp = 0; warp < block.warps.size(); ++warp) {
      text += fmt::format("warp = {}\ninsts = {}\n", warp, block.warps[warp].size());
      for (const TestInstruction& each : block.warps[warp])
        text += InstructionText(header, block, warp, each);
      text += "\n";
    }
    text += "#END_TB\n\n";
  }
  return text;
}

Result<Imported> ImportText(const std::string& text, bool lenient) {
  const testing_support::TemporaryFolder folder;
  std::ofstream(folder / "kernel-1.traceg") << text;
  std::ofstream(folder / "kernelslist.g") << "MemcpyHtoD,0x00007f0000000000,4096\nkernel-1.traceg\n";
  return ImportAccelSim(folder.path(), {lenient});
}

std::vector<TestBlock> SampleBlocks() {
  std::vector<TestBlock> blocks;
  for (uint32_t block = 0; block < 2; ++block) {
    TestBlock& out = blocks.emplace_back(TestBlock{{block, 0, 0}, {}});
    for (uint32_t w = 0; w < 2; ++w) {
      std::vector<TestInstruction>& warp = out.warps.emplace_back();
      const uint64_t base = 0x7f0000000000 + 4096 * block + 256 * w;
      warp.push_back({.pc = 0x00, .opcode = "S2R", .destination = 0});
      warp.push_back({.pc = 0x10, .opcode = "EXIT", .mask = w == 1 ? 0xffff0000 : 0});
      const uint32_t live = w == 1 ? 0x0000ffff : 0xffffffff;
      const uint32_t lanes = w == 1 ? 16 : 32;
      for (uint32_t i = 0; i < 3; ++i) {
        TestInstruction load{.pc = 0x20, .opcode = "LDG.E", .destination = 4, .sources = {2}, .mask = live};
        load.width_bytes = 4;
        load.addresses = Strided(base + 1024 * i, 4, lanes);
        warp.push_back(load);
        TestInstruction store{.pc = 0x30, .opcode = "STS", .sources = {6, 4}, .mask = live};
        store.width_bytes = 4;
        store.mode = AddressMode::kDelta;
        store.addresses = Strided(8 * w, 8, lanes);
        store.addresses.back() += 128;
        warp.push_back(store);
        warp.push_back({.pc = 0x40, .opcode = "BAR.SYNC.DEFER_BLOCKING", .mask = live});
        warp.push_back({.pc = 0x50, .opcode = "BRA", .mask = i < 2 ? live : 0, .immediate = 0x20});
      }
      TestInstruction gather{
          .pc = 0x60, .opcode = "LDG.E.64", .destination = 8, .sources = {2}, .mask = 0x1001 & live};
      gather.width_bytes = 8;
      gather.mode = AddressMode::kList;
      gather.addresses = {base + 0x10000, base};
      warp.push_back(gather);
      warp.push_back({.pc = 0x70, .opcode = "EXIT", .mask = live});
    }
  }
  return blocks;
}

std::vector<uint64_t> Strided(uint64_t base, int64_t stride, uint32_t lanes) {
  std::vector<uint64_t> addresses;
  for (uint32_t i = 0; i < lanes; ++i) addresses.push_back(base + static_cast<uint64_t>(stride) * i);
  return addresses;
}

}  // namespace heddle::importer
