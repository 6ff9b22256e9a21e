// Do boxes of tensors look in shared and global memory as the PTX manual says? The references go element by element and
// share nothing with the emulator.
#include "tests/property/hopper_memory/hopper_fixture.h"

namespace heddle::emulator {
namespace {

// ---- Tensors

// A tensor, a box in it, and what the box must look like, element by element.
struct BoxCase {
  TensorMap map;
  Coordinates at;
  std::vector<uint8_t> tensor;

  uint32_t BoxBytes() const {
    uint32_t bytes = map.box[0] * BytesOf(map.element);
    for (uint32_t d = 1; d < map.rank; ++d)
      bytes *= (map.box[d] + map.element_stride[d] - 1) / map.element_stride[d];
    return bytes;
  }

  // Calls visit(offset of the element in shared memory, its offset in the tensor or -1).
  template <typename Visit>
  void ForElements(Visit visit) const {
    const uint32_t size = BytesOf(map.element);
    std::array<uint32_t, 5> count{1, 1, 1, 1, 1};
    for (uint32_t d = 0; d < map.rank; ++d)
      count[d] = d == 0 ? map.box[0] : (map.box[d] + map.element_stride[d] - 1) / map.element_stride[d];
    uint32_t linear = 0;
    std::array<uint32_t, 5> i{};
    for (i[4] = 0; i[4] < count[4]; ++i[4])
      for (i[3] = 0; i[3] < count[3]; ++i[3])
        for (i[2] = 0; i[2] < count[2]; ++i[2])
          for (i[1] = 0; i[1] < count[1]; ++i[1])
            for (i[0] = 0; i[0] < count[0]; ++i[0], linear += size) {
              int64_t offset = 0;
              bool inside = true;
              for (uint32_t d = 0; d < map.rank; ++d) {
                const int64_t index = at.c[d] + int64_t{i[d]} * (d == 0 ? 1 : map.element_stride[d]);
                inside &= index >= 0 && index < static_cast<int64_t>(map.size[d]);
                offset += index * static_cast<int64_t>(d == 0 ? size : map.stride_bytes[d]);
              }
              // 16-byte columns of a line of 128 bytes change places with the number of the line.
              uint32_t column = linear / 16 % 8;
              const uint32_t line = linear / 128;
              if (map.swizzle == TensorSwizzle::k128B) column ^= line % 8;
              if (map.swizzle == TensorSwizzle::k64B) column ^= line % 4;
              if (map.swizzle == TensorSwizzle::k32B) column ^= line % 2;
              visit(line * 128 + column * 16 + linear % 16, inside ? offset : -1);
            }
  }
};

BoxCase MakeCase(uint32_t rank, TensorElement element, TensorSwizzle swizzle, uint32_t row_bytes,
                 uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  BoxCase c;
  c.map.rank = static_cast<uint8_t>(rank);
  c.map.element = element;
  c.map.swizzle = swizzle;
  const uint32_t size = BytesOf(element);
  uint64_t bytes = 0;
  for (uint32_t d = 0; d < rank; ++d) {
    c.map.box[d] = d == 0 ? row_bytes / size : static_cast<uint32_t>(pick(1, rank <= 2 ? 16 : 4));
    c.map.size[d] =
        static_cast<uint64_t>(d == 0 ? pick(1, static_cast<int>(2 * c.map.box[0]) + 5) : pick(1, 9));
    if (d == 0) {
      bytes = (c.map.size[0] * size + 15) / 16 * 16 + 16 * static_cast<uint64_t>(pick(0, 2));
      continue;
    }
    c.map.element_stride[d] = static_cast<uint32_t>(pick(1, 4) == 1 ? pick(2, 3) : 1);
    c.map.stride_bytes[d] = bytes;
    bytes = bytes * c.map.size[d] + 16 * static_cast<uint64_t>(pick(0, 1));
  }
  for (uint32_t d = 0; d < rank; ++d)
    c.at.c[d] = pick(-static_cast<int>(c.map.box[d] / 2), static_cast<int>(c.map.size[d]) - 1);
  c.tensor = Random<uint8_t>(bytes, 0, 255, seed + 1);
  return c;
}

constexpr TensorElement kElements[] = {TensorElement::kU8,  TensorElement::kU16, TensorElement::kU32,
                                       TensorElement::kS64, TensorElement::kF16, TensorElement::kBF16,
                                       TensorElement::kF32, TensorElement::kF64};
constexpr TensorSwizzle kSwizzles[] = {TensorSwizzle::kNone, TensorSwizzle::k32B, TensorSwizzle::k64B,
                                       TensorSwizzle::k128B};

TEST_F(HopperMemory, LoadsBoxesOfEveryRankSwizzleAndType) {
  uint32_t seed = 0;
  size_t outside = 0, inside = 0;
  for (uint32_t rank = 1; rank <= 5; ++rank)
    for (const TensorSwizzle swizzle : kSwizzles)
      for (const TensorElement element : kElements) {
        const uint32_t span = swizzle == TensorSwizzle::kNone ? 48u : 16u << static_cast<uint32_t>(swizzle);
        BoxCase c = MakeCase(rank, element, swizzle, span, ++seed);
        c.map.fill =
            seed % 3 == 0 && element >= TensorElement::kF16 ? isa::TensorFill::kNan : isa::TensorFill::kZero;
        c.map.address = Buffer("tensor", c.tensor);
        const uint32_t bytes = c.BoxBytes();
        const uint64_t out = Buffer("out", std::vector<uint8_t>(bytes));
        LaunchDescription launch = Describe("LoadBox" + std::to_string(rank), {1}, {64}, Encode(c.map), c.at,
                                            out, static_cast<int>(bytes));
        launch.dynamic_shared_bytes = (bytes + 2047) / 1024 * 1024;
        const auto memory = RunOnce(launch, seed % 2);
        const auto got = Read<uint8_t>(*memory, out, bytes);
        const uint32_t size = BytesOf(element);
        c.ForElements([&](uint32_t at, int64_t offset) {
          (offset < 0 ? outside : inside) += 1;
          for (uint32_t i = 0; i < size && at + i < bytes; ++i) {
            const uint8_t fill = c.map.fill == isa::TensorFill::kZero ? 0 : i + 1 == size ? 0x7f : 0xff;
            const uint8_t want = offset < 0 ? fill : c.tensor[static_cast<size_t>(offset) + i];
            ASSERT_EQ(got[at + i], want) << "rank " << rank << ", swizzle " << static_cast<int>(swizzle)
                                         << ", " << Name(element) << ", byte " << at + i;
          }
        });
        memory_.Free(c.map.address);
        memory_.Free(out);
      }
  EXPECT_GT(inside, 5000u);
  EXPECT_GT(outside, 5000u);
}

TEST_F(HopperMemory, StoresBoxesOfEveryRankSwizzleAndType) {
  uint32_t seed = 1000;
  for (uint32_t rank = 1; rank <= 5; ++rank)
    for (const TensorSwizzle swizzle : kSwizzles)
      for (const TensorElement element : {TensorElement::kU8, TensorElement::kBF16, TensorElement::kF64}) {
        const uint32_t span = swizzle == TensorSwizzle::kNone ? 80u : 16u << static_cast<uint32_t>(swizzle);
        BoxCase c = MakeCase(rank, element, swizzle, span, ++seed);
        c.map.element_stride = {1, 1, 1, 1, 1};
        c.map.address = Buffer("tensor", c.tensor);
        const uint32_t bytes = c.BoxBytes(), whole = (bytes + 127) / 128 * 128;
        const auto shared = Random<uint8_t>(whole, 0, 255, seed + 7);
        const uint64_t in = Buffer("in", shared);
        LaunchDescription launch = Describe("StoreBox" + std::to_string(rank), {1}, {64}, Encode(c.map), c.at,
                                            in, static_cast<int>(whole));
        launch.dynamic_shared_bytes = whole + 1024;
        const auto memory = RunOnce(launch, seed % 2);
        std::vector<uint8_t> want = c.tensor;
        c.ForElements([&](uint32_t at, int64_t offset) {
          if (offset >= 0) std::memcpy(want.data() + offset, shared.data() + at, BytesOf(element));
        });
        ASSERT_EQ(Read<uint8_t>(*memory, c.map.address, want.size()), want)
            << "rank " << rank << ", swizzle " << static_cast<int>(swizzle) << ", " << Name(element);
        memory_.Free(c.map.address);
        memory_.Free(in);
      }
}

template <typename T, typename Combine>
void CheckReduction(HopperMemory&, const BoxCase& c, const std::vector<uint8_t>& shared, DeviceMemory& memory,
                    Combine combine) {
  std::vector<uint8_t> want = c.tensor;
  c.ForElements([&](uint32_t at, int64_t offset) {
    if (offset < 0) return;
    T old, value;
    std::memcpy(&old, want.data() + offset, sizeof old);
    std::memcpy(&value, shared.data() + at, sizeof value);
    old = combine(old, value);
    std::memcpy(want.data() + offset, &old, sizeof old);
  });
  EXPECT_EQ(Read<uint8_t>(memory, c.map.address, want.size()), want);
}

TEST_F(HopperMemory, ReducesIntoTensors) {
  uint32_t seed = 2000;
  const auto run = [&]<typename T>(const char* kernel, TensorElement element, TensorSwizzle swizzle, T,
                                   auto combine) {
    SCOPED_TRACE(std::string(kernel) + " " + std::string(Name(element)));
    BoxCase c = MakeCase(2, element, swizzle, 32, ++seed);
    c.map.element_stride = {1, 1, 1, 1, 1};
    c.at = {{1, 0}};
    if (element == TensorElement::kF16 || element == TensorElement::kBF16 || element == TensorElement::kF32) {
      // Small whole numbers add without rounding.
      const auto number = [&](size_t i) { return static_cast<float>(i % 13) - 6.0f; };
      for (size_t i = 0; (i + 1) * sizeof(T) <= c.tensor.size(); ++i) {
        T bits;
        if constexpr (sizeof(T) == 4)
          bits = std::bit_cast<T>(number(i));
        else
          bits = static_cast<T>(element == TensorElement::kF16 ? FloatToHalf(number(i))
                                                               : FloatToBFloat(number(i)));
        std::memcpy(c.tensor.data() + i * sizeof(T), &bits, sizeof bits);
      }
    }
    c.map.address = Buffer("tensor", c.tensor);
    const uint32_t bytes = c.BoxBytes(), whole = (bytes + 127) / 128 * 128;
    std::vector<uint8_t> shared = Random<uint8_t>(whole, 0, 255, seed + 7);
    if (element >= TensorElement::kF16)
      for (size_t i = 0; i < whole; ++i) shared[i] = c.tensor[i % (c.tensor.size() / 16 * 16)];
    const uint64_t in = Buffer("in", shared);
    LaunchDescription launch = Describe(kernel, {1}, {64}, Encode(c.map), c.at, in, static_cast<int>(whole));
    launch.dynamic_shared_bytes = whole + 1024;
    const auto memory = RunOnce(launch, seed % 2);
    CheckReduction<T>(*this, c, shared, *memory, combine);
    memory_.Free(c.map.address);
    memory_.Free(in);
  };
  const auto add = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
  const auto least = [](auto a, auto b) { return std::min(a, b); };
  const auto most = [](auto a, auto b) { return std::max(a, b); };
  run("ReduceAdd", TensorElement::kU32, TensorSwizzle::kNone, uint32_t{}, add);
  run("ReduceAdd", TensorElement::kU64, TensorSwizzle::k32B, uint64_t{}, add);
  run("ReduceAdd", TensorElement::kF32, TensorSwizzle::k32B, uint32_t{}, [](uint32_t a, uint32_t b) {
    return std::bit_cast<uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
  });
  run("ReduceAdd", TensorElement::kF16, TensorSwizzle::k128B, uint16_t{},
      [](uint16_t a, uint16_t b) { return FloatToHalf(HalfToFloat(a) + HalfToFloat(b)); });
  run("ReduceAdd", TensorElement::kBF16, TensorSwizzle::k64B, uint16_t{},
      [](uint16_t a, uint16_t b) { return FloatToBFloat(BFloatToFloat(a) + BFloatToFloat(b)); });
  run("ReduceMin", TensorElement::kS32, TensorSwizzle::kNone, int32_t{}, least);
  run("ReduceMax", TensorElement::kS32, TensorSwizzle::k64B, int32_t{}, most);
  run("ReduceMin", TensorElement::kU64, TensorSwizzle::kNone, uint64_t{}, least);
  run("ReduceMax", TensorElement::kS64, TensorSwizzle::kNone, int64_t{}, most);
  run("ReduceMax", TensorElement::kF16, TensorSwizzle::kNone, uint16_t{},
      [](uint16_t a, uint16_t b) { return FloatToHalf(std::max(HalfToFloat(a), HalfToFloat(b))); });
  run("ReduceInc", TensorElement::kU32, TensorSwizzle::kNone, uint32_t{},
      [](uint32_t a, uint32_t b) { return a >= b ? 0u : a + 1; });
  run("ReduceDec", TensorElement::kU32, TensorSwizzle::kNone, uint32_t{},
      [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; });
  run("ReduceAnd", TensorElement::kU32, TensorSwizzle::kNone, uint32_t{},
      [](uint32_t a, uint32_t b) { return a & b; });
  run("ReduceOr", TensorElement::kU64, TensorSwizzle::k32B, uint64_t{},
      [](uint64_t a, uint64_t b) { return a | b; });
  run("ReduceXor", TensorElement::kU32, TensorSwizzle::kNone, uint32_t{},
      [](uint32_t a, uint32_t b) { return a ^ b; });
}

TEST_F(HopperMemory, FollowsMapsThatKernelsEdit) {
  constexpr int kRows = 9, kColumns = 100, kPitch = 128;
  const auto tensor = Random<uint16_t>(kRows * kPitch, 0, 65535);
  const auto decoy = Random<uint16_t>(64 * 8, 0, 65535, 5);
  TensorMap map;
  map.rank = 2;
  map.element = TensorElement::kF16;
  map.swizzle = TensorSwizzle::k128B;
  map.address = Buffer("decoy", decoy);
  map.size = {64, 8, 1, 1, 1};
  map.stride_bytes[1] = 128;
  map.box = {64, 8, 1, 1, 1};
  BoxCase c;
  c.map = map;
  c.map.size = {kColumns, kRows, 1, 1, 1};
  c.map.stride_bytes[1] = kPitch * 2;
  c.at = {{64, 3}};
  const uint64_t in = Buffer("tensor", tensor), edited = Buffer("map", std::vector<uint8_t>(128)),
                 out = Buffer("out", std::vector<uint8_t>(1024));
  for (const int from_nothing : {0, 1}) {
    LaunchDescription launch = Describe("EditMap", {1}, {64}, Encode(map), edited, in, kRows, kColumns,
                                        uint64_t{kPitch * 2}, out, from_nothing);
    launch.dynamic_shared_bytes = 2048;
    RunAllWays(
        launch,
        [&](DeviceMemory& memory) {
          const auto got = Read<uint8_t>(memory, out, 1024);
          c.ForElements([&](uint32_t at, int64_t offset) {
            uint16_t have;
            std::memcpy(&have, got.data() + at, 2);
            ASSERT_EQ(have, offset < 0 ? 0 : tensor[static_cast<size_t>(offset) / 2]) << at;
          });
        },
        SliceKind::kFull);
  }
}

// Whoever drives the stream may keep a prefetch back, while its tensor map is on its way say: it stays what it is until its
// rows have been asked for.
TEST_F(HopperMemory, PrefetchesLastUntilTheyAreRead) {
  const std::vector<uint8_t> tensor(16 * 128);
  TensorMap map;
  map.rank = 2;
  map.element = TensorElement::kU8;
  map.address = Buffer("tensor", tensor);
  map.size = {128, 16, 1, 1, 1};
  map.stride_bytes[1] = 128;
  map.box = {128, 8, 1, 1, 1};
  const auto run = EmulatedLaunch::Create(Describe("Prefetches", {1}, {1}, Encode(map))).value();
  const auto stream = run->OpenOnSm(0);
  const auto handed_out = [&](uint32_t slot) {
    std::vector<isa::BulkOperation*> operations;
    isa::CtaStart start{};
    start.slot = slot;
    stream->StartCta(start);
    isa::WarpStep step;
    while (stream->NextRun(slot).state == isa::WarpState::kRunnable) {
      stream->Execute(slot, 0, &step);
      if (step.kind == isa::StepKind::kBulk) operations.push_back(step.bulk);
    }
    return operations;
  };
  const std::vector<isa::BulkOperation*> first = handed_out(0), second = handed_out(1);
  ASSERT_EQ(first.size(), 2u);
  for (const auto& operations : {first, second}) {
    EXPECT_EQ(operations[0]->pieces[0].global_address, map.address);
    EXPECT_EQ(operations[1]->pieces[0].global_address, map.address + 8 * 128);
  }
  for (isa::BulkOperation* operation : first) stream->ReadBulkSource(*operation, 0, 8, 0);
  const std::vector<isa::BulkOperation*> third = handed_out(2);
  EXPECT_TRUE(std::is_permutation(third.begin(), third.end(), first.begin()));  // reused
  EXPECT_TRUE(run->Issues().empty());
}

}  // namespace
}  // namespace heddle::emulator
