// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_EVENT_FILE_H_
#define TUG_COORDINATOR_OBSERVE_EVENT_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/files/file.h"
#include "proto/tensorboard.pb.h"

namespace tug {

// A record of a TFRecord file: length (8 bytes), masked CRC-32C of the length (4), data, masked
// CRC-32C of the data (4), little-endian. Source: tensorflow.org/tutorials/load_data/tfrecord,
// "TFRecords format details".
std::string TfRecord(const std::string& data);

// Event files that TensorBoard plots: scalars by tag and step, in a folder of their own.
//
//   EventFiles events("runs/a/tensorboard", /*next_step=*/51);
//   events.Write(51, now, {{"train/loss", 2.31}});
//
// Each process writes its own file, events.out.tfevents.<seconds>.<host>.<pid>, created with the
// first scalar. TensorBoard reads files in the order of their names and never goes back, so
// <seconds> is the current time, or larger than that of all existing files. A file begins with a
// session start at `next_step`: TensorBoard then drops what earlier files have for that step and
// later ones, so a resumed or recovered run has each step once. Each record is written at once, not
// buffered. Not thread-safe.
class EventFiles {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;

  EventFiles(std::string folder, uint64_t next_step)
      : folder_(std::move(folder)), next_step_(next_step) {}

  // Steps up to this one were written by another process.
  void Skip(uint64_t step) { next_step_ = step + 1; }
  // The job rolled back and continues after `step`: events of later steps are void.
  void GoBack(uint64_t step, absl::Time now);
  void Write(uint64_t step, absl::Time now, const Scalars& scalars);

  // The first error, with its remedy; nothing is written after it.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status Open(absl::Time now);
  absl::Status Append(const tensorboard::Event& event);
  absl::Status AppendStart(uint64_t step, absl::Time now);

  const std::string folder_;
  uint64_t next_step_;
  std::string path_;
  FileStream file_;  // null before the first scalar
  absl::Status status_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_EVENT_FILE_H_
