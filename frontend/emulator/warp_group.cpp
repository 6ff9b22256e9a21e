// Instructions of a warp group: HGMMA, QGMMA, IGMMA, BGMMA, WARPGROUP and USETMAXREG.
//
// A product is asynchronous: it takes effect when WARPGROUP.DEPBAR has waited for its group. Then shared memory is read
// and the accumulators are written, not before, so a kernel that reads results or overwrites operands without the wait
// gets wrong numbers. What the instruction reads of registers (descriptors, A, the predicate that scales D) is taken at
// issue.
#include "frontend/emulator/access.h"
#include "frontend/emulator/group_matrix.h"
#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/lowering.h"
#include "sim/isa/matrix.h"

namespace heddle::emulator {
namespace {

using isa::MatrixType;
using isa::Mod;
using isa::OperandKind;

// Layout of Lowered::imm. Sources: 0 A, 1 the uniform registers of the descriptors, 2 C. Predicate 0 scales D.
enum : uint32_t {
  kTypeA = 0,        // MatrixFloat, 4 bits
  kTypeB = 4,        // 4 bits
  kAccumulator = 8,  // MatrixAccumulator, 4 bits
  kBlocks = 12,      // n / 8, 8 bits
  kIsBinary = 20,    // one bit each from here on
  kTransposedA = 21,
  kTransposedB = 22,
  kNegated = 23,
  kAInShared = 24,
  kNoAccumulator = 25,
  kClosesGroup = 26,
};

uint32_t Field(const Lowered& l, uint32_t shift, uint32_t bits = 1) {
  return Low(l.imm >> shift) & ((1u << bits) - 1);
}
void SetField(Lowered& l, uint32_t shift, uint32_t value) { l.imm |= uint64_t{value} << shift; }

GroupMatrixShape ShapeOf(const Lowered& l) {
  GroupMatrixShape shape;
  shape.a = static_cast<MatrixFloat>(Field(l, kTypeA, 4));
  shape.b = static_cast<MatrixFloat>(Field(l, kTypeB, 4));
  shape.accumulator = static_cast<MatrixAccumulator>(Field(l, kAccumulator, 4));
  shape.n = static_cast<uint16_t>(8 * Field(l, kBlocks, 8));
  shape.is_binary = Field(l, kIsBinary) != 0;
  shape.transposed_a = Field(l, kTransposedA) != 0;
  shape.transposed_b = Field(l, kTransposedB) != 0;
  shape.negated = Field(l, kNegated) != 0;
  return shape;
}

// The accumulators count as unknown from now on when anything that is read is.
uint32_t UnknownOperands(const Context& c, const Lowered& l) {
  if (c.warp->unknown == nullptr) return 0;
  const UnknownFlow& flow = c.program->flows[l.index];
  uint32_t unknown = 0;
  for (uint32_t i = 0; i < flow.read_count; ++i)
    unknown |= c.warp->unknown[c.program->flow_rows[flow.first_read + i]];
  return unknown != 0 ? kAllLanes : 0;
}

void RunProduct(Context& c, const Lowered& l) {
  if (l.flags & kDataSkipped) return;
  PendingProduct& product = c.warp->products.emplace_back();
  product.index = l.index;
  product.accumulates = Field(l, kNoAccumulator) == 0 && c.SourcePredicate(l, 0) != 0;
  product.closes_group = Field(l, kClosesGroup) != 0;
  const auto descriptor = [&](uint32_t first) {
    return Pair(c.Source(l, 1, first).lane[0], c.Source(l, 1, first + 1).lane[0]);
  };
  product.descriptor_a = descriptor(0);
  product.descriptor_b = descriptor(2);
  if (!Field(l, kAInShared))
    for (uint32_t i = 0; i < product.a.size(); ++i) product.a[i] = c.Source(l, 0, i);
  c.unknown_result.fill(UnknownOperands(c, l));
}

void Perform(Context& c, PendingProduct& product) {
  const Lowered& l = c.program->steps[product.index];
  const GroupMatrixShape shape = ShapeOf(l);
  const CtaMemory& cta = CtaOf(c);
  const SharedBytes shared{cta.shared, cta.shared_bytes};
  FragmentRow* const a = &product.a[0].lane;
  bool inside = true;
  if (Field(l, kAInShared))
    inside = LoadGroupRows(shape, shared, product.descriptor_a, c.warp->id_in_cta % 4, a);
  const FragmentRow* accumulator = product.accumulates ? &c.Source(l, 2).lane : nullptr;
  inside &= MultiplyGroup(shape, a, shared, product.descriptor_b, accumulator, &c.Destination(l).lane);
  if (!inside)
    c.issues->Report("out_of_bounds", product.index, "a matrix descriptor leads outside of shared memory");
}

// The pool has what is asked for: the timing model lets the instruction issue when that is so.
void RunReallocate(Context& c, const Lowered& l) { c.WritePredicate(l, 0, kAllLanes); }

// imm: groups that may still be under way.
void RunWait(Context& c, const Lowered& l) {
  std::vector<PendingProduct>& products = c.warp->products;
  uint64_t groups = 0;
  for (const PendingProduct& product : products) groups += product.closes_group ? 1 : 0;
  size_t done = 0;
  while (groups > l.imm) {
    PendingProduct& product = products[done++];
    Perform(c, product);
    if (product.closes_group) --groups;
  }
  products.erase(products.begin(), products.begin() + static_cast<ptrdiff_t>(done));
}

std::optional<MatrixFloat> ElementOf(MatrixType type) {
  switch (type) {
    case MatrixType::kF16:
      return MatrixFloat::kF16;
    case MatrixType::kBF16:
      return MatrixFloat::kBF16;
    case MatrixType::kTF32:
      return MatrixFloat::kTF32;
    case MatrixType::kE4M3:
      return MatrixFloat::kE4M3;
    case MatrixType::kE5M2:
      return MatrixFloat::kE5M2;
    case MatrixType::kS8:
      return MatrixFloat::kS8;
    case MatrixType::kU8:
      return MatrixFloat::kU8;
    default:
      return std::nullopt;
  }
}

void TakeTypes(Lowering& w, const isa::Matrix& matrix) {
  // isa::MatrixOf has read the modifiers; taking them here leaves what it does not know.
  for (const Mod mod :
       {Mod::kF32, Mod::kF16, Mod::kBF16, Mod::kTF32, Mod::kE4M3, Mod::kE5M2, Mod::kS8, Mod::kU8})
    w.Take(mod);
  const bool saturates = w.Take(Mod::kSAT);
  MatrixAccumulator accumulator = MatrixAccumulator::kF32;
  if (matrix.accumulator == MatrixType::kF16) accumulator = MatrixAccumulator::kF16;
  if (matrix.accumulator == MatrixType::kS32)
    accumulator = saturates ? MatrixAccumulator::kS32Saturating : MatrixAccumulator::kS32;
  SetField(w.out, kAccumulator, static_cast<uint32_t>(accumulator));
  if (matrix.a == MatrixType::kB1) {
    if (!w.Take(Mod::kAND) || !w.Take(Mod::kPOPC)) w.Fail("only the population count of an AND");
    SetField(w.out, kIsBinary, 1);
    return;
  }
  const auto a = ElementOf(matrix.a), b = ElementOf(matrix.b);
  if (!a || !b) return w.Fail("unknown element types");
  SetField(w.out, kTypeA, static_cast<uint32_t>(*a));
  SetField(w.out, kTypeB, static_cast<uint32_t>(*b));
}

void TakeShape(Lowering& w, const isa::Matrix& matrix) {
  for (size_t i = 0; i < w.instruction.modifier_count; ++i)
    if (isa::Name(w.instruction.modifiers[i]).starts_with("64x")) w.Take(w.instruction.modifiers[i]);
  if (matrix.m != 64 || matrix.n % 8 != 0 || matrix.n > kMaxGroupColumns || matrix.k * matrix.b_bits != 256 ||
      matrix.k * matrix.a_bits != 256)
    return w.Fail("an unknown matrix shape for this type");
  if ((matrix.transposed_a || matrix.transposed_b) && matrix.b_bits != 16)
    return w.Fail("a transposed operand that is not of 16 bits");
  SetField(w.out, kBlocks, matrix.n / 8u);
  SetField(w.out, kTransposedA, matrix.transposed_a);
  SetField(w.out, kTransposedB, matrix.transposed_b);
  SetField(w.out, kNegated, matrix.negated_a != matrix.negated_b);
  SetField(w.out, kAInShared, matrix.a_in_shared);
  SetField(w.out, kClosesGroup, matrix.closes_group);
}

void TakeRegisters(Lowering& w, const isa::Matrix& matrix) {
  constexpr uint32_t kPlain = isa::kReuse;
  const auto plain_register = [&](uint32_t allowed) -> const isa::Operand& {
    const isa::Operand& operand = w.Next();
    if (operand.kind != OperandKind::kRegister || (operand.flags & ~allowed) != 0)
      w.Fail("a matrix operand is no plain register");
    return operand;
  };
  if (w.Peek() != nullptr && w.Peek()->reg == isa::kZeroRegister) return w.Fail("the result is RZ");
  w.Destination(0);
  if (!matrix.a_in_shared) {
    const isa::Operand& a = plain_register(kPlain | isa::kNegate);
    if (a.reg == isa::kZeroRegister) return w.Fail("A is RZ");
    w.out.source[0].row = w.layout.ReadRow(a.reg);
  }
  const isa::Operand& descriptor = w.Next();
  constexpr uint32_t kKnown = isa::kTransposedA | isa::kTransposedB | isa::kNegatedA | isa::kNegatedB;
  if (descriptor.kind != OperandKind::kMatrixDescriptor || (descriptor.flags & ~kKnown) != 0 ||
      descriptor.uniform_reg >= isa::kNoRegister)
    return w.Fail("no matrix descriptor");
  w.out.source[1].row = w.layout.UniformReadRow(descriptor.uniform_reg);
  const isa::Operand& c = plain_register(kPlain);
  if (c.reg == isa::kZeroRegister)
    SetField(w.out, kNoAccumulator, 1);
  else
    w.out.source[2].row = w.layout.ReadRow(c.reg);
  w.TakeSourcePredicate(0);
  if (w.NextIs(OperandKind::kScoreboard)) w.Next();
}

}  // namespace

void LowerGroupMatrix(Lowering& w) {
  const std::optional<isa::Matrix> matrix = isa::MatrixOf(w.instruction);
  if (!matrix) return w.Fail("an unknown matrix shape");
  if (matrix->sparse) return w.Fail("sparse matrix products of a warp group are not modelled");
  TakeTypes(w, *matrix);
  TakeShape(w, *matrix);
  TakeRegisters(w, *matrix);
  w.out.run = &RunProduct;
}

// WARPGROUP.ARRIVE orders registers, which happens in order anyway. WARPGROUP.DEPBAR.LE gsb0, n.
void LowerWarpGroup(Lowering& w) {
  if (w.Take(Mod::kARRIVE)) {
    w.out.run = &RunNothing;
    return;
  }
  if (!w.Take(Mod::kDEPBAR) || !w.Take(Mod::kLE)) return w.Fail("an unknown operation of a warp group");
  if (!w.NextIs(OperandKind::kScoreboard)) return w.Fail("no scoreboard of products");
  w.Next();
  w.out.imm = w.Immediate();
  w.out.run = &RunWait;
}

// USETMAXREG.TRY_ALLOC.CTAPOOL UP, n and USETMAXREG.DEALLOC.CTAPOOL n.
void LowerUsetmaxreg(Lowering& w) {
  w.Take(Mod::kCTAPOOL);
  if (w.TakeOneOf({Mod::kTRY_ALLOC, Mod::kDEALLOC}) < 0) return w.Fail("an unknown kind of reallocation");
  w.TakeDestinationPredicate(0);
  w.Immediate();
  w.out.run = &RunReallocate;
}

}  // namespace heddle::emulator
