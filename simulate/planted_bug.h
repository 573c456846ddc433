#ifndef TUG_SIMULATE_PLANTED_BUG_H_
#define TUG_SIMULATE_PLANTED_BUG_H_

#include <array>
#include <cstdint>

namespace tug {

// Bugs that are planted into a simulated cluster, one at a time, to see that its invariants find
// them. Production code knows nothing of them: they are made of what is around a state machine (a
// message that is changed, withheld or forged), or of another policy in its place.
enum class PlantedBug : uint8_t {
  kNone,
  kDuplicateCheck,           // a lane takes a push that it has applied for a new one
  kStaleness,                // with SSP, a lane serves one clock more than it may
  kCommitBeforeReplication,  // an owner does not wait for its copies
  kStaleView,                // a lane takes messages of earlier views
  kOldTimeline,              // a lane takes messages of earlier timelines
  kLostPull,                 // a lane forgets a pull, now and then
};
struct PlantedBugName {
  PlantedBug bug;
  const char* name;
  const char* text;
};
inline constexpr std::array<PlantedBugName, 6> kPlantedBugs = {{
    {PlantedBug::kDuplicateCheck, "duplicate", "a push that was applied is taken again"},
    {PlantedBug::kStaleness, "staleness", "weights are served one clock beyond the bound"},
    {PlantedBug::kCommitBeforeReplication, "replication",
     "an update is committed before its copy has it"},
    {PlantedBug::kStaleView, "view", "lanes take messages of earlier views"},
    {PlantedBug::kOldTimeline, "timeline", "lanes take messages of earlier timelines"},
    {PlantedBug::kLostPull, "pull", "a pull is forgotten now and then"},
}};

}  // namespace tug

#endif  // TUG_SIMULATE_PLANTED_BUG_H_
