// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_STRANGERS_H_
#define TUG_COORDINATOR_SERVICE_STRANGERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "security/waiting_room.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace tug {

// Unauthenticated connections: gRPC has them, but admitted no call of theirs yet. gRPC reads what
// they send before it can be checked, and keeps them while they have a call open. So this class
// closes
//
//  - those not admitted within kPatience,
//  - the surplus if there are too many (security/waiting_room.h),
//  - the one that has sent most, while they have sent more than kByteLimit together.
//
// A connection is removed with its first admitted call. Thread-safe.
class Strangers {
 public:
  // Max number; higher in jobs with many members (2 per member), lower if few files may be open.
  static constexpr size_t kMost = 128;
  static constexpr absl::Duration kPatience = absl::Seconds(30);
  static constexpr uint64_t kByteLimit = 32 << 20;
  // Interval between checks of how much they have sent.
  static constexpr absl::Duration kInterval = absl::Milliseconds(10);

  // `members`: number of members of the job.
  explicit Strangers(size_t members);

  // `socket`: a duplicate of the descriptor that gRPC gets. `address`: from NumericAddress.
  void Add(const std::string& address, int port, FileDescriptor socket, absl::Time now);
  // `connection`: its ConnectionName.
  void Admit(const std::string& connection);
  // Closes connections as above. Returns when to call again; InfiniteFuture: no connections are
  // left.
  absl::Time HangUp(absl::Time now);

 private:
  struct Connection {
    FileDescriptor socket;
    std::string name;
    absl::Time deadline;
  };
  void RemoveEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HangUpOn(int socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether they had sent too much, so that one was closed.
  bool HangUpOnGreediest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(int socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  WaitingRoom room_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by descriptor
  std::map<std::string, int> by_name_ ABSL_GUARDED_BY(mutex_);
};

// Name of a connection, the same for the accepting gate and for gRPC: "10.0.0.3 4711".
std::string ConnectionName(const std::string& numeric_address, int port);
std::string ConnectionName(const grpc::ServerContextBase& context);

}  // namespace tug

#endif  // TUG_COORDINATOR_SERVICE_STRANGERS_H_
