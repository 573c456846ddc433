#ifndef TUG_WORKER_ORDERS_GATE_H_
#define TUG_WORKER_ORDERS_GATE_H_

#include <cstdint>
#include <span>

#include "exchange/control_board.h"
#include "worker/step_machine.h"

namespace tug {

// The gate of a step machine as the coordinator orders it. Orders come before `go`, with the
// version that the job will end at: they open nothing yet. `carried`: virtual workers.
StepGate GateOf(const ControlBoard::Orders& orders, std::span<const uint32_t> carried);

}  // namespace tug

#endif  // TUG_WORKER_ORDERS_GATE_H_
