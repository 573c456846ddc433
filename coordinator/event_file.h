#ifndef TUG_COORDINATOR_EVENT_FILE_H_
#define TUG_COORDINATOR_EVENT_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/tensorboard.pb.h"

namespace tug {

// A record of a TFRecord file: length (8 bytes), masked CRC-32C of these (4), data, masked CRC-32C
// of the data (4), little-endian. Source: tensorflow.org/tutorials/load_data/tfrecord, "TFRecords
// format details".
std::string TfRecord(const std::string& data);

// Files that TensorBoard draws curves from: scalars by tag and step, in a folder of their own.
//
//   EventFiles events("runs/a/tensorboard", /*next_step=*/51);
//   events.Write(51, now, {{"train/loss", 2.31}});
//
// Every process writes a file of its own, events.out.tfevents.<seconds>.<host>.<pid>, made with the
// first scalar. TensorBoard reads files in the order of their names and never goes back, so the
// seconds are those of the clock, or more than those of all files that are there. It begins with a
// session's start at `next_step`: TensorBoard then leaves out what files before it say of that step
// and later ones, so a run that goes on from a checkpoint, or is taken up, has every step once.
// Each record is given to the system at once. Not thread-safe.
class EventFiles {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;

  EventFiles(std::string folder, uint64_t next_step)
      : folder_(std::move(folder)), next_step_(next_step) {}

  // What another process has written, up to this step.
  void Skip(uint64_t step) { next_step_ = step + 1; }
  // The job has gone back: it goes on after `step`, and what was said of later ones is void.
  void GoBack(uint64_t step, absl::Time now);
  void Write(uint64_t step, absl::Time now, const Scalars& scalars);

  // The first error, with its remedy; from then on nothing is written.
  const absl::Status& status() const { return status_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  absl::Status Open(absl::Time now);
  absl::Status Append(const tensorboard::Event& event);
  absl::Status AppendStart(uint64_t step, absl::Time now);

  const std::string folder_;
  uint64_t next_step_;
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;  // null before the first scalar
  absl::Status status_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_EVENT_FILE_H_
