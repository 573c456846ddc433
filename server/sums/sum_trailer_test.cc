// SPDX-License-Identifier: Apache-2.0
#include "server/sums/sum_trailer.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace tug {
namespace {

// Rounds to the format.
float Rounded(ElementType type, float x) {
  if (type == ElementType::kBf16) {
    kernels::Bf16 narrow{};
    kernels::Bf16FromFloat(&x, &narrow, 1);
    kernels::FloatFromBf16(&narrow, &x, 1);
  } else if (type == ElementType::kFp16) {
    kernels::Fp16 narrow{};
    kernels::Fp16FromFloat(&x, &narrow, 1);
    kernels::FloatFromFp16(&narrow, &x, 1);
  }
  return x;
}

class SumTrailerTest : public ::testing::TestWithParam<ElementType> {
 protected:
  // Sums trailers like a collective, rounding each time.
  static SumFacts Sum(const std::vector<SumFacts>& of_ranks) {
    const ElementType type = GetParam();
    const auto world = static_cast<uint32_t>(of_ranks.size());
    std::vector<float> sum(TrailerElements(type, world), 0.0f);
    std::vector<float> trailer(sum.size());
    for (uint32_t rank = 0; rank < world; ++rank) {
      WriteTrailer(of_ranks[rank], type, rank, world, trailer);
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] = Rounded(type, sum[i] + Rounded(type, trailer[i]));
      }
    }
    return ReadTrailer(type, world, sum);
  }
};

TEST_P(SumTrailerTest, AddsUpTokensExactly) {
  for (const uint32_t world : {1u, 2u, 3u, 4u, 7u, 129u, 256u}) {
    for (const uint64_t tokens : {uint64_t{0}, uint64_t{1}, uint64_t{65535}, uint64_t{16777217},
                                  uint64_t{123456789012345}}) {
      std::vector<SumFacts> of_ranks(world, SumFacts{.tokens = tokens});
      of_ranks.back().tokens += 12345;
      EXPECT_EQ(Sum(of_ranks), (SumFacts{.tokens = world * tokens + 12345})) << world;
    }
  }
}

TEST_P(SumTrailerTest, NamesTheFirstVirtualWorkerWhoseGradientIsNotFinite) {
  for (const uint32_t world : {2u, 4u, 256u}) {
    std::vector<SumFacts> of_ranks(world, SumFacts{.tokens = 9});
    of_ranks[world - 1].bad_virtual_worker = 65534;
    EXPECT_EQ(Sum(of_ranks).bad_virtual_worker, 65534u);
    of_ranks[0].bad_virtual_worker = 300;
    EXPECT_EQ(Sum(of_ranks).bad_virtual_worker, 300u);
    of_ranks[1].bad_virtual_worker = 0;
    EXPECT_EQ(Sum(of_ranks), (SumFacts{9 * world, 0}));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, SumTrailerTest,
                         ::testing::Values(ElementType::kFp32, ElementType::kBf16,
                                           ElementType::kFp16),
                         [](const auto& info) { return std::string(ElementTypeName(info.param)); });

}  // namespace
}  // namespace tug
