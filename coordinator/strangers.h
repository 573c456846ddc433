#ifndef TUG_COORDINATOR_STRANGERS_H_
#define TUG_COORDINATOR_STRANGERS_H_

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

// Connections that gRPC has, of which no call was a member's yet. gRPC reads what they send before
// anybody can look whose it is, and lets them stay as long as they keep a call open. So these are
// hung up on:
//
//  - who has not been admitted for kPatience,
//  - the surplus of too many (security/waiting_room.h),
//  - where they have sent more than kMostBytes together, who has sent most.
//
// A member's connection is taken off with its first call. Thread-safe.
class Strangers {
 public:
  // How many there may be, but where more members may come at once or few files may be open.
  static constexpr size_t kMost = 128;
  static constexpr absl::Duration kPatience = absl::Seconds(30);
  static constexpr uint64_t kMostBytes = 32 << 20;
  // How often it is to be looked how much they have sent.
  static constexpr absl::Duration kInterval = absl::Milliseconds(10);

  // `members`: of the job.
  explicit Strangers(size_t members);

  // `socket`: of a connection that gRPC gets another descriptor of. `address`: NumericAddress.
  void Add(const std::string& address, int port, FileDescriptor socket, absl::Time now);
  // `connection`: ConnectionName.
  void Admit(const std::string& connection);
  // Returns when to look again; InfiniteFuture: there are none.
  absl::Time HangUp(absl::Time now);

 private:
  struct Connection {
    FileDescriptor socket;
    std::string name;
    absl::Time deadline;
  };
  void RemoveEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HangUpOn(int socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether they had sent too much.
  bool HangUpOnGreediest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(int socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  WaitingRoom room_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by descriptor
  std::map<std::string, int> by_name_ ABSL_GUARDED_BY(mutex_);
};

// What tells connections apart, of both who accepts them and gRPC: "10.0.0.3 4711".
std::string ConnectionName(const std::string& numeric_address, int port);
std::string ConnectionName(const grpc::ServerContextBase& context);

}  // namespace tug

#endif  // TUG_COORDINATOR_STRANGERS_H_
