#ifndef TUG_MODEL_REPLAY_PROFILE_H_
#define TUG_MODEL_REPLAY_PROFILE_H_

// Profiles that are replayed (`compute: REPLAY`): how long a model computes on which parameters.
// What a profile holds: ReplayProfile in proto/job.proto. Those that come with tug are the files of
// model/profiles, built into the program. Functions are thread-safe.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// One block's forward or backward pass takes no longer: a worker that is told to end wakes up then.
inline constexpr double kMaxReplayBlockMs = 10'000;

// Names of the profiles that come with tug, sorted.
std::vector<std::string> ShippedReplayProfiles();

// A shipped profile, or the text-proto file at `name_or_path`; as it is written, and checked.
// Errors, one line each: NOT_FOUND for neither, with the names there are; those of ParseTextProto
// and CheckReplayProfile, naming the file.
absl::StatusOr<ReplayProfile> LoadReplayProfile(const std::string& name_or_path);

// Whether a profile can be replayed: a name, a batch in 1..65536, at least one block, every block
// with parameters and times that are finite, not negative and at most kMaxReplayBlockMs. Pure.
// Blocks' names and sizes are the exchange's to judge (exchange/declared_blocks.h). Errors:
// INVALID_ARGUMENT, naming the block.
absl::Status CheckReplayProfile(const ReplayProfile& profile);

// With all times multiplied by `time_scale` and all parameters by `size_scale`, to the nearest
// number, at least 1. Pure. REQUIRES: checked; time_scale >= 0, size_scale > 0, both finite.
ReplayProfile ScaledReplayProfile(ReplayProfile profile, double time_scale, double size_scale);

// What is exchanged: a block for each of the profile's, one FP32 vector that begins at zero. Pure.
BlockTable ReplayLayout(const ReplayProfile& profile);

// Sums over the blocks. Pure.
uint64_t ReplayParameters(const ReplayProfile& profile);
double ReplayForwardMs(const ReplayProfile& profile);
double ReplayBackwardMs(const ReplayProfile& profile);

// "replay of vgg16: 138357544 parameters in 16 blocks, 99.0 ms forward and 197.5 ms backward a
// step; workers sleep, nothing is learned". `replay`: resolved.
std::string ReplayText(const ReplayConfig& replay);

}  // namespace tug

#endif  // TUG_MODEL_REPLAY_PROFILE_H_
