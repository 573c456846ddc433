#ifndef TUG_SIMULATE_TOLD_H_
#define TUG_SIMULATE_TOLD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tug {

class StatusReply;

// Compares what people are told of a job with the checkpoints that there are: notices as they are
// given, the answer to a stop, and at the end the status, how the summary names it, and the
// failure. Not thread-safe.
class Told {
 public:
  // `start`: the step that the run begins at. `violation`: takes what is not true.
  Told(uint64_t start, uint64_t job_steps, std::function<void(const std::string&)> violation);

  void OnCommitted(uint64_t version) { saved_ = version; }
  void OnNotice(const std::string& text);
  // A timeline begins at this step.
  void OnTimeline(uint64_t version);
  // The job was asked to stop, and answers.
  void OnStopAnswer(const std::string& text);
  // The job is done.
  void OnDone(const StatusReply& status);
  // The job has failed, and says so.
  void OnFailure(const std::string& text);

 private:
  // A text that names the newest checkpoint by the number after `phrase`, if it has the phrase.
  void CheckNumber(const std::string& text, const std::string& phrase);

  const uint64_t start_;
  const uint64_t job_steps_;
  const std::function<void(const std::string&)> violation_;
  uint64_t saved_;  // step of the newest checkpoint; of the first timeline, `start_`
  bool stopped_ = false;
  std::optional<uint64_t> promised_;  // to who asked it to stop: what it ends with,
  bool maybe_later_ = false;          // or with a later one
};

}  // namespace tug

#endif  // TUG_SIMULATE_TOLD_H_
