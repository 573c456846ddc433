// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_DECLARED_BLOCKS_H_
#define TUG_BLOCKS_DECLARED_BLOCKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/blocks.pb.h"

namespace tug {

// Bounds on the blocks a program may declare (model.external). They keep a view, which names the
// lane of every segment, well below the largest control message.
inline constexpr int kMaxDeclaredBlocks = 1 << 14;
inline constexpr size_t kMaxBlockNameBytes = 128;
inline constexpr uint64_t kMaxDeclaredElements = uint64_t{1} << 40;  // of all blocks
inline constexpr uint64_t kMaxDeclaredSegments = uint64_t{1} << 20;

// Checks that a block can be exchanged: a name of letters, digits and "._-/", at least one tensor,
// no empty tensor, finite initial values, std >= 0. Pure. Errors: INVALID_ARGUMENT, naming the
// block.
absl::Status CheckDeclaredBlock(const BlockSpec& block);

// Checks all blocks of a job: CheckDeclaredBlock for each, distinct names, the bounds above. Pure.
// Errors: INVALID_ARGUMENT. REQUIRES: segment_elements > 0.
absl::Status CheckDeclaredBlocks(const BlockTable& blocks, uint64_t segment_elements);

// User-facing description of the first block that differs: "block 1 is 'bias' of 10 elements here,
// 'bias' of 11 elements there"; empty if none does. Pure.
std::string FirstBlockDifference(const BlockTable& here, const BlockTable& there);

}  // namespace tug

#endif  // TUG_BLOCKS_DECLARED_BLOCKS_H_
