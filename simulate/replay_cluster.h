#ifndef TUG_SIMULATE_REPLAY_CLUSTER_H_
#define TUG_SIMULATE_REPLAY_CLUSTER_H_

// Workers and lanes of a replay in virtual time, as messages of sizes:
//
//   worker  StepMachine says what is computed next, which takes the profile's time; a CreditQueue
//           holds the partitions of its gradients; pulls leave when their block's last gradient
//           does
//   lane    sums: counts the gradients of a partition; with the last one its weights are there, and
//           the pulls that wait for them leave in the order of its AnswerQueue; with clipping, with
//           the last gradient of all that one norm is of
//
// as in worker/training_loop.h, exchange/ and server/shard.h. Left out: pushes that a lane has no
// memory for (server/push_admission.h), the lanes' word about norms, and whatever is lost and sent
// again.
//
// A message is its header and its payload. A worker and a lane have one connection; its messages
// stay in order, so an answer waits behind weights that were sent before it, as in a socket. What
// has arrived is dealt with one message at a time by its lane, or worker.
//
// Where streams share links unevenly, every worker is simulated, up to 32 of them and 512
// connections each way. Beyond, or where streams are even, one stands for a group that carry
// equally many virtual workers, as if they kept step: its traffic counts as often where it meets
// others.

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "proto/job.pb.h"
#include "scheduler/credit_queue.h"
#include "scheduler/partitioner.h"
#include "server/answer_queue.h"
#include "simulate/chunk_network.h"
#include "simulate/replay_traffic.h"
#include "simulate/scheduling.h"
#include "worker/step_machine.h"

namespace tug {

// Not thread-safe.
class ReplayCluster {
 public:
  // `job`: what `traffic` is of, which outlives this.
  ReplayCluster(const JobConfig& job, const ReplayTraffic& traffic, const SimulatedHosts& hosts);
  ReplayCluster(const ReplayCluster&) = delete;
  ReplayCluster& operator=(const ReplayCluster&) = delete;

  // Of all messages of a step, about: what a step costs to simulate.
  static double ChunksPerStep(const JobConfig& job, const ReplayTraffic& traffic,
                              const SimulatedHosts& hosts);

  // Runs until the first worker has begun the backward pass of step `steps`, counted from
  // 0. Keeps the spans of the step before. REQUIRES: steps > 0; called once.
  void Run(uint32_t steps);

  // When the first worker, of the first kind, began the first backward pass of each step, seconds.
  const std::vector<double>& begins() const { return begins_; }
  // In order of begin; times as in SimulatedSpan.
  std::vector<SimulatedSpan> spans() const;

  // Payloads sent by the first worker, and to it.
  uint64_t pushed_bytes() const { return pushed_bytes_; }
  uint64_t pulled_bytes() const { return pulled_bytes_; }
  // Of the worker, or lane, that had most.
  uint64_t most_push_bytes() const;
  uint64_t most_answer_bytes() const;

 private:
  using Ticket = CreditQueue::Ticket;
  // A partition of the plan, and what its lane knows of it.
  struct Part {
    Partition partition;
    uint32_t index_on_lane = 0;
    uint64_t version = 0;
    uint32_t summed = 0;            // virtual workers, one worker standing for its group
    std::vector<uint32_t> waiting;  // workers whose pull waits for the next version
  };
  struct Sending {
    Ticket ticket = 0;
    double sent_seconds = 0;
    bool answered = false;
  };
  struct Worker {
    Worker(const WorkerKind& kind, const JobConfig& job, uint32_t blocks, size_t parts);
    uint32_t workers;          // that it stands for
    uint32_t virtual_workers;  // of each
    double slowdown;           // of the first of them
    StepMachine machine;
    CreditQueue pushes;                          // item: virtual worker << 32 | part
    std::vector<std::vector<Sending>> sendings;  // by virtual worker and part
    std::vector<uint32_t> missing;               // parts of the pull that is open, by block
    std::vector<uint64_t> versions;              // whole, by block
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
  // A message dealt with, or encoded and due to leave, or (no message) a block computed.
  struct Event {
    double time = 0;
    uint64_t order = 0;  // of equal times: as they were found
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
  // Goes on to the next event of any sort, and carries out what is due.
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
  // At once, or after so many seconds.
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
  uint32_t pushes_of_a_part_ = 0;     // that make a version, as `summed` counts
  ChunkNetwork network_;              // connections: up, worker x lanes + lane; then down
  std::vector<std::unique_ptr<Worker>> workers_;  // each with its group
  std::vector<Lane> lanes_;
  std::vector<Message> messages_;  // on their way
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

#endif  // TUG_SIMULATE_REPLAY_CLUSTER_H_
