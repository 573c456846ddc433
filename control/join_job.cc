// SPDX-License-Identifier: Apache-2.0
#include "control/join_job.h"

#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/time_source.h"

namespace tug {
namespace {

constexpr absl::Duration kAskAgain = absl::Milliseconds(250);

// Waits between two attempts; not a means of synchronisation. A new connection ends it.
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
  JoinCore core(timeout, time.Now());
  while (true) {
    absl::StatusOr<RegisterReply> reply = client.Register(request);
    const bool waited = core.waits();
    switch (core.OnReply(reply.status(), time.Now())) {
      case JoinCore::Next::kJoined:
        if (waited) LogInfo("joined the job: a slot became free");
        return reply;
      case JoinCore::Next::kNotNeeded:
        LogInfo("the job has ended: this process is not needed");
        return std::nullopt;
      case JoinCore::Next::kFail:
        return reply.status();
      case JoinCore::Next::kAskAgain:
        if (core.waits() && !waited) LogInfo(std::string(reply.status().message()));
        Pause(client);
    }
  }
}

}  // namespace tug
