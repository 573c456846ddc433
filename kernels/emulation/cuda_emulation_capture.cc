// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulation/cuda_emulation_capture.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/emulation/cuda_emulation_memory.h"

namespace tug::kernels::emulation {

class Capture {
 public:
  explicit Capture(void* stream) : stream_(stream) {}
  ~Capture() {
    for (void* const memory : memory_) FreeDeviceBytes(memory);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void* stream() const { return stream_; }
  const std::vector<Work>& works() const { return works_; }
  void Add(Work work) { works_.push_back(std::move(work)); }
  void Own(void* memory) { memory_.push_back(memory); }
  absl::Status& status() { return status_; }

 private:
  void* const stream_;
  std::vector<Work> works_;
  std::vector<void*> memory_;
  absl::Status status_;  // error of a call that is not allowed during a capture
};

namespace {

thread_local CapturePointer this_capture;

Capture* CaptureOf(void* stream) {
  return this_capture != nullptr && this_capture->stream() == stream ? this_capture.get() : nullptr;
}

}  // namespace

absl::Status BeginCapture(void* stream) {
  RETURN_IF_ERROR(CheckNotCapturing("the beginning of a capture"));
  this_capture = std::make_shared<Capture>(stream);
  return absl::OkStatus();
}

absl::StatusOr<CapturePointer> EndCapture(void* stream) {
  if (CaptureOf(stream) == nullptr) return absl::InternalError("the stream is not being captured");
  CapturePointer capture = std::exchange(this_capture, nullptr);
  RETURN_IF_ERROR(capture->status());
  return capture;
}

absl::Status EnqueueCapture(void* stream, const CapturePointer& capture) {
  for (size_t i = 0; i < capture->works().size(); ++i) {
    RETURN_IF_ERROR(Enqueue(stream, [capture, i] { return capture->works()[i](); }));
  }
  return absl::OkStatus();
}

bool KeepWork(void* stream, Work& work) {
  Capture* const capture = CaptureOf(stream);
  if (capture == nullptr) return false;
  capture->Add(std::move(work));
  return true;
}

bool KeepMemory(void* stream, void* memory) {
  Capture* const capture = CaptureOf(stream);
  if (capture == nullptr) return false;
  capture->Add([memory] {
    SetUnwritten(memory);
    return absl::OkStatus();
  });
  capture->Own(memory);
  return true;
}

absl::Status CheckNotCapturing(absl::string_view call) {
  if (this_capture == nullptr) return absl::OkStatus();
  const absl::Status error =
      absl::InternalError(absl::StrCat(call, " in a thread that captures a stream"));
  this_capture->status().Update(error);
  return error;
}

}  // namespace tug::kernels::emulation
