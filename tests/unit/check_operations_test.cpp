// Each operation of a check against values worked out by hand: what a kernel's output is compared with must be right
// without the kernel.
#include "frontend/trace/check_operations.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace heddle::trace {
namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

struct Case {
  std::string name;
  std::string operation;  // text format
  std::map<std::string, Tensor> in;
  std::vector<Tensor> out;
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

pb::Operation Parse(const std::string& text) {
  pb::Operation operation;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &operation)) << text;
  return operation;
}

Results RunOperation(const std::string& text, const std::map<std::string, Tensor>& tensors) {
  const Scope scope;
  Operands operands;
  operands.tensors.insert(tensors.begin(), tensors.end());
  operands.scope = &scope;
  operands.place = "op";
  return Apply(Parse(text), operands);
}

const Tensor kTwoByThree{{2, 3}, {1, 2, 3, 4, 5, 6}};
const Tensor kThreeByTwo{{3, 2}, {1, 0, 0, 1, 2, 2}};
const double kE = std::exp(1.0);
const double kLn2 = std::log(2.0);

// clang-format off
const std::vector<Case> kCases = {
    // ---- products
    {"matmul", "matmul { a: 'a' b: 'b' }", {{"a", kTwoByThree}, {"b", kThreeByTwo}},
     {{{2, 2}, {7, 8, 16, 17}}}},
    {"matmul_transposed", "matmul { a: 'a' b: 'b' transpose_a: true transpose_b: true }",
     {{"a", {{3, 2}, {1, 4, 2, 5, 3, 6}}}, {"b", {{2, 3}, {1, 0, 2, 0, 1, 2}}}}, {{{2, 2}, {7, 8, 16, 17}}}},
    {"matmul_batched", "matmul { a: 'a' b: 'b' }",
     {{"a", {{2, 1, 2}, {1, 2, 3, 4}}}, {"b", {{2, 2, 1}, {1, 1, 10, 1}}}}, {{{2, 1, 1}, {3, 34}}}},
    {"matmul_shared_b", "matmul { a: 'a' b: 'b' }",
     {{"a", {{2, 1, 2}, {1, 2, 3, 4}}}, {"b", {{2, 1}, {1, 10}}}}, {{{2, 1, 1}, {21, 43}}}},
    {"grouped_matmul", "grouped_matmul { x: 'x' weight: 'w' expert: 'e' }",  // w: [experts, K, N]
     {{"x", {{2, 2}, {1, 2, 3, 4}}}, {"w", {{2, 2, 1}, {1, 1, 1, -1}}}, {"e", {{2}, {1, 0}}}}, {{{2, 1}, {-1, 7}}}},
    {"grouped_matmul_indexed",
     "grouped_matmul { x: 'x' weight: 'w' expert: 'e' transpose_b: true row_scale: 's' row_index: 'i' }",
     {{"x", {{2, 2}, {1, 2, 3, 4}}}, {"w", {{2, 1, 2}, {1, 1, 1, -1}}}, {"e", {{3}, {0, 1, 0}}},
      {"s", {{3}, {1, 10, 0.5}}}, {"i", {{3}, {1, 0, 0}}}},
     {{{3, 1}, {7, -10, 1.5}}}},

    // ---- attention: scores 0 and ln 2 weigh 1/3 and 2/3; log-sum-exp ln 3
    {"attention_dense", "attention { q: 'q' k: 'k' v: 'v' scale: '1' }",
     {{"q", {{1, 1, 1, 1}, {1}}}, {"k", {{1, 1, 2, 1}, {0, kLn2}}}, {"v", {{1, 1, 2, 1}, {3, 6}}}},
     {{{1, 1, 1, 1}, {5}}, {{1, 1, 1}, {std::log(3.0)}}}},
    {"attention_default_scale", "attention { q: 'q' k: 'k' v: 'v' }",  // 1 / sqrt(4)
     {{"q", {{1, 1, 1, 4}, {2, 0, 0, 0}}}, {"k", {{1, 1, 2, 4}, {0, 0, 0, 0, kLn2, 0, 0, 0}}},
      {"v", {{1, 1, 2, 4}, {3, 0, 0, 0, 6, 3, 0, 0}}}},
     {{{1, 1, 1, 4}, {5, 2, 0, 0}}, {{1, 1, 1}, {std::log(3.0)}}}},
    {"attention_causal", "attention { q: 'q' k: 'k' v: 'v' scale: '1' causal: true }",  // 2 queries at keys 1 and 2 of 3
     {{"q", {{1, 1, 2, 1}, {0, 0}}}, {"k", {{1, 1, 3, 1}, {1, 1, 1}}}, {"v", {{1, 1, 3, 1}, {1, 3, 8}}}},
     {{{1, 1, 2, 1}, {2, 4}}, {{1, 1, 2}, {std::log(2.0), std::log(3.0)}}}},
    {"attention_window", "attention { q: 'q' k: 'k' v: 'v' scale: '1' causal: true window: '2' }",
     {{"q", {{1, 1, 3, 1}, {0, 0, 0}}}, {"k", {{1, 1, 3, 1}, {1, 1, 1}}}, {"v", {{1, 1, 3, 1}, {1, 3, 8}}}},
     {{{1, 1, 3, 1}, {1, 2, 5.5}}, {{1, 1, 3}, {0, std::log(2.0), std::log(2.0)}}}},
    {"attention_softcap", "attention { q: 'q' k: 'k' v: 'v' scale: '1' softcap: '1' }",
     {{"q", {{1, 1, 1, 1}, {1}}}, {"k", {{1, 1, 2, 1}, {0, 1e9}}}, {"v", {{1, 1, 2, 1}, {0, 1 + kE}}}},
     {{{1, 1, 1, 1}, {kE}}, {{1, 1, 1}, {std::log(1 + kE)}}}},
    {"attention_grouped_heads", "attention { q: 'q' k: 'k' v: 'v' layout: bshd scale: '1' }",  // 2 query heads, 1 key head
     {{"q", {{1, 1, 2, 1}, {0, 1}}}, {"k", {{1, 2, 1, 1}, {0, kLn2}}}, {"v", {{1, 2, 1, 1}, {3, 6}}}},
     {{{1, 1, 2, 1}, {4.5, 5}}, {{1, 2, 1}, {std::log(2.0), std::log(3.0)}}}},
    {"attention_varlen", "attention { q: 'q' k: 'k' v: 'v' layout: thd scale: '1' cu_seqlens_q: 'c' }",  // lengths 1 and 2
     {{"q", {{3, 1, 1}, {0, 0, 0}}}, {"k", {{3, 1, 1}, {1, 1, 1}}}, {"v", {{3, 1, 1}, {9, 2, 4}}}, {"c", {{3}, {0, 1, 3}}}},
     {{{3, 1, 1}, {9, 3, 3}}, {{3, 1}, {0, std::log(2.0), std::log(2.0)}}}},
    // keys 0 and 1 lie in block 2, key 2 in block 0: values 5, 6 and 1
    {"attention_paged", "attention { q: 'q' k: 'k' v: 'v' layout: paged scale: '1' block_table: 't' seq_lens: 'l' }",
     {{"q", {{1, 1, 1}, {0}}}, {"k", {{3, 2, 1, 1}, {0, 0, 0, 0, 0, 0}}}, {"v", {{3, 2, 1, 1}, {1, 2, 3, 4, 5, 6}}},
      {"t", {{1, 2}, {2, 0}}}, {"l", {{1}, {3}}}},
     {{{1, 1, 1}, {4}}, {{1, 1}, {std::log(3.0)}}}},
    // latent attention: values of another dimension than keys; weights 1/3 and 2/3 of keys in blocks 1 and 0
    {"attention_paged_value_dim",
     "attention { q: 'q' k: 'k' v: 'v' layout: paged scale: '1' block_table: 't' seq_lens: 'l' }",
     {{"q", {{1, 1, 2}, {1, 0}}}, {"k", {{2, 1, 1, 2}, {kLn2, 5, 0, 7}}}, {"v", {{2, 1, 1, 1}, {6, 3}}},
      {"t", {{1, 2}, {1, 0}}}, {"l", {{1}, {2}}}},
     {{{1, 1, 1}, {5}}, {{1, 1}, {std::log(3.0)}}}},
    {"attention_varlen_value_dim", "attention { q: 'q' k: 'k' v: 'v' layout: thd scale: '1' cu_seqlens_q: 'c' }",
     {{"q", {{2, 1, 1}, {1, 1}}}, {"k", {{2, 1, 1}, {0, kLn2}}}, {"v", {{2, 1, 2}, {3, 0, 6, 3}}}, {"c", {{2}, {0, 2}}}},
     {{{2, 1, 2}, {5, 2, 5, 2}}, {{2, 1}, {std::log(3.0), std::log(3.0)}}}},
    {"attention_dense_value_dim", "attention { q: 'q' k: 'k' v: 'v' layout: bshd scale: '1' }",
     {{"q", {{1, 1, 2, 1}, {1, 1}}}, {"k", {{1, 2, 1, 1}, {0, kLn2}}}, {"v", {{1, 2, 1, 2}, {3, 0, 6, 3}}}},
     {{{1, 1, 2, 2}, {5, 2, 5, 2}}, {{1, 2, 1}, {std::log(3.0), std::log(3.0)}}}},
    {"attention_paged_heads_first",
     "attention { q: 'q' k: 'k' v: 'v' layout: paged_hnd scale: '1' block_table: 't' seq_lens: 'l' }",
     {{"q", {{1, 2, 1}, {0, 0}}}, {"k", {{1, 2, 2, 1}, {0, 0, 0, 0}}}, {"v", {{1, 2, 2, 1}, {1, 3, 5, 9}}},
      {"t", {{1, 1}, {0}}}, {"l", {{1}, {2}}}},
     {{{1, 2, 1}, {2, 7}}, {{1, 2}, {std::log(2.0), std::log(2.0)}}}},
    {"attention_no_keys", "attention { q: 'q' k: 'k' v: 'v' layout: paged block_table: 't' seq_lens: 'l' }",
     {{"q", {{1, 1, 1}, {1}}}, {"k", {{1, 1, 1, 1}, {1}}}, {"v", {{1, 1, 1, 1}, {1}}}, {"t", {{1, 1}, {0}}}, {"l", {{1}, {0}}}},
     {{{1, 1, 1}, {0}}, {{1, 1}, {-kInfinity}}}},

    // ---- rows
    {"softmax", "softmax { x: 'x' }", {{"x", {{2, 2}, {0, kLn2, 1000, 1000}}}}, {{{2, 2}, {1.0 / 3, 2.0 / 3, 0.5, 0.5}}}},
    {"softmax_scaled", "softmax { x: 'x' scale: '2' }", {{"x", {{1, 2}, {0, kLn2}}}}, {{{1, 2}, {0.2, 0.8}}}},
    {"layernorm", "layernorm { x: 'x' }", {{"x", {{2, 2}, {1, 3, -4, 0}}}}, {{{2, 2}, {-1, 1, -1, 1}}}},
    // deviations -3 and 3, variance 9, eps 7: divided by 4; times weight, plus bias
    {"layernorm_affine", "layernorm { x: 'x' weight: 'w' bias: 'b' eps: '7' }",
     {{"x", {{1, 2}, {0, 6}}}, {"w", {{2}, {2, 4}}}, {"b", {{2}, {1, 1}}}}, {{{1, 2}, {-0.5, 4}}}},
    {"rmsnorm", "rmsnorm { x: 'x' weight: 'w' }", {{"x", {{1, 2}, {1, 7}}}, {"w", {{2}, {5, 10}}}}, {{{1, 2}, {1, 14}}}},
    {"rmsnorm_offset", "rmsnorm { x: 'x' weight: 'w' weight_offset: 1 eps: '11' }",  // sqrt(25 + 11) = 6
     {{"x", {{1, 2}, {1, 7}}}, {"w", {{2}, {5, 11}}}}, {{{1, 2}, {1, 14}}}},
    {"rope", "rope { x: 'x' positions: 'p' }",  // pairs (0, 2) by 1 rad and (1, 3) by 1/100 rad
     {{"x", {{1, 1, 4}, {1, 1, 0, 0}}}, {"p", {{1}, {1}}}},
     {{{1, 1, 4}, {std::cos(1.0), std::cos(0.01), std::sin(1.0), std::sin(0.01)}}}},
    {"rope_gptj", "rope { x: 'x' theta: '4' style: gptj }",  // pairs (0, 1) and (2, 3), token 1: by 1 and 1/2 rad
     {{"x", {{2, 4}, {1, 2, 3, 4, 1, 0, 0, 1}}}},
     {{{2, 4}, {1, 2, 3, 4, std::cos(1.0), std::sin(1.0), -std::sin(0.5), std::cos(0.5)}}}},
    {"rope_cached_part", "rope { x: 'x' positions: 'p' cos_sin_cache: 'c' rotary_dim: '2' head_dim: '3' }",  // a quarter turn
     {{"x", {{1, 6}, {1, 2, 3, 4, 5, 6}}}, {"p", {{1}, {1}}}, {"c", {{2, 2}, {1, 0, 0, 1}}}},
     {{{1, 6}, {-2, 1, 3, -5, 4, 6}}}},
    {"reduce_all", "reduce { x: 'x' }", {{"x", kTwoByThree}}, {{{1}, {21}}}},
    {"reduce_rows", "reduce { x: 'x' function: mean axis: -1 }", {{"x", kTwoByThree}}, {{{2}, {2, 5}}}},
    {"reduce_columns", "reduce { x: 'x' function: maximum axis: 0 }", {{"x", kTwoByThree}}, {{{3}, {4, 5, 6}}}},
    {"reduce_middle", "reduce { x: 'x' axis: 1 }", {{"x", {{2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}}}, {{{2, 2}, {4, 6, 12, 14}}}},
    {"reduce_minimum", "reduce { x: 'x' function: minimum axis: 1 }", {{"x", {{2, 2}, {3, -1, 2, 8}}}}, {{{2}, {-1, 2}}}},
    {"reduce_argmax", "reduce { x: 'x' function: argmax axis: 1 }", {{"x", {{2, 3}, {3, 5, 5, 2, 1, 0}}}}, {{{2}, {1, 0}}}},
    {"reduce_largest_size", "reduce { x: 'x' function: absolute_maximum }", {{"x", {{3}, {3, -5, 4}}}}, {{{1}, {5}}}},
    {"reduce_squares", "reduce { x: 'x' function: sum_of_squares }", {{"x", {{3}, {3, -5, 4}}}}, {{{1}, {50}}}},
    {"topk", "topk { x: 'x' k: '2' }", {{"x", {{2, 3}, {1, 3, 3, 9, 7, 8}}}},
     {{{2, 2}, {3, 3, 9, 8}}, {{2, 2}, {1, 2, 0, 2}}}},
    {"topk_probabilities", "topk { x: 'x' k: '2' softmax_first: true }", {{"x", {{1, 3}, {0, kLn2, 0}}}},
     {{{1, 2}, {0.5, 0.25}}, {{1, 2}, {1, 0}}}},
    {"topk_biased", "topk { x: 'x' k: '2' renormalize: true bias: 'b' }",  // 1, 3 + 0, 2 + 5: the bias chooses only
     {{"x", {{1, 3}, {1, 3, 2}}}, {"b", {{3}, {0, 0, 5}}}}, {{{1, 2}, {0.4, 0.6}}, {{1, 2}, {2, 1}}}},

    // ---- elements
    {"unary_relu", "unary { x: 'x' function: relu }", {{"x", {{2}, {-1, 2}}}}, {{{2}, {0, 2}}}},
    {"unary_linear", "unary { x: 'x' scale: '3' shift: '1' }", {{"x", {{2}, {-1, 2}}}}, {{{2}, {-2, 7}}}},
    {"unary_gelu", "unary { x: 'x' function: gelu }", {{"x", {{2}, {0, std::sqrt(2.0)}}}},
     {{{2}, {0, std::sqrt(0.5) * (1 + std::erf(1.0))}}}},
    {"unary_gelu_tanh", "unary { x: 'x' function: gelu_tanh }", {{"x", {{2}, {0, 1}}}},
     {{{2}, {0, 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * 1.044715))}}}},
    {"unary_silu", "unary { x: 'x' function: silu }", {{"x", {{2}, {0, kLn2}}}}, {{{2}, {0, kLn2 * 2 / 3}}}},
    {"unary_exp", "unary { x: 'x' function: exp }", {{"x", {{2}, {0, kLn2}}}}, {{{2}, {1, 2}}}},
    {"unary_sqrt", "unary { x: 'x' function: sqrt }", {{"x", {{2}, {4, 9}}}}, {{{2}, {2, 3}}}},
    {"unary_rsqrt", "unary { x: 'x' function: rsqrt }", {{"x", {{2}, {4, 16}}}}, {{{2}, {0.5, 0.25}}}},
    {"unary_square", "unary { x: 'x' function: square }", {{"x", {{2}, {4, -3}}}}, {{{2}, {16, 9}}}},
    {"unary_abs", "unary { x: 'x' function: abs }", {{"x", {{2}, {4, -3}}}}, {{{2}, {4, 3}}}},
    {"unary_negate", "unary { x: 'x' function: negate }", {{"x", {{2}, {4, -3}}}}, {{{2}, {-4, 3}}}},
    {"unary_sigmoid", "unary { x: 'x' function: sigmoid }", {{"x", {{2}, {0, kLn2}}}}, {{{2}, {0.5, 2.0 / 3}}}},
    {"unary_tanh", "unary { x: 'x' function: tanh }", {{"x", {{2}, {0, kLn2}}}}, {{{2}, {0, 0.6}}}},
    {"unary_reciprocal", "unary { x: 'x' function: reciprocal }", {{"x", {{2}, {4, -2}}}}, {{{2}, {0.25, -0.5}}}},
    {"unary_log", "unary { x: 'x' function: log }", {{"x", {{2}, {1, kE}}}}, {{{2}, {0, 1}}}},
    {"unary_floor", "unary { x: 'x' function: floor }", {{"x", {{2}, {1.5, -1.5}}}}, {{{2}, {1, -2}}}},
    {"binary_add", "binary { a: 'a' b: 'b' }", {{"a", kTwoByThree}, {"b", {{3}, {10, 20, 30}}}},
     {{{2, 3}, {11, 22, 33, 14, 25, 36}}}},
    {"binary_subtract", "binary { a: 'a' b: 'b' function: subtract }", {{"a", kTwoByThree}, {"b", {{2, 1}, {1, 2}}}},
     {{{2, 3}, {0, 1, 2, 2, 3, 4}}}},
    {"binary_multiply", "binary { a: 'a' b: 'b' function: multiply }", {{"a", {{2}, {3, 4}}}, {"b", {{2, 1}, {1, 2}}}},
     {{{2, 2}, {3, 4, 6, 8}}}},
    {"binary_divide", "binary { a: 'a' b: 'b' function: divide }", {{"a", {{2}, {3, 4}}}, {"b", {{1}, {2}}}}, {{{2}, {1.5, 2}}}},
    {"binary_maximum", "binary { a: 'a' b: 'b' function: maximum }", {{"a", {{2}, {3, 4}}}, {"b", {{2}, {5, 2}}}}, {{{2}, {5, 4}}}},
    {"binary_minimum", "binary { a: 'a' b: 'b' function: minimum }", {{"a", {{2}, {3, 4}}}, {"b", {{2}, {5, 2}}}}, {{{2}, {3, 2}}}},
    {"silu_and_mul", "silu_and_mul { x: 'x' }", {{"x", {{1, 4}, {0, kLn2, 5, 3}}}}, {{{1, 2}, {0, 2 * kLn2}}}},
    {"relu_and_mul", "silu_and_mul { x: 'x' function: relu }", {{"x", {{2, 2}, {-1, 5, 2, 3}}}}, {{{2, 1}, {0, 6}}}},

    // ---- moving elements
    {"gather", "gather { table: 't' index: 'i' }", {{"t", kThreeByTwo}, {"i", {{3}, {2, 7, 0}}}},
     {{{3, 2}, {2, 2, 0, 0, 1, 0}}}},
    {"gather_divided", "gather { table: 't' index: 'i' divide: '2' }", {{"t", kThreeByTwo}, {"i", {{2}, {5, 1}}}},
     {{{2, 2}, {2, 2, 1, 0}}}},
    {"scatter", "scatter { x: 'x' index: 'i' rows: '3' }", {{"x", {{2, 2}, {1, 2, 3, 4}}}, {"i", {{2}, {2, 0}}}},
     {{{3, 2}, {3, 4, 0, 0, 1, 2}}}},
    {"scatter_add", "scatter { x: 'x' index: 'i' accumulate: true base: 'b' }",
     {{"x", {{3, 1}, {1, 2, 3}}}, {"i", {{3}, {1, 1, -1}}}, {"b", {{2, 1}, {10, 20}}}}, {{{2, 1}, {10, 23}}}},
    {"histogram", "histogram { x: 'x' bins: '3' low: '1' }", {{"x", {{6}, {0, 1, 3, 3, 4, 2}}}}, {{{3}, {1, 1, 2}}}},
    {"sort_by_key", "sort_by_key { x: 'x' bins: '3' }", {{"x", {{5}, {2, 0, 2, 0, 0}}}},
     {{{5}, {1, 3, 4, 0, 2}}, {{4}, {0, 3, 3, 5}}}},
    {"view", "view { x: 'x' shape: '2' shape: '2' offset: '1' stride: '3' stride: '1' }", {{"x", kTwoByThree}},
     {{{2, 2}, {2, 3, 5, 6}}}},
    {"view_contiguous", "view { x: 'x' shape: '3' shape: '2' }", {{"x", kTwoByThree}}, {{{3, 2}, {1, 2, 3, 4, 5, 6}}}},
    {"transpose", "transpose { x: 'x' order: 1 order: 0 }", {{"x", kTwoByThree}}, {{{3, 2}, {1, 4, 2, 5, 3, 6}}}},
    {"transpose_three", "transpose { x: 'x' order: 2 order: 0 order: 1 }", {{"x", {{1, 2, 3}, {1, 2, 3, 4, 5, 6}}}},
     {{{3, 1, 2}, {1, 4, 2, 5, 3, 6}}}},
    {"concat_rows", "concat { x: 'a' x: 'b' }", {{"a", kThreeByTwo}, {"b", {{1, 2}, {8, 9}}}},
     {{{4, 2}, {1, 0, 0, 1, 2, 2, 8, 9}}}},
    {"concat_columns", "concat { x: 'a' x: 'b' axis: 1 }", {{"a", {{2, 1}, {1, 2}}}, {"b", {{2, 2}, {3, 4, 5, 6}}}},
     {{{2, 3}, {1, 3, 4, 2, 5, 6}}}},

    // ---- quantisation: e4m3 reaches 448 and has 3 bits of fraction, s8 127
    {"quantize_given", "quantize { x: 'x' type: i8 mode: given scale: 's' }",
     {{"x", {{2, 2}, {1, 2.6, -10, 3}}}, {"s", {{2, 1}, {0.5, 2}}}}, {{{2, 2}, {2, 5, -5, 2}}, {{2, 1}, {0.5, 2}}}},
    {"quantize_tensor", "quantize { x: 'x' type: i8 mode: per_tensor }", {{"x", {{2, 2}, {254, -254, 2, 5}}}},
     {{{2, 2}, {127, -127, 1, 2}}, {{1}, {2}}}},
    {"quantize_rows", "quantize { x: 'x' type: e4m3 mode: per_row }", {{"x", {{2, 2}, {896, 34, 0, 0}}}},
     {{{2, 2}, {448, 16, 0, 0}}, {{2}, {2, 0}}}},  // 17 lies between 16 and 18: to even
    {"quantize_groups", "quantize { x: 'x' type: i8 mode: per_group group: '2' scale_floor: 1 }",
     {{"x", {{1, 4}, {254, 2, 3, 4}}}}, {{{1, 4}, {127, 1, 3, 4}}, {{1, 2}, {2, 1}}}},
};
// clang-format on

class CheckOperation : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(ByHand, CheckOperation, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST_P(CheckOperation, GivesTheValuesWorkedOutByHand) {
  const Results results = RunOperation(GetParam().operation, GetParam().in);
  ASSERT_TRUE(results.ok()) << results.error().ToString();
  ASSERT_EQ(results->size(), GetParam().out.size());
  for (size_t i = 0; i < results->size(); ++i) {
    const Tensor& got = (*results)[i];
    const Tensor& want = GetParam().out[i];
    ASSERT_EQ(got.shape, want.shape) << "result " << i;
    for (size_t j = 0; j < want.data.size(); ++j) {
      if (std::isinf(want.data[j])) {
        EXPECT_EQ(got.data[j], want.data[j]) << "result " << i << ", element " << j;
      } else {
        EXPECT_NEAR(got.data[j], want.data[j], 1e-12) << "result " << i << ", element " << j;
      }
    }
  }
}

TEST(CheckOperations, EachHasACase) {
  std::set<std::string> tested;
  for (const Case& each : kCases) tested.insert(each.operation.substr(0, each.operation.find(' ')));
  const auto* kinds = pb::Operation::descriptor()->FindOneofByName("kind");
  ASSERT_NE(kinds, nullptr);
  for (int i = 0; i < kinds->field_count(); ++i)
    EXPECT_TRUE(tested.contains(kinds->field(i)->name())) << kinds->field(i)->name();
  // Likewise each function of the element-wise ones.
  for (const auto* function : {pb::Unary::Function_descriptor(), pb::Binary::Function_descriptor()})
    for (int i = 1; i < function->value_count(); ++i) {
      bool found = false;
      for (const Case& each : kCases)
        found |= each.operation.find("function: " + function->value(i)->name() + " ") != std::string::npos;
      EXPECT_TRUE(found) << function->value(i)->full_name();
    }
}

// What does not fit is the description's mistake, and is said.
TEST(CheckOperations, RefuseWhatDoesNotFit) {
  const std::map<std::string, Tensor> tensors = {{"x", kTwoByThree},
                                                 {"y", {{2}, {0, 9}}},
                                                 {"w", {{2, 2, 2}, std::vector<double>(8)}},
                                                 {"e", {{2}, {0, 5}}}};
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"matmul { a: 'x' b: 'x' }", "the inner dimensions are 3 and 2"},
      {"matmul { a: 'y' b: 'x' }", "'y' has 1 dimensions, at least 2 are needed"},
      {"softmax { x: 'z' }", "there is no 'z'"},
      {"softmax { }", "an operand is not given"},
      {"layernorm { x: 'x' weight: 'y' }", "rows of 3, weight or bias of another size"},
      {"rope { x: 'x' rotary_dim: '5' }", "rotary dimension 5 of heads of 3"},
      {"binary { a: 'x' b: 'y' }", "[2, 3] and [2] do not broadcast"},
      {"reduce { x: 'x' axis: 2 }", "axis 2 of 2 dimensions"},
      {"topk { x: 'x' k: '4' }", "4 of rows of 3"},
      {"grouped_matmul { x: 'w' weight: 'w' expert: 'e' }", "4 rows, 2 experts"},
      {"gather { table: 'x' index: 'y' divide: '0' }", "the divisor is below 1"},
      {"histogram { x: 'x' }", "0 bins"},
      {"sort_by_key { x: 'y' bins: '3' }", "9 is no bin of 3"},
      {"quantize { x: 'x' type: i8 mode: per_group group: '2' }", "groups of 2 in rows of 3"},
      {"silu_and_mul { x: 'x' }", "rows of 3"},
      {"", "an operation that this heddle does not know"},
  };
  for (const auto& [operation, message] : wrong) {
    const Results results = RunOperation(operation, tensors);
    ASSERT_FALSE(results.ok()) << operation;
    EXPECT_NE(results.error().message.find(message), std::string::npos)
        << operation << ": " << results.error().ToString();
    EXPECT_EQ(results.error().code, ExitCode::kTrace);
  }
}

}  // namespace
}  // namespace heddle::trace
