// SPDX-License-Identifier: Apache-2.0
#include "prediction/replay_cluster.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "absl/time/time.h"
#include "base/check.h"
#include "proto/wire.h"
#include "transport/transport.h"

// The code of workers and lanes is in replay_cluster_nodes.cc.

namespace tug {
namespace {

AnswerQueue::Options AnswerOptions(const JobConfig& job, const ReplayTraffic& traffic,
                                   size_t workers) {
  std::vector<uint32_t> lanes = traffic.lane_of_segment;
  std::sort(lanes.begin(), lanes.end());
  const auto owners = std::unique(lanes.begin(), lanes.end()) - lanes.begin();
  return {.scheduler = job.comm().scheduler(),
          .credit_bytes = job.comm().pull_credit_bytes() / static_cast<uint64_t>(owners),
          .max_workers = workers,
          .lost_after = absl::InfiniteDuration()};
}

// Limits of the workers of a kind, and roughly of the connections each way, that are simulated one
// by one if they do not keep step. Beyond that, as many groups of equal size as these allow.
constexpr uint32_t kMaxGroups = 32;
constexpr uint32_t kMaxConnections = 512;

std::vector<WorkerKind> GroupsOf(const ReplayTraffic& traffic, bool keep_step) {
  const uint32_t most =
      keep_step ? 1 : std::clamp(kMaxConnections / traffic.lanes(), 1u, kMaxGroups);
  std::vector<WorkerKind> groups;
  for (const WorkerKind& kind : traffic.kinds) {
    const uint32_t of_kind = std::min(most, kind.workers);
    for (uint32_t g = 0; g < of_kind; ++g) {
      groups.push_back({kind.workers / of_kind + (g < kind.workers % of_kind ? 1 : 0),
                        kind.virtual_workers, kind.slowdown});
    }
  }
  return groups;
}

// Chunks per message, so that it arrives as a stream. A chunk is at least what a TCP segment
// carries, at most what a host passes to its network card at once.
constexpr double kChunksOfAMessage = 16;
constexpr double kMinChunkBytes = 1448;
constexpr double kMaxChunkBytes = 65536;

ChunkNetwork::Options NetworkOptions(const SimulatedHosts& hosts, uint64_t largest_payload) {
  return {.link_bytes_per_second = hosts.link_bytes_per_second,
          .queue_seconds = hosts.queue_seconds,
          .unevenness = hosts.unevenness,
          .chunk_bytes = std::clamp(static_cast<double>(largest_payload) / kChunksOfAMessage,
                                    kMinChunkBytes, kMaxChunkBytes)};
}

}  // namespace

ReplayCluster::Worker::Worker(const WorkerKind& kind, const JobConfig& job, uint32_t blocks,
                              size_t parts)
    : workers(kind.workers),
      virtual_workers(kind.virtual_workers),
      slowdown(kind.slowdown),
      machine({.blocks = blocks, .virtual_workers = kind.virtual_workers}),
      pushes(PolicyOf(job.comm().scheduler()), job.comm().credit_bytes()),
      sendings(kind.virtual_workers, std::vector<Sending>(parts)),
      missing(blocks, 0),
      versions(blocks, 0) {}

ReplayCluster::ReplayCluster(const JobConfig& job, const ReplayTraffic& traffic,
                             const SimulatedHosts& hosts)
    : traffic_(traffic),
      hosts_(hosts),
      parts_(PartsOf(job, traffic)),
      network_(NetworkOptions(hosts, LargestPayload())) {
  std::vector<uint32_t> parts_of_lane(traffic.lanes(), 0);
  for (uint32_t part = 0; part < parts_.size(); ++part) {
    const uint32_t block = parts_[part].partition.block;
    if (first_part_.size() == block) first_part_.push_back(part);
    parts_[part].index_on_lane = parts_of_lane[parts_[part].partition.lane]++;
  }
  first_part_.push_back(static_cast<uint32_t>(parts_.size()));
  for (const WorkerKind& group : GroupsOf(traffic, hosts.unevenness == 1)) {
    workers_.push_back(std::make_unique<Worker>(group, job, traffic.blocks(), parts_.size()));
    pushes_of_a_part_ += group.virtual_workers;
  }
  for (uint32_t lane = 0; lane < traffic.lanes(); ++lane) {
    lanes_.emplace_back(AnswerOptions(job, traffic, workers_.size()));
    for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
      TUG_CHECK(lanes_.back().answers.Admit(WorkerPeer(worker)));
    }
  }
  Connect();
}

std::vector<ReplayCluster::Part> ReplayCluster::PartsOf(const JobConfig& job,
                                                        const ReplayTraffic& traffic) {
  std::vector<Part> parts;
  for (uint32_t block = 0; block < traffic.blocks(); ++block) {
    for (const Partition& partition :
         CutBlock(traffic.table, block, traffic.lane_of_segment, job.comm().partition_bytes())) {
      parts.push_back({.partition = partition});
    }
  }
  return parts;
}

uint64_t ReplayCluster::LargestPayload() const {
  uint64_t largest = 0;
  for (uint32_t part = 0; part < parts_.size(); ++part) {
    largest = std::max({largest, PushBytes(part), PullBytes(part)});
  }
  return largest;
}

double ReplayCluster::ChunksPerStep(const JobConfig& job, const ReplayTraffic& traffic,
                                    const SimulatedHosts& hosts) {
  double parts = 0, largest = 0, pushed = 0, pulled = 0;
  for (uint32_t block = 0; block < traffic.blocks(); ++block) {
    for (const Partition& partition :
         CutBlock(traffic.table, block, traffic.lane_of_segment, job.comm().partition_bytes())) {
      ++parts;
      const auto push = static_cast<double>(traffic.PushBytes(partition));
      const auto pull = static_cast<double>(traffic.PullBytes(partition));
      pushed += push;
      pulled += pull;
      largest = std::max({largest, push, pull});
    }
  }
  const double chunk = NetworkOptions(hosts, static_cast<uint64_t>(largest)).chunk_bytes;
  double chunks = 0;
  for (const WorkerKind& group : GroupsOf(traffic, hosts.unevenness == 1)) {
    // With requests and acknowledgements, a partition has three messages each way.
    chunks += (3 * parts + pushed / chunk) * group.virtual_workers;
    chunks += 3 * parts + pulled / chunk;
  }
  return chunks;
}

void ReplayCluster::Connect() {
  struct Ends {
    ChunkNetwork::Link sender;
    ChunkNetwork::Link receiver;
  };
  const auto add_hosts = [this](size_t count) {
    std::vector<Ends> hosts;
    while (hosts.size() < count) hosts.push_back({network_.AddSender(), network_.AddReceiver()});
    return hosts;
  };
  const std::vector<Ends> of_workers = add_hosts(workers_.size());
  const std::vector<Ends> of_servers = add_hosts(traffic_.servers);
  for (const bool up : {true, false}) {
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      const uint32_t copies = workers_[worker]->workers;
      for (uint32_t lane = 0; lane < traffic_.lanes(); ++lane) {
        const Ends server = of_servers[lane / traffic_.lanes_per_server];
        if (up) {
          network_.Connect(of_workers[worker].sender, 1, server.receiver, copies);
        } else {
          network_.Connect(server.sender, copies, of_workers[worker].receiver, 1);
        }
      }
    }
  }
}

void ReplayCluster::Run(uint32_t steps) {
  TUG_CHECK(steps > 0 && begins_.empty());
  traced_clock_ = steps - 1;
  for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
    StepMachine& machine = workers_[worker]->machine;
    for (uint32_t block = 0; block < traffic_.blocks(); ++block) machine.OnWeights(block, 0);
    machine.SetGate(/*paused=*/false, /*final_version=*/0);
    Continue(worker);
  }
  while (begins_.size() <= steps) Advance();
}

// ---- time ----

void ReplayCluster::Advance() {
  double time = network_.NextTime();
  if (!events_.empty()) time = std::min(time, events_.top().time);
  TUG_CHECK(time < std::numeric_limits<double>::infinity()) << "nothing is left to happen";
  now_ = time;
  through_.clear();
  network_.Advance(now_, through_);
  for (const uint64_t message : through_) Arrive(static_cast<uint32_t>(message));
  while (!events_.empty() && events_.top().time <= now_) {
    const Event event = events_.top();
    events_.pop();
    if (!event.message.has_value()) {
      OnComputed(event.worker);
      continue;
    }
    if (event.leaves) {
      Leave(*event.message);
      continue;
    }
    const Message message = messages_[*event.message];
    free_messages_.push_back(*event.message);
    Deal(message);
  }
}

void ReplayCluster::At(double time, uint32_t worker, std::optional<uint32_t> message, bool leaves) {
  events_.push({time, event_count_++, worker, message, leaves});
}

// Arrived messages are processed in order: by a lane once for every worker that the sender
// represents, by a worker only its own.
void ReplayCluster::Arrive(uint32_t name) {
  const Message& message = messages_[name];
  const bool up = IsUp(message.kind);
  double seconds = hosts_.message_seconds;
  if (message.kind == Message::Kind::kPush && hosts_.server_bytes_per_second > 0) {
    seconds += static_cast<double>(parts_[message.part].partition.bytes()) /
               hosts_.server_bytes_per_second;
  }
  if (message.kind == Message::Kind::kWeights && hosts_.decode_bytes_per_second > 0) {
    seconds += static_cast<double>(parts_[message.part].partition.bytes()) /
               hosts_.decode_bytes_per_second;
  }
  if (up) seconds *= workers_[message.worker]->workers;
  double& busy_until = up ? lanes_[message.lane].busy_until : workers_[message.worker]->busy_until;
  busy_until = std::max(busy_until, now_ + hosts_.latency_seconds) + seconds;
  At(busy_until, message.worker, name);
}

// ---- messages ----

bool ReplayCluster::IsUp(Message::Kind kind) const {
  return kind == Message::Kind::kPush || kind == Message::Kind::kPull ||
         kind == Message::Kind::kWeightsReceived;
}

uint64_t ReplayCluster::PushBytes(uint32_t part) const {
  return traffic_.PushBytes(parts_[part].partition);
}

uint64_t ReplayCluster::PullBytes(uint32_t part) const {
  return traffic_.PullBytes(parts_[part].partition);
}

uint64_t ReplayCluster::PayloadBytes(const Message& message) const {
  if (message.kind == Message::Kind::kPush) return PushBytes(message.part);
  return message.kind == Message::Kind::kWeights ? PullBytes(message.part) : 0;
}

void ReplayCluster::Send(const Message& message, double seconds) {
  if (message.worker == 0) {
    (IsUp(message.kind) ? pushed_bytes_ : pulled_bytes_) += PayloadBytes(message);
  }
  uint32_t name = static_cast<uint32_t>(messages_.size());
  if (free_messages_.empty()) {
    messages_.push_back(message);
  } else {
    name = free_messages_.back();
    free_messages_.pop_back();
    messages_[name] = message;
  }
  messages_[name].sent_seconds = now_;
  if (seconds > 0) return At(now_ + seconds, message.worker, name, /*leaves=*/true);
  Leave(name);
}

void ReplayCluster::Leave(uint32_t name) {
  const Message& message = messages_[name];
  const size_t direction = IsUp(message.kind) ? 0 : workers_.size();
  const size_t connection = (direction + message.worker) * traffic_.lanes() + message.lane;
  network_.Send(static_cast<ChunkNetwork::Connection>(connection),
                static_cast<double>(kHeaderBytes + PayloadBytes(message)), name);
}

void ReplayCluster::Deal(const Message& message) {
  switch (message.kind) {
    case Message::Kind::kPush:
      return OnPush(message);
    case Message::Kind::kPull:
      return OnPull(message);
    case Message::Kind::kWeightsReceived:
      TUG_CHECK(lanes_[message.lane].answers.Received(WorkerPeer(message.worker), message.number));
      return SendAnswers(message.lane, message.worker);
    case Message::Kind::kReceived:
    case Message::Kind::kCommitted:
      return OnAnswer(message);
    case Message::Kind::kWeights:
      return OnWeights(message);
  }
}

// ---- figures ----

uint64_t ReplayCluster::peak_push_bytes() const {
  uint64_t most = 0;
  for (const auto& worker : workers_) {
    most = std::max(most, worker->pushes.most_outstanding_bytes());
  }
  return most;
}

uint64_t ReplayCluster::peak_answer_bytes() const {
  uint64_t most = 0;
  for (const Lane& lane : lanes_) most = std::max(most, lane.answers.most_outstanding_bytes());
  return most;
}

void ReplayCluster::Trace(SimulatedSpan::Kind kind, uint32_t worker, uint64_t clock, uint32_t block,
                          double begin_seconds, double end_seconds) {
  if (worker != 0 || clock != traced_clock_) return;
  spans_.push_back({kind, block, begin_seconds, end_seconds});
}

std::vector<SimulatedSpan> ReplayCluster::spans() const {
  std::vector<SimulatedSpan> spans = spans_;
  const double begin = begins_[traced_clock_];
  for (SimulatedSpan& span : spans) {
    span.begin_seconds -= begin;
    span.end_seconds -= begin;
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const auto& a, const auto& b) { return a.begin_seconds < b.begin_seconds; });
  return spans;
}

}  // namespace tug
