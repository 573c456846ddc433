// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_COLLECTIVE_TEST_SUPPORT_H_
#define TUG_COLLECTIVE_COLLECTIVE_TEST_SUPPORT_H_

// Inputs and expected results for tests of collectives.

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/memory/lease.h"
#include "collective/algorithms.h"
#include "collective/collective_run.h"
#include "collective/element_type.h"
#include "collective/schedules/binomial_tree.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace tug {

// Schedules of all ranks, in rank order.
inline std::vector<CollectiveSchedule> AllReduceFamily(const AllReduceAlgorithm& algorithm,
                                                       uint32_t world,
                                                       const AllReduceSettings& settings) {
  std::vector<CollectiveSchedule> family;
  for (uint32_t rank = 0; rank < world; ++rank) {
    family.push_back(algorithm.schedule(rank, world, settings));
  }
  return family;
}

// All ranks end with the buffer of rank 0, which may be done before the others have begun.
inline CollectiveSchedule BroadcastFromRank0(uint32_t rank, uint32_t world) {
  CollectiveSchedule schedule{.takes_turns = true};
  AppendBinomialBroadcast({0, world, BinomialRounds(world)}, rank, schedule.parts, schedule.steps);
  return schedule;
}

// Rank 0 ends with the sum; the others may be done before it has begun.
inline CollectiveSchedule ReduceToRank0(uint32_t rank, uint32_t world) {
  CollectiveSchedule schedule{.takes_turns = true};
  AppendBinomialReduce({0, world, BinomialRounds(world)}, rank, schedule.parts, schedule.steps);
  return schedule;
}

inline CollectiveBuffer BufferOf(const std::shared_ptr<AlignedBuffer>& memory, uint64_t bytes) {
  return {memory, std::span(memory->data(), bytes)};
}

// Small whole numbers: sums over 33 ranks are exact in every type and order.
inline float ContributionOf(uint32_t rank, uint64_t element, uint64_t round) {
  return static_cast<float>((element * 7 + rank * 3 + round) % 8) - 3;
}

inline void WriteElements(ElementType type, std::span<const float> values, std::byte* to) {
  const auto n = static_cast<int64_t>(values.size());
  switch (type) {
    case ElementType::kFp32:
      std::memcpy(to, values.data(), values.size_bytes());
      return;
    case ElementType::kBf16:
      return kernels::Bf16FromFloat(values.data(), reinterpret_cast<kernels::Bf16*>(to), n);
    case ElementType::kFp16:
      return kernels::Fp16FromFloat(values.data(), reinterpret_cast<kernels::Fp16*>(to), n);
  }
}

// Contribution of a rank, encoded in the type.
inline std::vector<std::byte> Contribution(ElementType type, uint32_t rank, uint64_t elements,
                                           uint64_t round) {
  std::vector<float> values(elements);
  for (uint64_t i = 0; i < elements; ++i) values[i] = ContributionOf(rank, i, round);
  std::vector<std::byte> bytes(elements * ElementBytes(type));
  WriteElements(type, values, bytes.data());
  return bytes;
}

// Result of an all-reduce, the same on all ranks.
inline std::vector<std::byte> ExactSum(ElementType type, uint32_t world, uint64_t elements,
                                       uint64_t round) {
  std::vector<float> values(elements);
  for (uint64_t i = 0; i < elements; ++i) {
    for (uint32_t rank = 0; rank < world; ++rank) values[i] += ContributionOf(rank, i, round);
  }
  std::vector<std::byte> bytes(elements * ElementBytes(type));
  WriteElements(type, values, bytes.data());
  return bytes;
}

}  // namespace tug

#endif  // TUG_COLLECTIVE_COLLECTIVE_TEST_SUPPORT_H_
