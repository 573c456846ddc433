#include "kernels/matmul_primitive.h"

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>

#include "kernels/thread_scratch.h"

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
memory::desc Matrix(memory::data_type type, Transpose transpose, int64_t rows, int64_t columns,
                    int64_t stride) {
  const bool transposed = transpose == Transpose::kYes;
  return memory::desc({rows, columns}, type,
                      transposed ? memory::dims{1, stride} : memory::dims{stride, 1});
}

// As in pack_bf16.h.
memory::desc PackedMatrix(int64_t k, int64_t n) {
  return memory::desc({k, n}, memory::data_type::bf16, memory::format_tag::BA16a64b2a);
}

dnnl::matmul::desc ProductOf(const MatMulForm& form) {
  using Operands = MatMulForm::Operands;
  constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;
  const auto [operands, accumulate, m, n, k, lda, ldb, ldc] = form;
  switch (operands) {
    case Operands::kFloatByTransposed:
      return {Matrix(kFloat, kNo, m, k, k), Matrix(kFloat, kYes, k, n, k),
              Matrix(kFloat, kNo, m, n, n)};
    case Operands::kBf16ByPacked:
      return {Matrix(kBf16, kNo, m, k, k), PackedMatrix(k, n), Matrix(kFloat, kNo, m, n, n)};
    case Operands::kTransposedBf16ByPlain:
      break;
  }
  return {Matrix(kBf16, kYes, m, k, lda), Matrix(kBf16, kNo, k, n, ldb),
          Matrix(kFloat, kNo, m, n, ldc)};
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
    const memory::desc dense = Matrix(kBf16, Transpose::kNo, 64, 64, 64);
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
        matmul(of) {}

  memory::desc a;
  memory::desc b;
  memory::desc c;
  memory::desc scratch;
  dnnl::matmul matmul;
};

MatMulPrimitive::MatMulPrimitive(const MatMulForm& form)
    : state_(std::make_unique<State>(Describe(form))) {}

MatMulPrimitive::~MatMulPrimitive() = default;

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
