// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_PLANNED_MESSAGE_H_
#define TUG_COLLECTIVE_PLANNED_MESSAGE_H_

#include <cstdint>

namespace tug {

// A message of a schedule, at one of its ends (message_plan.h).
struct PlannedMessage {
  uint32_t peer = 0;
  uint32_t step = 0;
  uint32_t number = 0;  // index among the messages from one rank to the other
  bool reduces = false;
  uint64_t begin = 0;  // elements [begin, end), not empty
  uint64_t end = 0;

  uint64_t elements() const { return end - begin; }
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_PLANNED_MESSAGE_H_
