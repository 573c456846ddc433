// SPDX-License-Identifier: Apache-2.0
#include "exchange/block_clocks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "blocks/declared_blocks.h"

namespace tug {
namespace {

// A ticket encodes its kind, block and clock, so no state is kept for it.
constexpr int kKindShift = 62;
constexpr int kBlockShift = 40;
constexpr uint64_t kPushKind = 1;
constexpr uint64_t kPullKind = 2;
static_assert(kMaxDeclaredBlocks <= 1 << (kKindShift - kBlockShift));

Ticket MakeTicket(uint64_t kind, uint32_t block, uint64_t clock) {
  return kind << kKindShift | uint64_t{block} << kBlockShift | clock;
}

}  // namespace

TicketMeaning MeaningOf(Ticket ticket) {
  constexpr uint64_t kBlockMask = (uint64_t{1} << (kKindShift - kBlockShift)) - 1;
  constexpr uint64_t kClockMask = (uint64_t{1} << kBlockShift) - 1;
  return {ticket >> kKindShift == kPushKind,
          static_cast<uint32_t>(ticket >> kBlockShift & kBlockMask), ticket & kClockMask};
}

BlockClocks::BlockClocks(std::vector<std::string> names, uint64_t start_clock)
    : start_clock_(start_clock) {
  for (std::string& name : names) {
    blocks_.push_back({.name = std::move(name), .clock = start_clock});
  }
}

std::string BlockClocks::Named(uint32_t block) const {
  return absl::StrCat("block '", blocks_[block].name, "'");
}

absl::Status BlockClocks::CheckBlock(uint32_t block) const {
  if (block < blocks_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("block ", block, " does not exist: ", blocks_.size(),
                   " blocks were declared, 0 to ", blocks_.size() - 1));
}

absl::Status BlockClocks::CheckMayPush(uint32_t block) const {
  RETURN_IF_ERROR(CheckBlock(block));
  if (!step_.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Named(block), " cannot be pushed outside a step: call tug_begin_step first"));
  }
  if (blocks_[block].clock > *step_) {
    return absl::FailedPreconditionError(absl::StrCat(Named(block), " was already pushed in step ",
                                                      *step_, ": call tug_begin_step first"));
  }
  return absl::OkStatus();
}

absl::Status BlockClocks::CheckMayPull(uint32_t block) const {
  RETURN_IF_ERROR(CheckBlock(block));
  const Block& state = blocks_[block];
  if (state.pulled == state.clock && !state.again) {
    return absl::FailedPreconditionError(absl::StrCat(Named(block), " was already pulled for step ",
                                                      state.clock, ": push it first"));
  }
  if (state.pulling) {
    return absl::FailedPreconditionError(
        absl::StrCat("a pull of ", Named(block), " is in progress: wait for it first"));
  }
  return absl::OkStatus();
}

absl::Status BlockClocks::CheckStepComplete() const {
  if (!step_.has_value()) return absl::OkStatus();
  for (uint32_t block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block].clock > *step_) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        Named(block), " was not pushed in step ", *step_, ": push every block once in every step"));
  }
  return absl::OkStatus();
}

absl::Status BlockClocks::CheckTicket(Ticket ticket) const {
  const auto [push, block, clock] = MeaningOf(ticket);
  if (block < blocks_.size() && clock >= start_clock_) {
    const Block& state = blocks_[block];
    if (push && clock < state.clock) return absl::OkStatus();
    const bool pull = ticket >> kKindShift == kPullKind;
    if (pull && state.pulled.has_value() && clock <= *state.pulled) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(ticket, " is not a valid ticket: pass one returned by tug_push or tug_pull"));
}

void BlockClocks::AllowLastPulls() {
  for (Block& block : blocks_) block.again = block.pulled == block.clock;
}

Ticket BlockClocks::Push(uint32_t block) {
  Block& state = blocks_[block];
  return state.pushed = MakeTicket(kPushKind, block, state.clock++);
}

Ticket BlockClocks::Pull(uint32_t block) {
  Block& state = blocks_[block];
  state.again = state.again && state.pulled != state.clock;
  state.pulled = state.clock;
  state.pulling = true;
  return MakeTicket(kPullKind, block, state.clock);
}

void BlockClocks::OnPulled(Ticket pull) {
  const TicketMeaning meaning = MeaningOf(pull);
  Block& state = blocks_[meaning.block];
  if (state.pulled == meaning.clock) state.pulling = false;
}

}  // namespace tug
