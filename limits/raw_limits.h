// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LIMITS_RAW_LIMITS_H_
#define TUG_LIMITS_RAW_LIMITS_H_

// Limits of this machine for moving bytes, without Tugboat's code: `tug bench` measures them in the
// same run as the data plane and prints both. Each function is one measurement. Sender and receiver
// are separate processes; bytes are counted where they arrive.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "limits/bench_processes.h"

namespace tug {

struct RawSetting {
  uint64_t bytes = 0;  // per message, or per call
  // Network namespaces of the two ends; empty = ours.
  std::string server_host;
  std::string worker_host;
  BenchWindowOptions window;
};

// raw_tcp.cc. Kernel defaults for sockets, except TCP_NODELAY.

// One stream, worker to server: send() and recv() of `bytes`.
absl::StatusOr<BenchWindow> TcpStream(const RawSetting& setting);
// Two concurrent streams in opposite directions, on separate connections: four processes.
absl::StatusOr<BenchWindow> OpposingTcpStreams(const RawSetting& setting);
// `bytes` and a header one way, a header back: latencies in series 0.
absl::StatusOr<BenchWindow> TcpRoundTrip(const RawSetting& setting);

// raw_zmq.cc. A DEALER connected to a ROUTER; sends the same memory without copying.

// Frames of `bytes` one way.
absl::StatusOr<BenchWindow> ZmqStream(const RawSetting& setting);
// `bytes` and a header one way, a header back, each one frame: latencies in series 0.
absl::StatusOr<BenchWindow> ZmqRoundTrip(const RawSetting& setting);

// raw_memory.cc

// One copy into shared memory, read in place: the writer copies `bytes` into the next of eight
// slots of a memfd, the reader adds the slot to its own array (a += b). Both spin.
absl::StatusOr<BenchWindow> OneCopySharedMemory(const RawSetting& setting);
// One core copies between two arrays of `array_bytes`: each copied byte counts once.
absl::StatusOr<BenchWindow> MemoryCopy(const RawSetting& setting, uint64_t array_bytes);
// a[i] += b[i] on one core, measured like STREAM, with arrays of `array_bytes`: 12 bytes are
// counted per element (two read, one written).
absl::StatusOr<BenchWindow> StreamAddition(const RawSetting& setting, uint64_t array_bytes);

}  // namespace tug

#endif  // TUG_LIMITS_RAW_LIMITS_H_
