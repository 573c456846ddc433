#include "proto/heartbeat_loop.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock_offset.h"
#include "base/host_identity.h"
#include "base/host_name.h"
#include "base/log.h"
#include "base/own_pauses.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "proto/trace_messages.h"
#include "proto/wire.h"

namespace tug {
namespace {

// Without an answer, before people are told.
constexpr absl::Duration kSilence = absl::Seconds(2);

// One node's beats.
class Beats {
 public:
  Beats(ControlClient& client, const RegisterReply& registered, const HeartbeatCallbacks& callbacks)
      : client_(client),
        callbacks_(callbacks),
        interval_(absl::Milliseconds(registered.config().fault().heartbeat_ms())),
        tell_patience_(absl::Milliseconds(registered.config().fault().failure_timeout_ms())),
        patience_(absl::Milliseconds(registered.config().fault().coordinator_timeout_ms())),
        run_dir_(registered.run_dir()),
        presence_(client.StayPresent(registered.node_id(), registered.job())),
        own_pauses_(kControlCallTimeout + 2 * interval_ + kSilence) {
    base_.set_node_id(registered.node_id());
    base_.set_job(registered.job());
  }

  absl::Status Run() {
    answered_ = time_.Now();
    while (true) {
      HeartbeatRequest request = base_;
      callbacks_.report(request);
      request.set_leaving(WantsToLeave());
      const absl::Status failure = own_failure_.ok() ? callbacks_.failure() : own_failure_;
      if (!failure.ok()) request.set_failure(std::string(failure.message()));
      const absl::StatusOr<HeartbeatReply> reply = Beat(request);
      answered_ = std::min(time_.Now(), answered_ + own_pauses_.Pass(time_.Now()));
      const bool lost =
          absl::IsUnavailable(reply.status()) || absl::IsDeadlineExceeded(reply.status());
      const absl::Duration silence = time_.Now() - answered_;
      // Told, or beyond telling.
      if (!failure.ok() && (!lost || silence > tell_patience_)) return failure;
      if (reply.ok()) {
        Answered();
        if (reply->phase() == DONE) return absl::OkStatus();
        if (reply->phase() == FAILED) return absl::AbortedError(reply->failure());
        if (reply->leave() && reply->replace()) {
          return absl::AbortedError(
              "this node has left the job, which waits for another one in its place");
        }
        if (reply->leave()) {
          LogInfo("this node has left the job, which goes on");
          return absl::OkStatus();
        }
        Take(*reply, request);
      } else if (!lost) {
        return reply.status();
      } else if (silence > patience_) {
        return absl::UnavailableError(absl::StrCat(
            "the coordinator at ", client_.address(), " has not answered for ",
            absl::FormatDuration(absl::Floor(silence, absl::Milliseconds(100))), "; ", Remedy()));
      } else if (silence > kSilence && !silence_told_) {
        silence_told_ = true;
        LogWarning(absl::StrCat("the coordinator does not answer; the job goes on without it for ",
                                absl::FormatDuration(patience_), " at most: ", Remedy()),
                   {{"address", client_.address()}});
      }
      if (reply.ok() && reply->trace_wanted() && !base_.trace_sent()) {
        SendTrace();  // in place of the pause
        continue;
      }
      Pause();
    }
  }

 private:
  const Trace* trace() const { return callbacks_.trace ? callbacks_.trace() : nullptr; }

  std::string Remedy() const {
    return absl::StrCat("take the job up with: tug coordinator --take-up ", run_dir_);
  }

  // Between two beats; not a means of synchronisation. A new connection ends it.
  void Pause() {
    if (client_.IsConnected()) {
      absl::SleepFor(interval_);
    } else {
      client_.WaitForConnection(interval_);
    }
  }

  void Answered() {
    answered_ = time_.Now();
    if (presence_->broke_off()) presence_ = client_.StayPresent(base_.node_id(), base_.job());
    if (!std::exchange(silence_told_, false)) return;
    LogInfo("the coordinator answers again", {{"address", client_.address()}});
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
    LogInfo("this node hands over what it has, to leave the job; another SIGTERM ends it at once");
    return leaving_ = true;
  }

  // For one interval at most; the next beat tells whether all has been sent.
  void SendTrace() {
    const absl::Time deadline = time_.Now() + interval_;
    const Trace* const trace = this->trace();
    if (trace != nullptr && !upload_.has_value()) {
      upload_.emplace(*trace, clock_.At(trace->NowNs()).value_or(ClockOffset::Estimate()));
    }
    while (upload_.has_value() && !upload_->done()) {
      const absl::Status sent = client_.SendTrace(upload_->Next(base_.node_id(), base_.job()));
      if (absl::IsUnavailable(sent) || absl::IsDeadlineExceeded(sent)) {
        Pause();
        return;
      }
      if (!sent.ok()) {
        LogWarning("the trace of this process is not whole",
                   {{"why", std::string(sent.message())}});
        break;
      }
      upload_->Confirm();
      if (time_.Now() >= deadline && !upload_->done()) return;
    }
    base_.set_trace_sent(true);
  }

  void Take(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
    if (reply.has_view() && reply.view().number() > base_.known_view()) {
      own_failure_ = callbacks_.on_view(reply.view());
      base_.set_known_view(reply.view().number());
    }
    callbacks_.on_reply(reply, sent);
  }

  ControlClient& client_;
  const HeartbeatCallbacks& callbacks_;
  const absl::Duration interval_;
  const absl::Duration tell_patience_;  // where this node has failed: to tell so
  const absl::Duration patience_;
  const std::string run_dir_;
  std::unique_ptr<PresenceCall> presence_;
  const RealTime time_;
  OwnPauses own_pauses_;
  absl::Time answered_;        // the newest heartbeat that was, later by own pauses
  bool silence_told_ = false;  // to people
  HeartbeatRequest base_;
  bool leaving_ = false;
  absl::Status own_failure_;
  ClockOffset clock_;  // of the coordinator, where this process records
  std::optional<TraceUpload> upload_;
};

}  // namespace

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
