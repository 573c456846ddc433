#include "kernels/matmul_cuda.h"

#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <map>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/matmul_cuda-inl.h"

// cuBLASLt is column-major: a row-major C [m][n] is its C^T, n x m, so that it multiplies op(B)^T
// by op(A)^T, and a bias of n elements runs along what it calls rows.

namespace tug::kernels::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;
constexpr size_t kMostPlans = 4096;
constexpr uint32_t kBoundary = 16;  // the best that a plan asks for

// The one place that knows cuBLASLt's errors.
absl::Status CublasStatus(cublasStatus_t error, absl::string_view call) {
  if (error == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat("GPU: ", call, ": ", cublasLtGetStatusString(error),
                                        " (cuBLASLt error ", static_cast<int>(error), ")");
  switch (error) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return absl::UnavailableError(absl::StrCat("no ", text, "; use compute on the CPU"));
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::ResourceExhaustedError(text);
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return absl::UnimplementedError(text);
    default:
      return absl::InternalError(text);
  }
}

// One that cuBLASLt makes and destroys.
template <typename Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>,
                              decltype([](Handle handle) { static_cast<void>(kDestroy(handle)); })>;
using Description = Owned<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>;
using Cublas = Owned<cublasLtHandle_t, &cublasLtDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, &cublasLtMatmulPreferenceDestroy>;

template <typename T>
constexpr cudaDataType_t kType = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;

// All that the choice of an algorithm depends on.
struct Product {
  cudaDataType_t type, type_c;
  Transpose ta, tb;
  int64_t m, n, k, lda, ldb, ldc;
  cublasLtEpilogue_t epilogue;
  uint32_t boundary_a, boundary_b, boundary_c;  // in bytes, kBoundary at most

  auto operator<=>(const Product&) const = default;
};

uint32_t BoundaryOf(const void* pointer) {
  const auto at = reinterpret_cast<uintptr_t>(pointer) | kBoundary;
  return uint32_t{1} << std::countr_zero(at);
}

struct Plan {
  Description description;
  Layout a, b, c;
  cublasLtMatmulAlgo_t algorithm;
  bool found = false;  // an algorithm
};

template <typename T>
absl::Status Describe(const Plan& plan, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return CublasStatus(
      cublasLtMatmulDescSetAttribute(plan.description.get(), attribute, &value, sizeof(value)),
      "cublasLtMatmulDescSetAttribute");
}

// Stored [rows][columns] with `stride` elements from row to row.
absl::Status MakeLayout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t stride,
                        Layout& layout) {
  cublasLtMatrixLayout_t made = nullptr;
  const cublasStatus_t error = cublasLtMatrixLayoutCreate(
      &made, type, static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), stride);
  layout.reset(made);
  return CublasStatus(error, "cublasLtMatrixLayoutCreate");
}

template <typename T>
absl::Status Prefer(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
                    const T& value) {
  return CublasStatus(
      cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
      "cublasLtMatmulPreferenceSetAttribute");
}

absl::Status DescribeProduct(const Product& p, Plan& plan) {
  cublasLtMatmulDesc_t made = nullptr;
  const cublasStatus_t error = cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  plan.description.reset(made);
  RETURN_IF_ERROR(CublasStatus(error, "cublasLtMatmulDescCreate"));
  // Its first matrix is B.
  const auto op = [](Transpose t) { return t == Transpose::kYes ? CUBLAS_OP_T : CUBLAS_OP_N; };
  RETURN_IF_ERROR(Describe(plan, CUBLASLT_MATMUL_DESC_TRANSA, op(p.tb)));
  RETURN_IF_ERROR(Describe(plan, CUBLASLT_MATMUL_DESC_TRANSB, op(p.ta)));
  RETURN_IF_ERROR(Describe(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue));
  RETURN_IF_ERROR(p.ta == Transpose::kYes ? MakeLayout(p.type, p.k, p.m, p.lda, plan.a)
                                          : MakeLayout(p.type, p.m, p.k, p.lda, plan.a));
  RETURN_IF_ERROR(p.tb == Transpose::kYes ? MakeLayout(p.type, p.n, p.k, p.ldb, plan.b)
                                          : MakeLayout(p.type, p.k, p.n, p.ldb, plan.b));
  return MakeLayout(p.type_c, p.m, p.n, p.ldc, plan.c);
}

// The pointers of an epilogue. From their values alone the heuristic sees at which boundaries they
// lie; what they point to is not read then.
absl::Status DescribeEpilogue(const Product& p, const Plan& plan, const void* bias,
                              void* pre_gelu) {
  if (bias != nullptr) RETURN_IF_ERROR(Describe(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  if (pre_gelu == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(Describe(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pre_gelu));
  return Describe(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.ldc);
}

absl::Status ChooseAlgorithm(cublasLtHandle_t handle, const Product& p, Plan& plan) {
  cublasLtMatmulPreference_t made = nullptr;
  const cublasStatus_t error = cublasLtMatmulPreferenceCreate(&made);
  const Preference preference(made);
  RETURN_IF_ERROR(CublasStatus(error, "cublasLtMatmulPreferenceCreate"));
  RETURN_IF_ERROR(
      Prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes}));
  RETURN_IF_ERROR(Prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  RETURN_IF_ERROR(Prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.boundary_b));
  RETURN_IF_ERROR(Prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.boundary_a));
  RETURN_IF_ERROR(Prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.boundary_c));
  RETURN_IF_ERROR(Prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.boundary_c));
  cublasLtMatmulHeuristicResult_t result = {};
  int results = 0;
  const cublasStatus_t asked = cublasLtMatmulAlgoGetHeuristic(
      handle, plan.description.get(), plan.b.get(), plan.a.get(), plan.c.get(), plan.c.get(),
      preference.get(), 1, &result, &results);
  if (asked == CUBLAS_STATUS_NOT_SUPPORTED) return absl::OkStatus();
  RETURN_IF_ERROR(CublasStatus(asked, "cublasLtMatmulAlgoGetHeuristic"));
  plan.found = results == 1 && result.state == CUBLAS_STATUS_SUCCESS;
  plan.algorithm = result.algo;
  return absl::OkStatus();
}

}  // namespace

struct MatMulHandle::State {
  Cublas cublas;
  DeviceBuffer workspace;
  DeviceBuffer bias;
  std::map<Product, Plan> plans = {};
};

void MatMulHandle::Destroy::operator()(State* state) const { delete state; }
void* MatMulHandle::bias_scratch() const { return state_->bias.data(); }

absl::StatusOr<MatMulHandle> MatMulHandle::Create() {
  RETURN_IF_ERROR(CheckGpu());
  ASSIGN_OR_RETURN(DeviceBuffer workspace, DeviceBuffer::Create(kWorkspaceBytes));
  ASSIGN_OR_RETURN(DeviceBuffer bias, DeviceBuffer::Create(kBiasBytes));
  cublasLtHandle_t cublas = nullptr;
  RETURN_IF_ERROR(CublasStatus(cublasLtCreate(&cublas), "cublasLtCreate"));
  return MatMulHandle(new State{
      .cublas = Cublas(cublas), .workspace = std::move(workspace), .bias = std::move(bias)});
}

namespace {

absl::StatusOr<const Plan*> PlanOf(MatMulHandle::State& state, const Product& p) {
  if (const auto found = state.plans.find(p); found != state.plans.end()) return &found->second;
  Plan plan;
  RETURN_IF_ERROR(DescribeProduct(p, plan));
  auto* const at_boundary = reinterpret_cast<void*>(uintptr_t{kBoundary});
  const bool bias = (p.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  const bool gelu = (p.epilogue & CUBLASLT_EPILOGUE_GELU_AUX) == CUBLASLT_EPILOGUE_GELU_AUX;
  RETURN_IF_ERROR(
      DescribeEpilogue(p, plan, bias ? at_boundary : nullptr, gelu ? at_boundary : nullptr));
  RETURN_IF_ERROR(ChooseAlgorithm(state.cublas.get(), p, plan));
  if (state.plans.size() == kMostPlans) state.plans.clear();
  return &state.plans.emplace(p, std::move(plan)).first->second;
}

struct Operands {
  const void* a;
  const void* b;
  const void* bias;
  void* pre_gelu;
  float beta;
  void* c;
};

absl::Status Multiply(MatMulHandle& handle, const Product& p, const Operands& on,
                      const Stream& stream) {
  MatMulHandle::State& state = handle.state();
  ASSIGN_OR_RETURN(const Plan* const plan, PlanOf(state, p));
  if (!plan->found) {
    return absl::UnimplementedError(absl::StrCat(
        "GPU: cuBLASLt has no algorithm for ", p.type == CUDA_R_32F ? "FP32" : "BF16", " m=", p.m,
        " n=", p.n, " k=", p.k, " epilogue=", static_cast<int>(p.epilogue)));
  }
  RETURN_IF_ERROR(DescribeEpilogue(p, *plan, on.bias, on.pre_gelu));
  const float one = 1.0f;
  return CublasStatus(
      cublasLtMatmul(state.cublas.get(), plan->description.get(), &one, on.b, plan->b.get(), on.a,
                     plan->a.get(), &on.beta, on.c, plan->c.get(), on.c, plan->c.get(),
                     &plan->algorithm, state.workspace.data(), kWorkspaceBytes,
                     static_cast<cudaStream_t>(stream.handle())),
      "cublasLtMatmul");
}

cublasLtEpilogue_t EpilogueOf(bool bias, bool gelu) {
  if (gelu) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

template <typename T, typename C>
absl::Status MatMul(MatMulHandle& handle, Transpose ta, Transpose tb, int64_t m, int64_t n,
                    int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, float beta, C* c,
                    int64_t ldc, const Stream& stream) {
  TUG_CHECK(m >= 0 && n >= 0 && k >= 0 && (beta == 0.0f || beta == 1.0f));
  if (m == 0 || n == 0) return absl::OkStatus();
  if (k == 0) {
    for (int64_t i = 0; beta == 0.0f && i < m; ++i) {
      RETURN_IF_ERROR(FillZeroAsync(c + i * ldc, static_cast<size_t>(n) * sizeof(C), stream));
    }
    return absl::OkStatus();
  }
  return Multiply(handle,
                  {kType<T>, kType<C>, ta, tb, m, n, k, lda, ldb, ldc, CUBLASLT_EPILOGUE_DEFAULT,
                   BoundaryOf(a), BoundaryOf(b), BoundaryOf(c)},
                  {a, b, nullptr, nullptr, beta, c}, stream);
}

template <typename T, typename C>
absl::Status FusedMatMul(MatMulHandle& handle, Transpose ta, Transpose tb, int64_t m, int64_t n,
                         int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
                         const Epilogue<C>& epilogue, C* c, int64_t ldc, const Stream& stream) {
  TUG_CHECK(m >= 0 && n >= 0 && k >= 0);
  if (m == 0 || n == 0) return absl::OkStatus();
  const bool gelu = epilogue.pre_gelu != nullptr;
  RETURN_IF_ERROR(CheckFusible(k, epilogue, c, ldc));
  return Multiply(
      handle,
      {kType<T>, kType<C>, ta, tb, m, n, k, lda, ldb, ldc,
       EpilogueOf(epilogue.bias != nullptr, gelu), BoundaryOf(a), BoundaryOf(b), BoundaryOf(c)},
      {a, b, epilogue.bias, epilogue.pre_gelu, 0.0f, c}, stream);
}

TUG_INSTANTIATE_MATMUL

}  // namespace tug::kernels::cuda
