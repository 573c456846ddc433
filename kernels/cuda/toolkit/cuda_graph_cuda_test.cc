// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/toolkit/cuda_graph.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "kernels/bf16.h"
#include "kernels/cuda/add_cuda.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/cuda/toolkit/matmul_cuda.h"

namespace tug::kernels::cuda {
namespace {

using CudaGraph = CudaTest;

constexpr int64_t kN = 1000;
constexpr size_t kBytes = kN * sizeof(float);

std::vector<float> All(float value) { return std::vector<float>(kN, value); }

TEST_F(CudaGraph, IsDoneOnceALaunchWithWhatMemoryHoldsThen) {
  const OnDevice<float> sum(All(0), stream()), term(All(1), stream());
  ASSERT_TRUE(Add(sum.data(), term.data(), sum.data(), kN, stream()).ok());   // loads the kernel
  ASSERT_TRUE(Add(term.data(), sum.data(), term.data(), kN, stream()).ok());  // term = 2
  const auto graph = Graph::Capture(
      stream(), [&] { return Add(sum.data(), term.data(), sum.data(), kN, stream()); });
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(sum.Read(), All(1));
  ASSERT_TRUE(graph->Launch(stream()).ok());
  EXPECT_EQ(sum.Read(), All(3));
  ASSERT_TRUE(CopyOnDeviceAsync(term.data(), sum.data(), kBytes, stream()).ok());
  ASSERT_TRUE(graph->Launch(stream()).ok());
  ASSERT_TRUE(graph->Launch(stream()).ok());
  EXPECT_EQ(sum.Read(), All(9));
}

// Fill, copies, scratch memory that reuses the place of earlier scratch memory, and work queued
// before and after launches.
TEST_F(CudaGraph, KeepsTheOrderOfItsStream) {
  const OnDevice<float> x(All(1), stream()), y(All(0), stream());
  const auto queue = [&]() -> absl::Status {
    {
      ASSIGN_OR_RETURN(const ScratchBuffer twice, ScratchBuffer::Create(kBytes, stream()));
      RETURN_IF_ERROR(Add(x.data(), x.data(), twice.As<float>(), kN, stream()));
      RETURN_IF_ERROR(Add(y.data(), twice.As<float>(), y.data(), kN, stream()));
    }
    ASSIGN_OR_RETURN(const ScratchBuffer zeros, ScratchBuffer::Create(kBytes, stream()));
    RETURN_IF_ERROR(FillZeroAsync(zeros.As<float>(), kBytes, stream()));
    RETURN_IF_ERROR(Add(y.data(), zeros.As<float>(), y.data(), kN, stream()));
    return CopyRowsOnDeviceAsync(x.data(), kBytes, y.data(), kBytes, kBytes, 1, stream());
  };
  std::optional<Graph> graph;
  {
    auto captured = Graph::Capture(stream(), queue);
    ASSERT_TRUE(captured.ok()) << captured.status();
    graph.emplace(*std::move(captured));
  }
  ASSERT_TRUE(graph->Launch(stream()).ok());                          // y = 2, x = 2
  ASSERT_TRUE(Add(x.data(), x.data(), x.data(), kN, stream()).ok());  // x = 4
  ASSERT_TRUE(graph->Launch(stream()).ok());                          // y = 10, x = 10
  ASSERT_TRUE(queue().ok());                                          // y = 30, x = 30
  graph.reset();
  EXPECT_EQ(y.Read(), All(30));
  EXPECT_EQ(x.Read(), All(30));
}

TEST_F(CudaGraph, HasProducts) {
  auto handle = MatMulHandle::Create();
  ASSERT_TRUE(handle.ok()) << handle.status();
  constexpr int64_t kSide = 32;
  const std::vector<Bf16> ones(kSide * kSide, Bf16{0x3F80});
  const OnDevice<Bf16> a(ones, stream()), b(ones, stream());
  const OnDevice<float> c(std::vector<float>(kSide * kSide, 5), stream());
  const auto queue = [&] {
    return MatMul<Bf16, float>(*handle,
                               {.m = kSide,
                                .n = kSide,
                                .k = kSide,
                                .a = {a.data(), kSide},
                                .b = {b.data(), kSide, Transpose::kYes},
                                .c = c.data(),
                                .ldc = kSide,
                                .accumulate = true},
                               stream());
  };
  ASSERT_TRUE(queue().ok());
  const auto graph = Graph::Capture(stream(), queue);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(graph->Launch(stream()).ok());
  EXPECT_EQ(c.Read(), std::vector<float>(kSide * kSide, 5 + 2 * kSide));
}

TEST_F(CudaGraph, AnErrorLeavesTheStreamAsItWas) {
  const OnDevice<float> x(All(1), stream());
  const auto add = [&] { return Add(x.data(), x.data(), x.data(), kN, stream()); };
  const auto failed = Graph::Capture(stream(), [&]() -> absl::Status {
    RETURN_IF_ERROR(add());
    return absl::UnimplementedError("no such thing");
  });
  EXPECT_EQ(failed.status(), absl::UnimplementedError("no such thing"));
  const auto allocated = Graph::Capture(stream(), [&]() -> absl::Status {
    RETURN_IF_ERROR(DeviceBuffer::Create(kBytes).status());
    return add();
  });
  EXPECT_TRUE(absl::IsInternal(allocated.status())) << allocated.status();
  const auto waited = Graph::Capture(stream(), [&]() -> absl::Status {
    RETURN_IF_ERROR(stream().Synchronize());
    return add();
  });
  EXPECT_TRUE(absl::IsInternal(waited.status())) << waited.status();
  EXPECT_EQ(x.Read(), All(1));
  ASSERT_TRUE(add().ok());
  EXPECT_EQ(x.Read(), All(2));
  const auto graph = Graph::Capture(stream(), add);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(graph->Launch(stream()).ok());
  EXPECT_EQ(x.Read(), All(4));
}

}  // namespace
}  // namespace tug::kernels::cuda
