// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "server/sync/order_log.h"

namespace tug {
namespace {

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

RecordFileKind OrderLogKind() {
  return {.magic = "TUGORDER",
          .version = 2,
          .damage_remedy = "the run cannot be recomputed from it: record it again",
          .version_remedy = "use the version that wrote it"};
}

std::string OrderLogPath(const std::string& run_dir, uint32_t timeline, uint32_t lane) {
  return absl::StrFormat("%s/order/timeline-%03d/lane-%03d.order", run_dir, timeline, lane);
}

// The file and its writer thread. Thread-safe.
class OrderLogWriter::File {
 public:
  explicit File(RecordFileWriter file) : file_(std::move(file)), thread_([this] { Loop(); }) {}
  ~File() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }

  // Blocks while kMaxChunks are queued.
  void Hand(std::vector<OrderRecord> chunk) {
    const auto room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return chunks_.size() < kMaxChunks;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&room));
    chunks_.push_back(std::move(chunk));
  }

  bool idle() {
    absl::MutexLock lock(&mutex_);
    return chunks_.empty() && !writing_;
  }

  absl::Status Finish(uint64_t records) {
    const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return chunks_.empty() && !writing_;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&idle));
    if (status_.ok()) status_ = WriteTrailer(records);
    return status_;
  }

 private:
  void Loop() {
    const auto work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !chunks_.empty() || stopping_;
    };
    absl::MutexLock lock(&mutex_);
    while (true) {
      mutex_.Await(absl::Condition(&work));
      if (chunks_.empty()) return;
      const std::vector<OrderRecord> chunk = std::move(chunks_.front());
      chunks_.pop_front();
      writing_ = true;
      const bool broken = !status_.ok();  // after a gap, further chunks are useless
      mutex_.Unlock();
      const absl::Status written =
          broken ? absl::OkStatus() : file_.Append(std::as_bytes(std::span(chunk)));
      mutex_.Lock();
      status_.Update(written);
      writing_ = false;
    }
  }

  absl::Status WriteTrailer(uint64_t records) {
    RETURN_IF_ERROR(file_.Append(BytesOf(records)));
    RETURN_IF_ERROR(file_.Sync());
    return SyncFolder(FolderOf(file_.path()));
  }

  const RecordFileWriter file_;  // used by thread_, and by Finish once it is idle
  absl::Mutex mutex_;
  std::deque<std::vector<OrderRecord>> chunks_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<OrderLogWriter>> OrderLogWriter::Create(
    const std::string& run_dir, const OrderLogHeader& header) {
  const std::string path = OrderLogPath(run_dir, header.timeline, header.lane);
  RETURN_IF_ERROR(MakeFolder(run_dir + "/order"));
  RETURN_IF_ERROR(MakeFolder(FolderOf(path)));
  ASSIGN_OR_RETURN(RecordFileWriter file, RecordFileWriter::Create(OrderLogKind(), path));
  RETURN_IF_ERROR(file.Append(BytesOf(header)));
  return std::unique_ptr<OrderLogWriter>(
      new OrderLogWriter(std::make_unique<File>(std::move(file))));
}

OrderLogWriter::OrderLogWriter(std::unique_ptr<File> file) : file_(std::move(file)) {
  filling_.reserve(kChunkRecords);
}

OrderLogWriter::~OrderLogWriter() { HandOver(); }

void OrderLogWriter::Append(const OrderRecord& record) {
  TUG_CHECK(!finished_);
  filling_.push_back(record);
  ++records_;
  if (filling_.size() == kChunkRecords) HandOver();
}

void OrderLogWriter::Flush() {
  if (file_->idle()) HandOver();
}

void OrderLogWriter::HandOver() {
  if (filling_.empty()) return;
  file_->Hand(std::exchange(filling_, {}));
  filling_.reserve(kChunkRecords);
}

absl::Status OrderLogWriter::Finish() {
  HandOver();
  finished_ = true;
  return file_->Finish(records_);
}

}  // namespace tug
