// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_LANE_ROOM_H_
#define TUG_WORKER_CORE_LANE_ROOM_H_

#include <cstdint>
#include <span>

#include "control/control_board.h"

namespace tug {

// Whether a worker without memory for another gradient waits until lanes accept a push that they
// have no memory for (server/pushes/push_admission.h explains why that ends), instead of exceeding
// its memory bound. It does not wait
//  - if it runs several virtual workers, or is about to be assigned others: it may be the worker
//    that must push first;
//  - while the coordinator waits for it to report a pause in the newest view: other workers may
//    wait at the gate until all have reported, and the memory may depend on steps that they repeat.
//    This worker reports the pause between two computations.
// `newest`: newest orders; `place`: virtual workers of their view; `paused`: whether the gate in
// effect is paused; `view`, `carried`: view and virtual workers in effect.
bool WaitsForRoomOnLanes(const ControlBoard::Orders& newest, std::span<const uint32_t> place,
                         bool paused, uint32_t view, std::span<const uint32_t> carried);

}  // namespace tug

#endif  // TUG_WORKER_CORE_LANE_ROOM_H_
