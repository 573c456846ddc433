// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_ORDER_LOG_H_
#define TUG_SERVER_SYNC_ORDER_LOG_H_

// Records which push made which version of a segment under SSP and ASP, where every push is an
// update: besides its configuration, the bits of such a run depend only on that. `sync.record:
// ORDER` writes the log; `tug replay RUN` recomputes the run from it.
//
//   RUN/order/timeline-001/lane-003.order      one file per lane (index in View.lanes) and timeline
//
// A record file (base/files/record_file.h), "TUGORDER" 2. Its records are an OrderLogHeader, then
// chunks of consecutive OrderRecords, then a trailer: a u64 with the number of OrderRecords. Only a
// lane that has applied all pushes of its job writes a trailer.
//
// OrderRecords are in the order in which the lane applied them; those of one segment have
// consecutive versions.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/record_file.h"

namespace tug {

struct OrderRecord {
  // The gradient was not finite, on arrival or after compensation: the version was made with
  // unchanged weights.
  static constexpr uint32_t kSkipped = 1;
  // With sync.delay_compensation: the lane no longer had the old weights, and applied the gradient
  // without compensation.
  static constexpr uint32_t kNotCompensated = 2;
  // The gradient may belong to another version of this segment than recorded: parts of one message
  // had different versions. The rest of the run cannot be recomputed.
  static constexpr uint32_t kInexact = 4;
  // The gradient is zero whatever the weights of this segment are (kAnyWeightsVersion,
  // proto/wire.h): `weights_version` is the version before this update, and the step needs no
  // weights to be computed.
  static constexpr uint32_t kUntouched = 8;

  uint32_t segment = 0;  // number through all blocks
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
  uint64_t version = 0;          // made by this push; initial weights are version 0
  uint64_t weights_version = 0;  // staleness is version - 1 - weights_version
  uint32_t flags = 0;
  uint32_t reserved = 0;

  friend bool operator==(const OrderRecord&, const OrderRecord&) = default;
};
static_assert(sizeof(OrderRecord) == 40);

struct OrderLogHeader {
  uint32_t timeline = 0;
  uint32_t reserved = 0;
  uint64_t job = 0;
  uint32_t lane = 0;
  uint32_t lanes = 0;
  uint32_t virtual_workers = 0;
  uint32_t segments = 0;       // of all lanes
  uint64_t start_version = 0;  // job steps; 0: from the initial weights

  friend bool operator==(const OrderLogHeader&, const OrderLogHeader&) = default;
};
static_assert(sizeof(OrderLogHeader) == 40);

struct OrderLog {
  OrderLogHeader header;
  std::vector<OrderRecord> records;
  bool complete = false;  // has its trailer: the lane applied all pushes
};

// The kind of file that a log is, with its remedies.
RecordFileKind OrderLogKind();
// Path of a lane's log.
std::string OrderLogPath(const std::string& run_dir, uint32_t timeline, uint32_t lane);

// Reads and checks one file. One with a torn end, as left by a killed process, is read up to its
// last complete chunk and is not `complete`. Errors: those of ReadRecordFile; DATA_LOSS: an invalid
// record.
absl::StatusOr<OrderLog> ReadOrderLog(const std::string& path);

// Reads the logs of all lanes of the newest timeline in `run_dir`, by lane. Errors: NOT_FOUND (no
// log: the message names the settings), DATA_LOSS (they belong to different jobs), those of
// ReadOrderLog (also for a missing lane's file).
absl::StatusOr<std::vector<OrderLog>> ReadOrderLogs(const std::string& run_dir);

// Writes a log while a lane serves. A background thread writes and syncs; the lane hands over
// chunks and blocks only while kMaxChunks of them are queued.
class OrderLogWriter {
 public:
  static constexpr size_t kChunkRecords = 4096;
  static constexpr size_t kMaxChunks = 16;  // 2.5 MiB

  // Creates the folders and the file, replacing an existing one. Errors: those of FileError.
  static absl::StatusOr<std::unique_ptr<OrderLogWriter>> Create(const std::string& run_dir,
                                                                const OrderLogHeader& header);
  // Writes the remaining records; no trailer unless Finish was called.
  ~OrderLogWriter();
  OrderLogWriter(const OrderLogWriter&) = delete;
  OrderLogWriter& operator=(const OrderLogWriter&) = delete;

  // Call from one thread, also the two below.
  void Append(const OrderRecord& record);
  // Hands over the records so far if the thread is idle, so that a killed process loses little.
  void Flush();
  // Adds the trailer and returns once all is on disk. Returns the first error of the file, if any:
  // then there is no trailer. No Append after it.
  absl::Status Finish();

 private:
  class File;
  explicit OrderLogWriter(std::unique_ptr<File> file);

  void HandOver();

  const std::unique_ptr<File> file_;  // file, queue and thread
  std::vector<OrderRecord> filling_;
  uint64_t records_ = 0;
  bool finished_ = false;
};

}  // namespace tug

#endif  // TUG_SERVER_SYNC_ORDER_LOG_H_
