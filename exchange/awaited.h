// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_AWAITED_H_
#define TUG_EXCHANGE_AWAITED_H_

#include <cstdint>

namespace tug {

// Why the weights of a block have not arrived, judged by the worker's own open pushes and pulls of
// it. For monitoring.
enum class Awaited : uint8_t {
  kNothing,  // no push or pull of the block is open
  kQueue,    // a push is not sent yet: it waits for credit, its turn, or memory at the lane
  kWire,     // pushes are sent and not acknowledged, or the weights are in flight
  kSum,      // lanes have received all pushes and wait for those of other workers
};

}  // namespace tug

#endif  // TUG_EXCHANGE_AWAITED_H_
