// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear/matmul_primitive.h"

#include <array>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "base/check.h"
#include "kernels/cpu/linear/onednn_matmul.h"
#include "kernels/simd/thread_scratch.h"

// Choice of forms: GFLOP/s of one thread of an AMD EPYC (Zen 4), oneDNN 2.6.3, tiles of 128 x 256.
//   bf16 by packed, K 384 ... 3072: 231 (brg:avx512_core_bf16). If C is part of a wider matrix,
//     oneDNN has no fast kernel for a packed B and uses its reference (under 0.1), so C must be
//     contiguous.
//   float by transposed, K 384 ... 3072: 111 (brg:avx512_core); dnnl_sgemm 98 to 101. It needs A, B
//     and C contiguous, too.
//   bf16 transposed by plain, not offered as a form, K 2048: 198, 219 for 256 x 512 (gemm:jit,
//     which copies both into its own packed form, again for every tile).

namespace tug::kernels {
namespace {

using dnnl::memory;

constexpr auto kFloat = memory::data_type::f32;
constexpr auto kBf16 = memory::data_type::bf16;

// Per thread. A model uses about 60: 5 layers, 3 products, 4 tiles.
constexpr size_t kPrimitivesKept = 512;

const dnnl::engine& Cpu() {
  static const dnnl::engine* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// A matrix [rows][columns] in row-major order, or with kYes stored as its transpose.
memory::desc Matrix(memory::data_type type, Transpose transpose, int64_t rows, int64_t columns) {
  const bool transposed = transpose == Transpose::kYes;
  return memory::desc({rows, columns}, type,
                      transposed ? memory::format_tag::ba : memory::format_tag::ab);
}

// Layout of pack_bf16.h.
memory::desc PackedMatrix(int64_t k, int64_t n) {
  return memory::desc({k, n}, memory::data_type::bf16, memory::format_tag::BA16a64b2a);
}

dnnl::matmul::primitive_desc Describe(const MatMulForm& form) {
  UseOneOpenMpThread();  // oneDNN plans for the number of OpenMP threads
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (form.accumulate) {
    dnnl::post_ops add;
    add.append_sum(1.0f);
    attributes.set_post_ops(add);
  }
  constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;
  const auto [operands, accumulate, m, n, k] = form;
  const bool packed = operands == MatMulForm::Operands::kBf16ByPacked;
  return DescribeMatMul(Cpu(), Matrix(packed ? kBf16 : kFloat, kNo, m, k),
                        packed ? PackedMatrix(k, n) : Matrix(kFloat, kYes, k, n),
                        Matrix(kFloat, kNo, m, n), attributes);
}

dnnl::stream& ThisThreadsStream() {
  thread_local dnnl::stream stream(Cpu());
  return stream;
}

}  // namespace

bool HasBf16Products() {
  static const bool has = [] {
    UseOneOpenMpThread();
    const memory::desc dense = Matrix(kBf16, Transpose::kNo, 64, 64);
    const dnnl::matmul::primitive_desc found =
        DescribeMatMul(Cpu(), dense, PackedMatrix(64, 64), dense, {}, /*allow_empty=*/true);
    if (!found) return false;
    const std::string_view kernel = found.impl_info_str();
    return kernel.starts_with("brg:avx512_core_bf16") || kernel.starts_with("brg:avx512_core_amx");
  }();
  return has;
}

// Memory objects are reused: creating them costs as much as a small product.
struct MatMulPrimitive::State {
  explicit State(const dnnl::matmul::primitive_desc& of)
      : matmul(of),
        a(of.src_desc(), Cpu(), nullptr),
        b(of.weights_desc(), Cpu(), nullptr),
        c(of.dst_desc(), Cpu(), nullptr),
        scratch(of.scratchpad_desc(), Cpu(), nullptr),
        scratch_bytes(of.scratchpad_desc().get_size()),
        kernel(of.impl_info_str()),
        arguments{{{DNNL_ARG_SRC, a.get()},
                   {DNNL_ARG_WEIGHTS, b.get()},
                   {DNNL_ARG_DST, c.get()},
                   {DNNL_ARG_SCRATCHPAD, scratch.get()}}} {}

  dnnl::matmul matmul;
  memory a;
  memory b;
  memory c;
  memory scratch;
  size_t scratch_bytes;
  std::string kernel;
  std::array<dnnl_exec_arg_t, 4> arguments;
};

MatMulPrimitive::MatMulPrimitive(const MatMulForm& form)
    : state_(std::make_unique<State>(Describe(form))) {}

MatMulPrimitive::~MatMulPrimitive() = default;

const std::string& MatMulPrimitive::kernel() const { return state_->kernel; }

MatMulPrimitive& MatMulPrimitive::Of(const MatMulForm& form) {
  thread_local std::map<MatMulForm, MatMulPrimitive> primitives;
  const auto found = primitives.find(form);
  if (found != primitives.end()) return found->second;
  if (primitives.size() >= kPrimitivesKept) primitives.clear();
  return primitives.try_emplace(form, form).first->second;
}

void MatMulPrimitive::Run(const void* a, const void* b, float* c) {
  UseOneOpenMpThread();
  thread_local ThreadScratch scratch;
  state_->a.set_data_handle(const_cast<void*>(a));
  state_->b.set_data_handle(const_cast<void*>(b));
  state_->c.set_data_handle(c);
  state_->scratch.set_data_handle(scratch.Bytes(state_->scratch_bytes));
  const std::array<dnnl_exec_arg_t, 4>& arguments = state_->arguments;
  TUG_CHECK_EQ(dnnl_primitive_execute(state_->matmul.get(), ThisThreadsStream().get(),
                                      static_cast<int>(arguments.size()), arguments.data()),
               dnnl_success)
      << state_->kernel;
}

}  // namespace tug::kernels
