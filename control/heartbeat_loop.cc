// SPDX-License-Identifier: Apache-2.0
#include "control/heartbeat_loop.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock_offset.h"
#include "base/log.h"
#include "base/net/host_identity.h"
#include "base/net/host_name.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "config/sync_mode.h"
#include "control/node_core.h"
#include "control/trace_messages.h"
#include "proto/wire.h"

namespace tug {
namespace {

// Heartbeat loop of one node.
class Beats {
 public:
  Beats(ControlClient& client, const RegisterReply& registered, const HeartbeatCallbacks& callbacks)
      : client_(client),
        callbacks_(callbacks),
        run_dir_(registered.run_dir()),
        presence_(client.StayPresent(registered.node_id(), registered.job())),
        core_(registered, kControlCallTimeout, time_.Now()) {}

  absl::Status Run() {
    while (true) {
      HeartbeatRequest request = core_.Begin();
      request.set_trace_sent(trace_sent_);
      callbacks_.report(request);
      const bool leaves = WantsToLeave();
      core_.Complete(leaves, own_failure_.ok() ? callbacks_.failure() : own_failure_, request);
      const absl::StatusOr<HeartbeatReply> reply = Beat(request);
      const BeatCore::Verdict verdict = core_.OnReply(reply, time_.Now());
      Tell(verdict);
      if (verdict.end.has_value()) return EndOf(verdict);
      if (verdict.running) {
        StayPresent();
        Take(*reply, request);
      }
      if (verdict.running && reply->trace_wanted() && !trace_sent_) {
        SendTrace();  // replaces the pause
        continue;
      }
      Pause();
    }
  }

 private:
  const Trace* trace() const { return callbacks_.trace ? callbacks_.trace() : nullptr; }

  std::string Remedy() const {
    return absl::StrCat("recover the job: tug coordinator --recover ", run_dir_);
  }

  // Waits between two heartbeats; not a means of synchronisation. A new connection ends it.
  void Pause() {
    if (client_.IsConnected()) {
      absl::SleepFor(core_.interval());
    } else {
      client_.WaitForConnection(core_.interval());
    }
  }

  absl::Status EndOf(const BeatCore::Verdict& verdict) const {
    if (verdict.event != BeatCore::Event::kGaveUp) return *verdict.end;
    return absl::UnavailableError(absl::StrCat("the coordinator at ", client_.address(), " ",
                                               verdict.end->message(), "; ", Remedy()));
  }

  void StayPresent() {
    if (presence_->broke_off()) presence_ = client_.StayPresent(core_.node_id(), core_.job());
  }

  void Tell(const BeatCore::Verdict& verdict) const {
    if (verdict.answers_again) {
      LogInfo("the coordinator replies again", {{"address", client_.address()}});
    }
    switch (verdict.event) {
      case BeatCore::Event::kNone:
      case BeatCore::Event::kGaveUp:
        return;
      case BeatCore::Event::kSilence:
        return LogWarning(
            absl::StrCat("no reply from the coordinator; training continues for up to ",
                         absl::FormatDuration(core_.patience()), ". If it has died, ", Remedy()),
            {{"address", client_.address()}});
      case BeatCore::Event::kLeft:
        return LogInfo("this node has left the job; the job continues");
    }
  }

  absl::StatusOr<HeartbeatReply> Beat(const HeartbeatRequest& request) {
    const Trace* const trace = this->trace();
    const int64_t sent_ns = trace == nullptr ? 0 : trace->NowNs();
    absl::StatusOr<HeartbeatReply> reply = client_.Heartbeat(request);
    if (trace != nullptr && reply.ok()) clock_.Add(sent_ns, reply->now_ns(), trace->NowNs());
    return reply;
  }

  bool WantsToLeave() {
    if (leaving_ || !callbacks_.leaving || !callbacks_.leaving()) return leaving_;
    LogInfo("draining: handing over to other nodes; another SIGTERM exits at once");
    return leaving_ = true;
  }

  // Sends chunks for at most one interval; the next heartbeat reports whether all have been sent.
  void SendTrace() {
    const absl::Time deadline = time_.Now() + core_.interval();
    const Trace* const trace = this->trace();
    if (trace != nullptr && !upload_.has_value()) {
      upload_.emplace(*trace, clock_.At(trace->NowNs()).value_or(ClockOffset::Estimate()));
    }
    while (upload_.has_value() && !upload_->done()) {
      const absl::Status sent = client_.SendTrace(upload_->Next(core_.node_id(), core_.job()));
      if (absl::IsUnavailable(sent) || absl::IsDeadlineExceeded(sent)) {
        Pause();
        return;
      }
      if (!sent.ok()) {
        LogWarning("the trace of this process is incomplete",
                   {{"why", std::string(sent.message())}});
        break;
      }
      upload_->Confirm();
      if (time_.Now() >= deadline && !upload_->done()) return;
    }
    trace_sent_ = true;
  }

  void Take(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
    if (core_.TakesView(reply)) own_failure_ = callbacks_.on_view(reply.view());
    callbacks_.on_reply(reply, sent);
  }

  ControlClient& client_;
  const HeartbeatCallbacks& callbacks_;
  const std::string run_dir_;
  std::unique_ptr<PresenceCall> presence_;
  const RealTime time_;
  BeatCore core_;
  bool trace_sent_ = false;
  bool leaving_ = false;
  absl::Status own_failure_;
  ClockOffset clock_;  // the coordinator's clock; only while this process records
  std::optional<TraceUpload> upload_;
};

}  // namespace

void ArmLeaveSignal(LeaveSignal* leave, const JobConfig& config) {
  if (leave == nullptr) return;
  leave->Arm(ContinuesWithoutNode(config) ? LeaveSignal::Rule::kLeave
                                          : LeaveSignal::Rule::kAwaitEnd);
}

RegisterRequest ThisProcess(NodeKind kind) {
  RegisterRequest request;
  request.set_protocol_version(kControlVersion);
  request.set_kind(kind);
  request.set_host(HostName());
  request.set_host_id(HostIdentity());
  request.set_pid(static_cast<uint32_t>(getpid()));
  std::random_device random;
  request.set_incarnation((uint64_t{random()} << 32) | random());
  return request;
}

absl::Status BeatUntilEnd(ControlClient& client, const RegisterReply& registered,
                          const HeartbeatCallbacks& callbacks) {
  return Beats(client, registered, callbacks).Run();
}

}  // namespace tug
