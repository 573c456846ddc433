#ifndef TUG_WORKER_LANE_ROOM_H_
#define TUG_WORKER_LANE_ROOM_H_

#include <cstdint>
#include <span>

#include "exchange/control_board.h"

namespace tug {

// Whether a worker that has no memory for another gradient waits for a push that lanes have no room
// for (server/push_admission.h says why that ends), or else takes memory beyond its bound. It does
// not wait
//  - if it carries several virtual workers, or is to carry others: it may be the one that is to
//    push first;
//  - while the coordinator waits for it to say that it pauses, in the newest view: others may stand
//    at the gate until all have said so, with steps to take again that the room comes of. Between
//    two computations it says so.
// `newest`: orders, and `place`, the virtual workers that go with them; `paused`: whether the gate
// it goes by is; `view`: whose place it has taken, with the virtual workers `carried`.
bool WaitsForRoomOnLanes(const ControlBoard::Orders& newest, std::span<const uint32_t> place,
                         bool paused, uint32_t view, std::span<const uint32_t> carried);

}  // namespace tug

#endif  // TUG_WORKER_LANE_ROOM_H_
