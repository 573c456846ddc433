// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PREDICTION_REPLAY_CLUSTER_H_
#define TUG_PREDICTION_REPLAY_CLUSTER_H_

// Workers and lanes of a replay in virtual time, as messages of sizes:
//
//   worker  StepMachine decides what is computed next, which takes the profile's time; a
//           CreditQueue holds the partitions of its gradients; pulls leave with their block's last
//           gradient
//   lane    counts the gradients of a partition; the last one completes its weights, and the pulls
//           that wait for them leave in the order of its AnswerQueue; with clipping, the last
//           gradient of all that share one norm does
//
// as in worker/training_loop.h, exchange/ and server/shard/shard.h. Not modelled: pushes that a
// lane has no memory for (server/pushes/push_admission.h), the lanes' messages about norms, and
// messages that are lost and resent.
//
// A message is its header and its payload. A worker and a lane have one connection; its messages
// stay in order, so an answer waits behind weights that were sent before it, as in a socket. A
// lane, or worker, processes its arrived messages one at a time.
//
// If streams share links unevenly, every worker is simulated, up to 32 of them and 512 connections
// each way. Beyond that, or if streams are even, one worker represents a group of workers with
// equally many virtual workers, as if they kept step: its traffic counts for all of them where it
// meets others.

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "blocks/partitioner.h"
#include "prediction/chunk_network.h"
#include "prediction/replay_traffic.h"
#include "prediction/scheduling.h"
#include "proto/job.pb.h"
#include "scheduler/credit_queue.h"
#include "server/pulls/answer_queue.h"
#include "worker/core/step_machine.h"

namespace tug {

// Not thread-safe.
class ReplayCluster {
 public:
  // `traffic`: that of `job`. REQUIRES: it outlives this.
  ReplayCluster(const JobConfig& job, const ReplayTraffic& traffic, const SimulatedHosts& hosts);
  ReplayCluster(const ReplayCluster&) = delete;
  ReplayCluster& operator=(const ReplayCluster&) = delete;

  // Approximate chunks of all messages of a step: the cost of simulating it.
  static double ChunksPerStep(const JobConfig& job, const ReplayTraffic& traffic,
                              const SimulatedHosts& hosts);

  // Runs until the first worker has begun the backward pass of step `steps`, counted from 0. Keeps
  // the spans of the previous step. REQUIRES: steps > 0; called once.
  void Run(uint32_t steps);

  // When the first worker, of the first kind, began the first backward pass of each step, seconds.
  const std::vector<double>& begins() const { return begins_; }
  // Sorted by begin; times as in SimulatedSpan.
  std::vector<SimulatedSpan> spans() const;

  // Payloads sent by the first worker, and to it.
  uint64_t pushed_bytes() const { return pushed_bytes_; }
  uint64_t pulled_bytes() const { return pulled_bytes_; }
  // Peak bytes of the worker, or lane, that had most.
  uint64_t peak_push_bytes() const;
  uint64_t peak_answer_bytes() const;

 private:
  using Ticket = CreditQueue::Ticket;
  // A partition of the plan, and its state on its lane.
  struct Part {
    Partition partition;
    uint32_t index_on_lane = 0;
    uint64_t version = 0;
    uint32_t summed = 0;            // virtual workers; one worker counts for its group
    std::vector<uint32_t> waiting;  // workers whose pull waits for the next version
  };
  struct Sending {
    Ticket ticket = 0;
    double sent_seconds = 0;
    bool answered = false;
  };
  struct Worker {
    Worker(const WorkerKind& kind, const JobConfig& job, uint32_t blocks, size_t parts);
    uint32_t workers;          // that it represents
    uint32_t virtual_workers;  // per worker
    double slowdown;           // of its first virtual worker
    StepMachine machine;
    CreditQueue pushes;                          // item: virtual worker << 32 | part
    std::vector<std::vector<Sending>> sendings;  // by virtual worker and part
    std::vector<uint32_t> missing;               // parts of the open pull, by block
    std::vector<uint64_t> versions;              // of complete weights, by block
    bool waits = false;                          // for weights
    double busy_until = 0;                       // with messages
    double encodes_until = 0;
  };
  struct Lane {
    explicit Lane(AnswerQueue::Options options) : answers(options) {}
    AnswerQueue answers;
    double busy_until = 0;
  };
  struct Message {
    enum class Kind : uint8_t { kPush, kReceived, kCommitted, kPull, kWeights, kWeightsReceived };
    Kind kind = Kind::kPush;
    uint32_t worker = 0;
    uint32_t lane = 0;
    uint32_t part = 0;
    uint32_t virtual_worker = 0;
    uint64_t version = 0;
    uint64_t number = 0;  // of the answer
    double sent_seconds = 0;
  };
  // A message that was processed, or is encoded and due to leave, or (no message) a computed block.
  struct Event {
    double time = 0;
    uint64_t order = 0;  // of events at equal times: the order in which they were added
    uint32_t worker = 0;
    std::optional<uint32_t> message;
    bool leaves = false;
    friend bool operator>(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  static std::vector<Part> PartsOf(const JobConfig& job, const ReplayTraffic& traffic);
  uint64_t LargestPayload() const;
  void Connect();
  // Advances to the next event of any kind, and carries out what is due.
  void Advance();
  void Arrive(uint32_t message);
  void At(double time, uint32_t worker, std::optional<uint32_t> message, bool leaves = false);

  // ---- a worker ----
  void Continue(uint32_t worker);
  void OnComputed(uint32_t worker);
  void Push(uint32_t worker, uint32_t virtual_worker, uint32_t block);
  void SendQueued(uint32_t worker);
  void Pull(uint32_t worker, uint32_t block);
  void OnAnswer(const Message& message);
  void OnWeights(const Message& message);

  // ---- a lane ----
  void OnPush(const Message& message);
  void CloseClipped(uint32_t block);
  void MakeVersion(uint32_t part);
  void OnPull(const Message& message);
  void OnReady(uint32_t worker, uint32_t part);
  void SendAnswers(uint32_t lane, uint32_t worker);

  bool IsUp(Message::Kind kind) const;
  // Sends at once, or after `seconds`.
  void Send(const Message& message, double seconds = 0);
  void Leave(uint32_t message);
  void Deal(const Message& message);
  uint64_t PushBytes(uint32_t part) const;
  uint64_t PullBytes(uint32_t part) const;
  uint64_t PayloadBytes(const Message& message) const;
  void Trace(SimulatedSpan::Kind kind, uint32_t worker, uint64_t clock, uint32_t block,
             double begin_seconds, double end_seconds);

  const ReplayTraffic& traffic_;
  const SimulatedHosts hosts_;
  std::vector<Part> parts_;
  std::vector<uint32_t> first_part_;  // by block, one past the last too
  uint32_t pushes_of_a_part_ = 0;     // that make a version, counted like `summed`
  ChunkNetwork network_;              // connections: up, worker x lanes + lane; then down
  std::vector<std::unique_ptr<Worker>> workers_;  // each represents its group
  std::vector<Lane> lanes_;
  std::vector<Message> messages_;  // in flight
  std::vector<uint32_t> free_messages_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t event_count_ = 0;
  std::vector<uint64_t> through_;  // scratch
  double now_ = 0;

  std::vector<double> begins_;
  uint64_t traced_clock_ = 0;
  std::vector<SimulatedSpan> spans_;
  uint64_t pushed_bytes_ = 0;
  uint64_t pulled_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_PREDICTION_REPLAY_CLUSTER_H_
