#ifndef TUG_SERVER_ORDER_LOG_H_
#define TUG_SERVER_ORDER_LOG_H_

// Which push made which version of a segment, where every push is an update (SSP, ASP): all that
// the bits of such a run depend on beside its configuration. `sync.record: ORDER` writes it, `tug
// replay RUN` computes the run again from it.
//
//   RUN/order/timeline-001/lane-003.order      one file a lane (index in View.lanes) and timeline
//
// A file, little-endian throughout:
//
//   header    64 bytes: "TUGORDER", u32 format 1, u32 timeline, u64 job, u32 lane, u32 lanes,
//             u32 virtual workers, u32 segments (of all lanes), u64 start version (job steps; 0 =
//             from the initial weights), u64 zero, u64 XXH3-64 of the 56 bytes before it
//   chunks    u32 records n, u32 zero, u64 XXH3-64 of the records; then n records
//   trailer   a chunk of n = 0xffffffff, whose checksum is of the one u64 that follows: the number
//             of records before it. Only a lane that has applied all pushes of its job writes one.
//
//   record    40 bytes: u32 segment (number through all blocks), u32 virtual worker, u64 clock,
//             u64 version it made, u64 version of the weights that its gradient is of, u32 flags,
//             u32 zero
//
// Records are in the order in which the lane applied them; those of one segment have versions one
// after the other.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

struct OrderRecord {
  // The gradient was not finite, as it came or compensated: the version is made, its weights are
  // those before.
  static constexpr uint32_t kSkipped = 1;
  // With sync.delay_compensation: the lane no longer had the old weights, and applied the gradient
  // as it is.
  static constexpr uint32_t kNotCompensated = 2;
  // The gradient may be of another version of this segment than is written here: parts of one
  // message had versions of their own. What follows cannot be computed again.
  static constexpr uint32_t kInexact = 4;
  // The gradient is zero whatever the weights of this segment are (kWhateverVersion, proto/wire.h):
  // `weights_version` is the version before this update, and the step needs none to be computed.
  static constexpr uint32_t kUntouched = 8;

  uint32_t segment = 0;
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
  uint64_t version = 0;          // that it made: 1 is made of the start's weights, if those are 0
  uint64_t weights_version = 0;  // staleness is version - 1 - weights_version
  uint32_t flags = 0;
  uint32_t reserved = 0;

  friend bool operator==(const OrderRecord&, const OrderRecord&) = default;
};
static_assert(sizeof(OrderRecord) == 40);

struct OrderLogHeader {
  uint32_t timeline = 0;
  uint64_t job = 0;
  uint32_t lane = 0;
  uint32_t lanes = 0;
  uint32_t virtual_workers = 0;
  uint32_t segments = 0;
  uint64_t start_version = 0;

  friend bool operator==(const OrderLogHeader&, const OrderLogHeader&) = default;
};

struct OrderLog {
  OrderLogHeader header;
  std::vector<OrderRecord> records;
  bool complete = false;  // it has its trailer: the lane came to its end
};

// Where a lane's log lies.
std::string OrderLogPath(const std::string& run_dir, uint32_t timeline, uint32_t lane);

// Reads and checks one file. One that ends early, as a killed process leaves it, is read up to its
// last whole chunk and is not `complete`. Errors: those of the file system; DATA_LOSS "FILE ...":
// not such a file, or a checksum or a record that does not fit.
absl::StatusOr<OrderLog> ReadOrderLog(const std::string& path);

// The logs of all lanes of the newest timeline that `run_dir` has, by lane. Errors: NOT_FOUND (no
// log: what to set), DATA_LOSS (a lane's is missing, or they are not of one job), ReadOrderLog's.
absl::StatusOr<std::vector<OrderLog>> ReadOrderLogs(const std::string& run_dir);

// Writes a log while a lane serves. A thread of its own writes and syncs; the lane hands over
// chunks and waits only while kMostChunks of them are not on their way yet.
class OrderLogWriter {
 public:
  static constexpr size_t kChunkRecords = 4096;
  static constexpr size_t kMostChunks = 16;  // 2.5 MiB

  // Creates the folders and the file; one that is there goes. Errors: as FileError.
  static absl::StatusOr<std::unique_ptr<OrderLogWriter>> Create(const std::string& run_dir,
                                                                const OrderLogHeader& header);
  // Writes what it has; no trailer unless Finish was called.
  ~OrderLogWriter();
  OrderLogWriter(const OrderLogWriter&) = delete;
  OrderLogWriter& operator=(const OrderLogWriter&) = delete;

  // One thread, here and below.
  void Append(const OrderRecord& record);
  // Hands over what there is, unless the thread has something to do already: so that a process that
  // is killed loses little.
  void Flush();
  // Adds the trailer and returns once all is on disk. The first error of the file, if there was
  // one: then it has no trailer. No Append after it.
  absl::Status Finish();

 private:
  class File;
  explicit OrderLogWriter(std::unique_ptr<File> file);

  void HandOver();

  const std::unique_ptr<File> file_;  // the thread and its queue
  std::vector<OrderRecord> filling_;
  uint64_t records_ = 0;
  bool finished_ = false;
};

}  // namespace tug

#endif  // TUG_SERVER_ORDER_LOG_H_
