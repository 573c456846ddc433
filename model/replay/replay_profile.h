// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_REPLAY_REPLAY_PROFILE_H_
#define TUG_MODEL_REPLAY_REPLAY_PROFILE_H_

// Replay profiles (`compute: REPLAY`): how long a model computes on which parameters. Format:
// ReplayProfile in proto/job.proto. The shipped profiles are the files of model/replay/profiles,
// built into the program. Functions are thread-safe.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Limit for one block's forward or backward pass: a worker that is asked to stop wakes up within
// it.
inline constexpr double kMaxReplayBlockMs = 10'000;

// Names of the shipped profiles, sorted.
std::vector<std::string> ShippedReplayProfiles();

// Loads a shipped profile, or the text-proto file at `name_or_path`; checked, not scaled. Errors,
// one line each: NOT_FOUND for neither, with the available names; those of ParseTextProto and
// CheckReplayProfile, naming the file.
absl::StatusOr<ReplayProfile> LoadReplayProfile(const std::string& name_or_path);

// Checks that a profile can be replayed: a name, a batch in 1..65536, at least one block; every
// block with parameters, and with times that are finite, not negative and at most
// kMaxReplayBlockMs. Names and sizes of blocks are checked by the exchange
// (blocks/declared_blocks.h). Errors: INVALID_ARGUMENT, naming the block. Pure.
absl::Status CheckReplayProfile(const ReplayProfile& profile);

// Multiplies all times by `time_scale` and all parameter counts by `size_scale`, rounded to the
// nearest number, at least 1. Pure. REQUIRES: checked; time_scale >= 0, size_scale > 0, both
// finite.
ReplayProfile ScaledReplayProfile(ReplayProfile profile, double time_scale, double size_scale);

// Block table for the exchange: one block per profile block, one FP32 vector that starts at zero.
// Pure.
BlockTable ReplayLayout(const ReplayProfile& profile);

// Sums over all blocks. Pure.
uint64_t ReplayParameters(const ReplayProfile& profile);
double ReplayForwardMs(const ReplayProfile& profile);
double ReplayBackwardMs(const ReplayProfile& profile);

// "replay of vgg16: 138357544 parameters in 16 blocks, 99.0 ms forward and 197.5 ms backward
// per step; workers sleep, no model is trained". `replay`: resolved.
std::string ReplayText(const ReplayConfig& replay);

}  // namespace tug

#endif  // TUG_MODEL_REPLAY_REPLAY_PROFILE_H_
