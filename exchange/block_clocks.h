#ifndef TUG_EXCHANGE_BLOCK_CLOCKS_H_
#define TUG_EXCHANGE_BLOCK_CLOCKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tug {

// Names a push or a pull of a block. Never 0.
using Ticket = uint64_t;

struct TicketMeaning {
  bool push = false;  // or a pull
  uint32_t block = 0;
  uint64_t clock = 0;  // of the push; version of the pull
};
TicketMeaning MeaningOf(Ticket ticket);

// Which push and which pull of a program comes next, as a machine without I/O. A block's clock is
// the number of its pushes, counted from where the program's part of the job starts: a push is at
// that clock, a pull asks for the weights to begin that clock with, under bsp for that version. So a pull before the push of a step gets the weights that the step
// computes with, and a pull after it those of the next step.
//
// Check* say whether something may be done now; errors are one line: INVALID_ARGUMENT (no such
// block or ticket), FAILED_PRECONDITION (not at this point). Not thread-safe.
class BlockClocks {
 public:
  BlockClocks() = default;
  BlockClocks(std::vector<std::string> names, uint64_t start_clock);

  absl::Status CheckBlock(uint32_t block) const;
  absl::Status CheckMayPush(uint32_t block) const;
  absl::Status CheckMayPull(uint32_t block) const;
  // Every block is pushed, or no step is in progress.
  absl::Status CheckStepComplete() const;
  // A push or a pull that there was.
  absl::Status CheckTicket(Ticket ticket) const;

  // REQUIRES: the check of the same name.
  Ticket Push(uint32_t block);
  Ticket Pull(uint32_t block);
  void OnPulled(Ticket pull);
  // The step in progress; none between two steps. REQUIRES: CheckStepComplete.
  std::optional<uint64_t> step() const { return step_; }
  void EndStep() { step_.reset(); }
  void BeginStep() { step_ = next_step(); }
  uint64_t next_step() const { return blocks_[0].clock; }
  // All steps are done, and others may push still: every block may be pulled once more.
  void AllowLastPulls();

  Ticket newest_push(uint32_t block) const { return blocks_[block].pushed; }  // 0 = none
  std::string Named(uint32_t block) const;                                    // "block 'bias'"

 private:
  struct Block {
    std::string name;
    uint64_t clock = 0;              // of the next push
    Ticket pushed = 0;               // newest push
    std::optional<uint64_t> pulled;  // newest version asked for
    bool pulling = false;            // and not there yet
    bool again = false;              // may be pulled though it has been, for this clock
  };

  uint64_t start_clock_ = 0;
  std::vector<Block> blocks_;
  std::optional<uint64_t> step_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_BLOCK_CLOCKS_H_
