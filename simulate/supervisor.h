#ifndef TUG_SIMULATE_SUPERVISOR_H_
#define TUG_SIMULATE_SUPERVISOR_H_

#include <cstdint>
#include <utility>

namespace tug {

// Who starts nodes of a simulated cluster in place of those that have left by themselves: only
// those without which the job waits. Not thread-safe.
class Supervisor {
 public:
  struct Nodes {
    uint32_t servers = 0;
    uint32_t workers = 0;
    bool operator==(const Nodes&) const = default;
  };

  void OnServerLeft() { ++left_.servers; }
  void OnWorkerLeft() { ++left_.workers; }

  // Called now and then; `waits`: the job waits for nodes. Those to be started now.
  Nodes ToStart(bool waits) { return waits ? std::exchange(left_, {}) : Nodes(); }

 private:
  Nodes left_;  // and not started again
};

}  // namespace tug

#endif  // TUG_SIMULATE_SUPERVISOR_H_
