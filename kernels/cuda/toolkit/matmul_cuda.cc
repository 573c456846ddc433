// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/toolkit/matmul_cuda.h"

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
#include "kernels/cuda/toolkit/matmul_cuda-inl.h"

// cuBLASLt is column-major: a row-major C [m][n] is its C^T, n x m. So it multiplies op(B)^T by
// op(A)^T, and a bias of n elements runs along its rows.

namespace tug::kernels::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;
constexpr size_t kMaxPlans = 4096;
constexpr uint32_t kBoundary = 16;  // maximum alignment that a plan requires

// The only place that knows cuBLASLt's errors.
absl::Status CublasStatus(cublasStatus_t error, absl::string_view call) {
  if (error == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat("GPU: ", call, ": ", cublasLtGetStatusString(error),
                                        " (cuBLASLt error ", static_cast<int>(error), ")");
  switch (error) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return absl::UnavailableError(absl::StrCat("no ", text, "; set device to CPU"));
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::ResourceExhaustedError(text);
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return absl::UnimplementedError(text);
    default:
      return absl::InternalError(text);
  }
}

// A handle that cuBLASLt creates and destroys.
template <typename Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>,
                              decltype([](Handle handle) { static_cast<void>(kDestroy(handle)); })>;
using Description = Owned<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>;
using Cublas = Owned<cublasLtHandle_t, &cublasLtDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, &cublasLtMatmulPreferenceDestroy>;

template <typename T>
constexpr cudaDataType_t kType = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;

// Everything that the choice of an algorithm depends on.
struct Product {
  cudaDataType_t type, type_c;
  Transpose ta, tb;
  int64_t m, n, k, lda, ldb, ldc;
  cublasLtEpilogue_t epilogue;
  uint32_t boundary_a, boundary_b, boundary_c;  // alignment in bytes, at most kBoundary

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
  bool found = false;  // whether an algorithm was found
};

template <typename T>
absl::Status Describe(const Plan& plan, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return CublasStatus(
      cublasLtMatmulDescSetAttribute(plan.description.get(), attribute, &value, sizeof(value)),
      "cublasLtMatmulDescSetAttribute");
}

// Layout of a matrix [rows][columns] with `stride` elements between the starts of adjacent rows.
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
  // cuBLASLt's first matrix is B.
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

// Sets the pointers of an epilogue. The heuristic derives their alignment from the values; it does
// not read the memory.
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
  if (state.plans.size() == kMaxPlans) state.plans.clear();
  return &state.plans.emplace(p, std::move(plan)).first->second;
}

cublasLtEpilogue_t EpilogueOf(bool bias, bool gelu) {
  if (gelu) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// Queues a product of a non-empty shape.
template <typename T, typename C>
absl::Status Multiply(MatMulHandle& handle, const MatMulArgs<T, C>& args,
                      const Epilogue<C>& epilogue, const Stream& stream) {
  const auto& [m, n, k, a, b, c, ldc, accumulate] = args;
  const Product p = {.type = kType<T>,
                     .type_c = kType<C>,
                     .ta = a.op,
                     .tb = b.op,
                     .m = m,
                     .n = n,
                     .k = k,
                     .lda = a.stride,
                     .ldb = b.stride,
                     .ldc = ldc,
                     .epilogue = EpilogueOf(epilogue.bias != nullptr, epilogue.pre_gelu != nullptr),
                     .boundary_a = BoundaryOf(a.data),
                     .boundary_b = BoundaryOf(b.data),
                     .boundary_c = BoundaryOf(c)};
  MatMulHandle::State& state = handle.state();
  ASSIGN_OR_RETURN(const Plan* const plan, PlanOf(state, p));
  if (!plan->found) {
    return absl::UnimplementedError(
        absl::StrCat("GPU: cuBLASLt has no algorithm for ", p.type == CUDA_R_32F ? "FP32" : "BF16",
                     " m=", m, " n=", n, " k=", k, " epilogue=", static_cast<int>(p.epilogue)));
  }
  RETURN_IF_ERROR(DescribeEpilogue(p, *plan, epilogue.bias, epilogue.pre_gelu));
  const float one = 1.0f, beta = accumulate ? 1.0f : 0.0f;
  return CublasStatus(cublasLtMatmul(state.cublas.get(), plan->description.get(), &one, b.data,
                                     plan->b.get(), a.data, plan->a.get(), &beta, c, plan->c.get(),
                                     c, plan->c.get(), &plan->algorithm, state.workspace.data(),
                                     kWorkspaceBytes, static_cast<cudaStream_t>(stream.handle())),
                      "cublasLtMatmul");
}

}  // namespace

template <typename T, typename C>
absl::Status MatMul(MatMulHandle& handle, const MatMulArgs<T, C>& args, const Stream& stream) {
  TUG_CHECK(args.m >= 0 && args.n >= 0 && args.k >= 0);
  if (args.m == 0 || args.n == 0) return absl::OkStatus();
  if (args.k > 0) return Multiply(handle, args, {}, stream);
  for (int64_t i = 0; !args.accumulate && i < args.m; ++i) {
    const size_t bytes = static_cast<size_t>(args.n) * sizeof(C);
    RETURN_IF_ERROR(FillZeroAsync(args.c + i * args.ldc, bytes, stream));
  }
  return absl::OkStatus();
}

template <typename T, typename C>
absl::Status FusedMatMul(MatMulHandle& handle, const MatMulArgs<T, C>& args,
                         const Epilogue<C>& epilogue, const Stream& stream) {
  TUG_CHECK(args.m >= 0 && args.n >= 0 && args.k >= 0 && !args.accumulate);
  if (args.m == 0 || args.n == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckFusible(args, epilogue));
  return Multiply(handle, args, epilogue, stream);
}

TUG_INSTANTIATE_MATMUL

}  // namespace tug::kernels::cuda
