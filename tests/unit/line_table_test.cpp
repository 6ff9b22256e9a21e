// Line tables: which source line does an instruction belong to, and does damage stay an error.
#include "frontend/sass/line_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/cubin_builder.h"

namespace heddle::sass {
namespace {

using Bytes = std::vector<std::byte>;

void Put(Bytes* bytes, std::initializer_list<int> values) {
  for (const int value : values) bytes->push_back(static_cast<std::byte>(value));
}
void PutText(Bytes* bytes, const std::string& text) {
  for (const char letter : text) bytes->push_back(static_cast<std::byte>(letter));
  bytes->push_back(std::byte{0});
}
void PutWord(Bytes* bytes, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes->push_back(static_cast<std::byte>(value >> shift & 0xff));
}

struct Table {
  Bytes bytes;
  uint64_t address_at = 0;  // of the operand of DW_LNE_set_address
};

// As ptxas writes it: line_base -5, line_range 14, opcode_base 10, two files of one folder.
Table MakeTable(const std::vector<int>& program) {
  Bytes header;
  Put(&header, {1, 1, -5 & 0xff, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1});
  PutText(&header, "src");
  Put(&header, {0});
  PutText(&header, "a.cu");
  Put(&header, {1, 0, 0});
  PutText(&header, "/abs/b.h");
  Put(&header, {1, 0, 0, 0});
  Table table;
  Bytes body;
  Put(&body, {2, 0});
  PutWord(&body, static_cast<uint32_t>(header.size()));
  body.insert(body.end(), header.begin(), header.end());
  Put(&body, {0, 9, 2});
  table.address_at = 4 + body.size();
  Put(&body, {0, 0, 0, 0, 0, 0, 0, 0});
  for (const int byte : program) Put(&body, {byte});
  PutWord(&table.bytes, static_cast<uint32_t>(body.size()));
  table.bytes.insert(table.bytes.end(), body.begin(), body.end());
  return table;
}

std::vector<std::byte> CubinWith(const Table& table) {
  heddle::testing::CubinSpec spec;
  spec.code.resize(6);
  spec.debug_line = table.bytes;
  spec.line_relocations = {table.address_at};
  return heddle::testing::BuildCubin(spec);
}

// Advance line by 9 to 10; copy; special 230: +16 bytes, +1 line; file 2, NVIDIA's own opcode 0x90, line -5 to 6,
// +16 bytes, copy; fixed advance +32; end.
const std::vector<int> kProgram = {3, 9,    1, 0xf0, 4, 2, 0,  3, 0x90, 5, 0,
                                   3, 0x7b, 2, 16,   1, 9, 32, 0, 0,    1, 1};

TEST(LineTable, RowsHoldUntilTheNext) {
  const auto lines = ReadLineTable(CubinWith(MakeTable(kProgram)), "test.cubin", ".text.k");
  ASSERT_TRUE(lines.ok()) << lines.error().ToString();
  const std::vector<SourceLine> expected = {{"src/a.cu", 10}, {"src/a.cu", 11}, {"/abs/b.h", 6},
                                            {"/abs/b.h", 6},  {"", 0},          {"", 0}};
  EXPECT_EQ(*lines, expected);
}

TEST(LineTable, OtherSectionsAndCubinsWithoutTablesHaveNone) {
  EXPECT_TRUE(ReadLineTable(CubinWith(MakeTable(kProgram)), "x", ".text.other")->empty());
  heddle::testing::CubinSpec plain;
  plain.code.resize(6);
  EXPECT_TRUE(ReadLineTable(heddle::testing::BuildCubin(plain), "x", ".text.k")->empty());
  Table elsewhere = MakeTable(kProgram);
  elsewhere.address_at = 0;  // no relocation names the address: it is of no section
  const auto lines = ReadLineTable(CubinWith(elsewhere), "x", ".text.k");
  ASSERT_TRUE(lines.ok());
  for (const SourceLine& line : *lines) EXPECT_EQ(line, SourceLine{});
}

TEST(LineTable, DamageIsAnErrorWithItsPlace) {
  Table table = MakeTable(kProgram);
  table.bytes[4] = std::byte{5};
  const auto version = ReadLineTable(CubinWith(table), "test.cubin", ".text.k");
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(version.error().code, ExitCode::kTrace);
  EXPECT_EQ(version.error().message, "line tables of DWARF version 5");
  EXPECT_TRUE(version.error().place.starts_with("test.cubin @ offset 0x")) << version.error().place;
}

// Cut short anywhere, and with each byte changed: an error or a table, never a crash and never a longer table.
TEST(LineTable, AnyBytesMayBeHandedIn) {
  const Table whole = MakeTable(kProgram);
  for (size_t length = 1; length < whole.bytes.size(); ++length) {
    Table cut = whole;
    cut.bytes.resize(length);
    EXPECT_FALSE(ReadLineTable(CubinWith(cut), "x", ".text.k").ok()) << length;
  }
  for (size_t at = 0; at < whole.bytes.size(); ++at) {
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      Table changed = whole;
      changed.bytes[at] = static_cast<std::byte>(value);
      const auto lines = ReadLineTable(CubinWith(changed), "x", ".text.k");
      if (!lines.ok()) continue;
      EXPECT_EQ(lines->size(), 6u);
    }
  }
}

}  // namespace
}  // namespace heddle::sass
