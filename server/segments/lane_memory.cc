// SPDX-License-Identifier: Apache-2.0
#include "server/segments/lane_memory.h"

#include <cstring>
#include <utility>

#include "absl/status/statusor.h"

namespace tug {
namespace {

// Size of further regions of the file.
constexpr size_t kFurtherRegionBytes = size_t{64} << 20;

}  // namespace

void ByteCount::Add(uint64_t bytes) {
  const uint64_t now = now_.fetch_add(bytes) + bytes;
  uint64_t most = most_;
  while (most < now && !most_.compare_exchange_weak(most, now)) {
  }
}

struct LaneMemory::Counted {
  Counted(std::shared_ptr<LaneMemory> of, ByteCount* counted_in,
          std::shared_ptr<AlignedBuffer> counted)
      : memory(std::move(of)), count(counted_in), buffer(std::move(counted)) {
    if (count != nullptr) count->Add(buffer->size_bytes());
  }
  ~Counted() {
    if (count != nullptr) count->Subtract(buffer->size_bytes());
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  const std::shared_ptr<LaneMemory> memory;  // owns the count
  ByteCount* const count;                    // null: not counted
  const std::shared_ptr<AlignedBuffer> buffer;
};

std::shared_ptr<LaneMemory> LaneMemory::Create(SendBuffers::NewBuffer new_buffer) {
  return std::shared_ptr<LaneMemory>(new LaneMemory(std::move(new_buffer)));
}

absl::Status LaneMemory::Offload(const std::string& folder, uint64_t reserve_bytes) {
  std::shared_ptr<SharedArena> files = SharedArena::Create(
      {.new_region =
           [folder](size_t size_bytes) { return SharedRegion::CreateInFile(folder, size_bytes); },
       // Rounding takes at most an eighth, plus a page for each of a few buffers.
       .first_region_bytes = reserve_bytes + reserve_bytes / 8 + kFurtherRegionBytes / 64,
       .largest_region_bytes = kFurtherRegionBytes});
  const absl::Status reserved = files->NewBuffer(0).status();
  if (reserved.ok()) files_ = std::move(files);
  return reserved;
}

ByteCount* LaneMemory::CountOf(Use use) {
  switch (use) {
    case Use::kSentWeights:
    case Use::kWeights:
      return &weights_;
    case Use::kState:
      return &state_;
    case Use::kSnapshot:
      break;
  }
  return nullptr;
}

std::shared_ptr<AlignedBuffer> LaneMemory::Allocate(Use use, size_t size_bytes) {
  if (offloads()) {
    absl::StatusOr<std::shared_ptr<AlignedBuffer>> buffer = files_->NewBuffer(size_bytes);
    if (buffer.ok()) {
      // The memory may have been used before.
      if (use == Use::kState) std::memset((*buffer)->data(), 0, size_bytes);
      return *std::move(buffer);
    }
    absl::MutexLock lock(&mutex_);
    failure_.Update(buffer.status());
  } else if (use == Use::kSentWeights && new_buffer_) {
    return new_buffer_(size_bytes);
  }
  return std::make_shared<AlignedBuffer>(size_bytes);
}

AlignedBuffer LaneMemory::New(Use use, size_t size_bytes) {
  if (size_bytes == 0) return AlignedBuffer();
  std::shared_ptr<AlignedBuffer> buffer = Allocate(use, size_bytes);
  const std::span<std::byte> bytes(buffer->data(), size_bytes);
  return AlignedBuffer(
      std::make_shared<Counted>(shared_from_this(), CountOf(use), std::move(buffer)), bytes);
}

absl::Status LaneMemory::failure() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

}  // namespace tug
