#include "kernels/matmul_primitive.h"

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>

#include "kernels/thread_scratch.h"

// Which form: GFLOP/s of one thread of an AMD EPYC (Zen 4), oneDNN 2.6.3, tiles of 128 x 256.
//   bf16 by packed, K 384 ... 3072: 231 (brg:avx512_core_bf16). With C inside a wider matrix oneDNN
//     has no fast kernel for a packed B and takes its reference (under 0.1), so C has no gaps.
//   float by transposed, K 384 ... 3072: 111 (brg:avx512_core); dnnl_sgemm 98 to 101. It wants A, B
//     and C without gaps too.
//   bf16 transposed by plain, which no form is, K 2048: 198, 219 for 256 x 512 (gemm:jit, which
//     copies both into its own packed form, for every tile again).

namespace tug::kernels {
namespace {

using dnnl::memory;

constexpr auto kFloat = memory::data_type::f32;
constexpr auto kBf16 = memory::data_type::bf16;

constexpr size_t kPrimitivesKept = 512;  // a model has about 60: 5 layers, 3 products, 4 tiles

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

// As in pack_bf16.h.
memory::desc PackedMatrix(int64_t k, int64_t n) {
  return memory::desc({k, n}, memory::data_type::bf16, memory::format_tag::BA16a64b2a);
}

dnnl::matmul::desc ProductOf(const MatMulForm& form) {
  using Operands = MatMulForm::Operands;
  constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;
  const auto [operands, accumulate, m, n, k] = form;
  switch (operands) {
    case Operands::kFloatByTransposed:
      return {Matrix(kFloat, kNo, m, k), Matrix(kFloat, kYes, k, n), Matrix(kFloat, kNo, m, n)};
    case Operands::kBf16ByPacked:
      break;
  }
  return {Matrix(kBf16, kNo, m, k), PackedMatrix(k, n), Matrix(kFloat, kNo, m, n)};
}

dnnl::matmul::primitive_desc Describe(const MatMulForm& form) {
  UseOneOpenMpThread();  // what oneDNN plans for
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (form.accumulate) {
    dnnl::post_ops add;
    add.append_sum(1.0f);
    attributes.set_post_ops(add);
  }
  return {ProductOf(form), attributes, Cpu()};
}

memory At(const memory::desc& desc, const void* data) {
  return memory(desc, Cpu(), const_cast<void*>(data));
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
    const dnnl::matmul::primitive_desc found({dense, PackedMatrix(64, 64), dense},
                                             dnnl::primitive_attr(), Cpu(), /*allow_empty=*/true);
    if (!found) return false;
    const std::string_view kernel = found.impl_info_str();
    return kernel.starts_with("brg:avx512_core_bf16") || kernel.starts_with("brg:avx512_core_amx");
  }();
  return has;
}

struct MatMulPrimitive::State {
  explicit State(const dnnl::matmul::primitive_desc& of)
      : a(of.src_desc()),
        b(of.weights_desc()),
        c(of.dst_desc()),
        scratch(of.scratchpad_desc()),
        matmul(of),
        kernel(of.impl_info_str()) {}

  memory::desc a;
  memory::desc b;
  memory::desc c;
  memory::desc scratch;
  dnnl::matmul matmul;
  std::string kernel;
};

MatMulPrimitive::MatMulPrimitive(const MatMulForm& form)
    : state_(std::make_unique<State>(Describe(form))) {}

MatMulPrimitive::~MatMulPrimitive() = default;

const std::string& MatMulPrimitive::kernel() const { return state_->kernel; }

std::shared_ptr<const MatMulPrimitive> MatMulPrimitive::Find(const MatMulForm& form) {
  // Of the calling thread, so no lock. shared_ptr: a caller may hold one while others replace it.
  thread_local std::map<MatMulForm, std::shared_ptr<const MatMulPrimitive>> primitives;
  const auto found = primitives.find(form);
  if (found != primitives.end()) return found->second;
  if (primitives.size() >= kPrimitivesKept) primitives.clear();
  return primitives.emplace(form, std::make_shared<const MatMulPrimitive>(form)).first->second;
}

void MatMulPrimitive::Run(const void* a, const void* b, float* c) const {
  UseOneOpenMpThread();
  thread_local ThreadScratch scratch;
  const std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, At(state_->a, a)},
      {DNNL_ARG_WEIGHTS, At(state_->b, b)},
      {DNNL_ARG_DST, At(state_->c, c)},
      {DNNL_ARG_SCRATCHPAD, At(state_->scratch, scratch.Bytes(state_->scratch.get_size()))}};
  state_->matmul.execute(ThisThreadsStream(), arguments);
}

}  // namespace tug::kernels
