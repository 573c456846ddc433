// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_PLANTED_BUG_H_
#define TUG_LAB_SIMULATE_PLANTED_BUG_H_

#include <array>
#include <cstdint>

namespace tug {

// Bugs that are planted into a simulated cluster, one at a time, to test that its invariants detect
// them. Production code does not contain them: they change what surrounds a state machine (a
// message is changed, withheld or forged), or replace a policy.
enum class PlantedBug : uint8_t {
  kNone,
  kDuplicateCheck,           // a lane treats a push that it has applied as new
  kStaleness,                // with SSP, a lane serves one clock more than it may
  kCommitBeforeReplication,  // an owner does not wait for its replicas
  kStaleView,                // a lane accepts messages of earlier views
  kOldTimeline,              // a lane accepts messages of earlier timelines
  kLostPull,                 // a lane forgets a pull, now and then
  kEmptyFrames,              // a worker resends an encoded push without its payload
  kSilentRepeat,             // a lane does not answer the repeat of a push that it has received
  kPatience,                 // workers wait fifty times as long before they resend
  kStatus,                   // the final status names the last step taken, not the checkpoint's
  kSupervisor,               // nodes that left by themselves are not restarted
  kResume,                   // a resumed run restores a segment of an older checkpoint
};
struct PlantedBugName {
  PlantedBug bug;
  const char* name;
  const char* text;
};
inline constexpr std::array<PlantedBugName, 12> kPlantedBugs = {{
    {PlantedBug::kDuplicateCheck, "duplicate", "a push that was applied is applied again"},
    {PlantedBug::kStaleness, "staleness", "weights are served one clock beyond the bound"},
    {PlantedBug::kCommitBeforeReplication, "replication",
     "an update is committed before its replica has it"},
    {PlantedBug::kStaleView, "view", "lanes accept messages of earlier views"},
    {PlantedBug::kOldTimeline, "timeline", "lanes accept messages of earlier timelines"},
    {PlantedBug::kLostPull, "pull", "a pull is occasionally dropped"},
    {PlantedBug::kEmptyFrames, "frames", "an encoded push is resent without its payload"},
    {PlantedBug::kSilentRepeat, "silence",
     "a resent push that was already received is not acknowledged"},
    {PlantedBug::kPatience, "patience", "workers wait fifty times too long before they resend"},
    {PlantedBug::kStatus, "status", "a job reports its end at a step that is not saved"},
    {PlantedBug::kSupervisor, "supervisor",
     "nodes that left on their own are not restarted when the job waits for them"},
    {PlantedBug::kResume, "resume", "a resumed run reads a segment of an older checkpoint"},
}};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_PLANTED_BUG_H_
