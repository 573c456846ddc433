// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_CHECKS_TOLD_H_
#define TUG_LAB_SIMULATE_CHECKS_TOLD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tug {

class StatusReply;

// Compares user-facing statements about a job with its checkpoints: notices as they are given, the
// reply to a stop, and at the end the status, its wording in the summary, and the failure. Not
// thread-safe.
class Told {
 public:
  // `start`: first step of the run. `violation`: receives false statements.
  Told(uint64_t start, uint64_t job_steps, std::function<void(const std::string&)> violation);

  void OnCommitted(uint64_t version) { saved_ = version; }
  void OnNotice(const std::string& text);
  // A timeline begins at this step.
  void OnTimeline(uint64_t version);
  // The coordinator's reply to a request to stop.
  void OnStopAnswer(const std::string& text);
  // The job has finished with this status.
  void OnDone(const StatusReply& status);
  // The job has failed with this message.
  void OnFailure(const std::string& text);

 private:
  // If `text` contains `phrase`, the number behind it must be that of the newest checkpoint.
  void CheckNumber(const std::string& text, const std::string& phrase);

  const uint64_t start_;
  const uint64_t job_steps_;
  const std::function<void(const std::string&)> violation_;
  uint64_t saved_;  // step of the newest checkpoint; at first `start_`
  bool stopped_ = false;
  std::optional<uint64_t> promised_;  // step promised in reply to a request to stop
  bool maybe_later_ = false;          // the promise allows a later one
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_CHECKS_TOLD_H_
