// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_BLOCK_CLOCKS_H_
#define TUG_EXCHANGE_BLOCK_CLOCKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tug {

// Identifies a push or a pull of a block. Never 0.
using Ticket = uint64_t;

struct TicketMeaning {
  bool push = false;  // false: a pull
  uint32_t block = 0;
  uint64_t clock = 0;  // clock of the push; clock requested by the pull
};
TicketMeaning MeaningOf(Ticket ticket);

// Computes the clocks of a program's next push and pull of each block; a state machine without I/O.
// A block's clock is the number of its pushes, counted from the program's start clock. A push is at
// that clock; a pull requests the weights that clock begins with (under BSP, that version). So a
// pull before a step's push returns the weights of this step, and a pull after it those of the next
// step.
//
// Check* report whether a call is allowed now. Errors, one line: INVALID_ARGUMENT (unknown block or
// ticket), FAILED_PRECONDITION (not allowed at this point). Not thread-safe.
class BlockClocks {
 public:
  BlockClocks() = default;
  BlockClocks(std::vector<std::string> names, uint64_t start_clock);

  absl::Status CheckBlock(uint32_t block) const;
  absl::Status CheckMayPush(uint32_t block) const;
  absl::Status CheckMayPull(uint32_t block) const;
  // OK if no step is in progress, or all its blocks have been pushed.
  absl::Status CheckStepComplete() const;
  // OK if `ticket` names a push or a pull that was made.
  absl::Status CheckTicket(Ticket ticket) const;

  // REQUIRES: the check of the same name is OK.
  Ticket Push(uint32_t block);
  Ticket Pull(uint32_t block);
  void OnPulled(Ticket pull);
  // The step in progress; none between two steps. EndStep REQUIRES: CheckStepComplete is OK.
  std::optional<uint64_t> step() const { return step_; }
  void EndStep() { step_.reset(); }
  void BeginStep() { step_ = next_step(); }
  uint64_t next_step() const { return blocks_[0].clock; }
  // After the last step, when pushes of other workers may still change the weights: allows one more
  // pull of every block.
  void AllowLastPulls();

  Ticket newest_push(uint32_t block) const { return blocks_[block].pushed; }  // 0 = none
  std::string Named(uint32_t block) const;                                    // "block 'bias'"

 private:
  struct Block {
    std::string name;
    uint64_t clock = 0;              // of the next push
    Ticket pushed = 0;               // newest push
    std::optional<uint64_t> pulled;  // newest clock requested by a pull
    bool pulling = false;            // a pull is in progress
    bool again = false;              // may be pulled a second time at this clock
  };

  uint64_t start_clock_ = 0;
  std::vector<Block> blocks_;
  std::optional<uint64_t> step_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_BLOCK_CLOCKS_H_
