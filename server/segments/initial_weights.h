// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SEGMENTS_INITIAL_WEIGHTS_H_
#define TUG_SERVER_SEGMENTS_INITIAL_WEIGHTS_H_

#include <cstdint>
#include <span>

#include "proto/blocks.pb.h"

namespace tug {

// Writes elements [begin, begin + out.size()) of block number `block` before any update. An element
// is a function of (seed, block, its index in the block) only, so it does not depend on placement
// or segment size: normal numbers by Box and Muller 1958 over Philox, four elements per counter.
// REQUIRES: the range lies in the block. Thread-safe.
void FillInitialWeights(const BlockSpec& spec, uint32_t block, uint64_t seed, uint64_t begin,
                        std::span<float> out);

}  // namespace tug

#endif  // TUG_SERVER_SEGMENTS_INITIAL_WEIGHTS_H_
