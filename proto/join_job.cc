#include "proto/join_job.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/time_source.h"

namespace tug {
namespace {

constexpr absl::Duration kAskAgain = absl::Milliseconds(250);

// Between two questions; not a means of synchronisation. A new connection ends it.
void Pause(ControlClient& client) {
  if (client.IsConnected()) {
    absl::SleepFor(kAskAgain);
  } else {
    client.WaitForConnection(kAskAgain);
  }
}

}  // namespace

absl::StatusOr<std::optional<RegisterReply>> JoinJob(ControlClient& client,
                                                     const RegisterRequest& request,
                                                     absl::Duration timeout) {
  const RealTime time;
  bool waits = false;
  absl::Time answered = time.Now();
  while (true) {
    absl::StatusOr<RegisterReply> reply = client.Register(request);
    if (absl::IsAborted(reply.status())) {
      answered = time.Now();
      if (!std::exchange(waits, true)) LogInfo(std::string(reply.status().message()));
    } else if (absl::IsUnavailable(reply.status())) {
      if (time.Now() - answered > timeout) return reply.status();
    } else if (absl::IsOutOfRange(reply.status())) {
      LogInfo("the job has ended: this process is not needed");
      return std::nullopt;
    } else {
      if (waits && reply.ok()) LogInfo("there is a place in the job now");
      return reply;
    }
    Pause(client);
  }
}

}  // namespace tug
