// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_COORDINATOR_TEST_SUPPORT_H_
#define TUG_COORDINATOR_COORDINATOR_TEST_SUPPORT_H_

// A job driven by hand, for tests of coordinator.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "proto/wire.h"

namespace tug {

inline constexpr uint64_t kJob = 77;
inline constexpr uint64_t kFingerprint = 1234;

// A job of `servers` servers with 2 lanes each and `workers` workers, driven by hand.
class JobUnderTest {
 public:
  JobUnderTest(uint32_t servers, uint32_t workers, uint64_t steps = 10, uint64_t start_version = 0,
               uint32_t virtual_workers = 0)
      : coordinator_(Options(servers, workers, steps, start_version,
                             virtual_workers == 0 ? workers : virtual_workers)) {}

  explicit JobUnderTest(CoordinatorOptions options) : coordinator_(std::move(options)) {}

  static CoordinatorOptions Options(uint32_t servers, uint32_t workers, uint64_t steps,
                                    uint64_t start_version, uint32_t virtual_workers) {
    CoordinatorOptions options;
    ClusterConfig& cluster = *options.config.mutable_cluster();
    cluster.set_servers(servers);
    cluster.set_workers(workers);
    cluster.set_lanes_per_server(2);
    cluster.set_virtual_workers(virtual_workers);
    options.config.mutable_sync()->set_replicas(1);
    options.config.mutable_train()->set_steps(steps);
    options.config.mutable_fault()->set_failure_timeout_ms(5000);
    options.fingerprint = kFingerprint;
    options.layout.segment_bytes = {100, 50, 60, 40, 10};
    options.job = kJob;
    options.run_dir = "/runs/job-1";
    options.start.version = start_version;
    return options;
  }

  RegisterRequest Request(NodeKind kind, uint64_t incarnation) const {
    RegisterRequest request;
    request.set_protocol_version(kControlVersion);
    request.set_kind(kind);
    request.set_host("host");
    request.set_pid(static_cast<uint32_t>(incarnation));
    request.set_incarnation(incarnation);
    return request;
  }
  uint32_t Join(NodeKind kind, uint64_t incarnation, bool spare = false) {
    RegisterRequest request = Request(kind, incarnation);
    request.set_spare(spare);
    const auto reply = coordinator_.OnRegister(request, now_);
    EXPECT_TRUE(reply.ok()) << reply.status();
    if (kind == SERVER) {
      request.add_lane_endpoints("tcp://h:" + std::to_string(incarnation * 10));
      request.add_lane_endpoints("tcp://h:" + std::to_string(incarnation * 10 + 1));
      EXPECT_TRUE(coordinator_.OnRegister(request, now_).ok());
    }
    return reply->node_id();
  }

  HeartbeatRequest Beat(uint32_t id) const {
    HeartbeatRequest request;
    request.set_node_id(id);
    request.set_job(kJob);
    return request;
  }
  HeartbeatRequest ReadyBeat(uint32_t id) const {
    HeartbeatRequest request = Beat(id);
    request.set_known_view(1);
    request.set_ready(true);
    return request;
  }
  HeartbeatReply Send(const HeartbeatRequest& request) {
    const auto reply = coordinator_.OnHeartbeat(request, now_);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.value_or(HeartbeatReply());
  }

  // Servers and workers join and become ready; ids 1..servers, then the workers'.
  void Run(uint32_t servers, uint32_t workers) {
    for (uint32_t i = 0; i < servers; ++i) Join(SERVER, 1 + i);
    for (uint32_t i = 0; i < workers; ++i) Join(WORKER, 101 + i);
    for (uint32_t id = 1; id <= servers + workers; ++id) Send(ReadyBeat(id));
    ASSERT_EQ(coordinator_.phase(), RUNNING);
  }

  void Pass(absl::Duration time) {
    const absl::Time end = now_ + time;
    while (now_ < end) StandStill(std::min(end - now_, absl::Milliseconds(100)));
  }
  // The coordinator's process is stopped for this time.
  void StandStill(absl::Duration time) {
    now_ += time;
    coordinator_.OnTick(now_);
  }

  template <typename T>
  std::vector<T> Take() {
    std::vector<T> found;
    for (Action& action : coordinator_.TakeActions()) {
      if (T* wanted = std::get_if<T>(&action)) found.push_back(std::move(*wanted));
    }
    return found;
  }

  Coordinator& coordinator() { return coordinator_; }
  absl::Time now() const { return now_; }

 private:
  Coordinator coordinator_;
  absl::Time now_ = absl::UnixEpoch();
};

// A node that follows the orders in each reply.
class NodeUnderTest {
 public:
  NodeUnderTest(JobUnderTest& job, uint32_t id, uint32_t virtual_workers = 4)
      : job_(job), id_(id), clocks_(virtual_workers, 0) {}

  // Callers may read the reply too.
  HeartbeatReply Beat() {
    HeartbeatRequest beat = said;
    beat.set_node_id(id_);
    beat.set_job(kJob);
    beat.set_known_view(view.number());
    beat.set_ready(view.number() > 0);
    beat.set_clocks_of_view(fenced);
    if (fenced > 0) beat.mutable_clocks()->Assign(clocks_.begin(), clocks_.end());
    if (copies) beat.set_copied_placement(placement);
    HeartbeatReply reply = job_.Send(beat);
    if (reply.has_view()) {
      view = reply.view();
      placement = std::max(placement, view.placement());
    }
    if (reply.has_next_view()) {
      fenced = reply.next_view().number();
      placement = reply.next_view().placement();
    }
    left |= reply.leave();
    return reply;
  }
  uint32_t id() const { return id_; }
  void SetClocks(std::vector<uint64_t> clocks) { clocks_ = std::move(clocks); }

  HeartbeatRequest said;  // additional fields of each heartbeat
  bool copies = true;     // copies of its segments are in sync at once
  View view;
  uint32_t placement = 0;
  uint32_t fenced = 0;
  bool left = false;

 private:
  JobUnderTest& job_;
  const uint32_t id_;
  std::vector<uint64_t> clocks_;
};

inline HeartbeatRequest WithPart(HeartbeatRequest beat, uint32_t lane, uint64_t version,
                                 uint32_t placement = 1) {
  CheckpointPart* part = beat.add_parts();
  part->set_lane(lane);
  part->set_version(version);
  part->set_placement(placement);
  part->set_file("part-" + std::to_string(lane));
  part->set_size_bytes(10);
  part->set_xxh3(lane + 1);
  return beat;
}

inline HeartbeatRequest WithStep(HeartbeatRequest beat, uint32_t virtual_worker, uint64_t clock) {
  beat.set_started(true);
  beat.set_clock(clock);
  StepReport* step = beat.add_steps();
  step->set_virtual_worker(virtual_worker);
  step->set_clock(clock);
  step->set_loss_sum(5);
  step->set_tokens(2);
  step->set_targets(2);
  return beat;
}

}  // namespace tug

#endif  // TUG_COORDINATOR_COORDINATOR_TEST_SUPPORT_H_
