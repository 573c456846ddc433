#ifndef TUG_CLI_RAW_LIMITS_H_
#define TUG_CLI_RAW_LIMITS_H_

// What this machine can do at most at moving bytes, with nothing of ours in the way: `tug bench`
// measures it in the same run as the data plane and prints both. Each function is one measurement.
// Sender and receiver are processes of their own; bytes are counted where they arrive.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/bench_processes.h"

namespace tug {

struct RawSetting {
  uint64_t bytes = 0;  // of a message, or of one call
  // Network namespaces of the two ends; empty = ours.
  std::string server_host;
  std::string worker_host;
  BenchWindowOptions window;
};

// raw_tcp.cc. Sockets as the kernel makes them, but for TCP_NODELAY.

// One stream, worker to server: send() and recv() of `bytes`.
absl::StatusOr<BenchWindow> TcpStream(const RawSetting& setting);
// Two streams at once, one each way, on connections of their own: four processes.
absl::StatusOr<BenchWindow> OpposingTcpStreams(const RawSetting& setting);
// `bytes` and a header there, a header back: latencies in series 0.
absl::StatusOr<BenchWindow> TcpRoundTrip(const RawSetting& setting);

// raw_zmq.cc. A DEALER connected to a ROUTER, sending from the same memory without a copy.

// Frames of `bytes` one way.
absl::StatusOr<BenchWindow> ZmqStream(const RawSetting& setting);
// `bytes` and a header there, a header back, each one frame: latencies in series 0.
absl::StatusOr<BenchWindow> ZmqRoundTrip(const RawSetting& setting);

// raw_memory.cc

// One copy into shared memory, read where it lies: the writer copies `bytes` into the next of eight
// slots of a memfd, the reader adds the slot to an array of its own (a += b). Both spin.
absl::StatusOr<BenchWindow> OneCopySharedMemory(const RawSetting& setting);
// One core copying between two arrays of `array_bytes`: bytes copied count once.
absl::StatusOr<BenchWindow> MemoryCopy(const RawSetting& setting, uint64_t array_bytes);
// STREAM's way of measuring a[i] += b[i] on one core, arrays of `array_bytes` each: 12 bytes are
// counted for every element (two read, one written).
absl::StatusOr<BenchWindow> StreamAddition(const RawSetting& setting, uint64_t array_bytes);

}  // namespace tug

#endif  // TUG_CLI_RAW_LIMITS_H_
