// SPDX-License-Identifier: Apache-2.0
// Workers and lanes of a ReplayCluster: what follows from a computed block or an arrived message.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/check.h"
#include "prediction/replay_cluster.h"
#include "transport/transport.h"

namespace tug {

using SpanKind = SimulatedSpan::Kind;

// ---- a worker ----

void ReplayCluster::Continue(uint32_t index) {
  Worker& worker = *workers_[index];
  while (worker.machine.next() == StepMachine::Next::kWaitWeights) {
    const uint32_t block = worker.machine.compute().block;
    worker.waits = worker.versions[block] != worker.machine.clock();
    if (worker.waits) return;
    worker.machine.OnWeights(block, worker.machine.clock());
  }
  TUG_CHECK(worker.machine.next() == StepMachine::Next::kCompute);
  const Compute& compute = worker.machine.compute();
  const bool forward = compute.phase == ComputePhase::kForward;
  double seconds =
      forward ? traffic_.forward_seconds[compute.block] : traffic_.backward_seconds[compute.block];
  if (compute.virtual_worker == 0) seconds *= worker.slowdown;
  const bool begins_backward =
      !forward && compute.block + 1 == traffic_.blocks() && compute.virtual_worker == 0;
  if (index == 0 && begins_backward) begins_.push_back(now_);
  // The first forward pass of a step is traced with the previous step, which waits for it.
  const bool awaited = forward && compute.virtual_worker == 0;
  if (!awaited || compute.clock > 0) {
    Trace(forward ? SpanKind::kForward : SpanKind::kBackward, index,
          awaited ? compute.clock - 1 : compute.clock, compute.block, now_, now_ + seconds);
  }
  At(now_ + seconds, index, std::nullopt);
}

void ReplayCluster::OnComputed(uint32_t index) {
  Worker& worker = *workers_[index];
  const Compute compute = worker.machine.compute();
  const StepEffects effects = worker.machine.OnComputeDone();
  if (effects.push.has_value()) Push(index, compute.virtual_worker, *effects.push);
  if (effects.pull.has_value()) Pull(index, effects.pull->block);
  Continue(index);
}

void ReplayCluster::Push(uint32_t index, uint32_t virtual_worker, uint32_t block) {
  Worker& worker = *workers_[index];
  for (uint32_t part = first_part_[block]; part < first_part_[block + 1]; ++part) {
    const Ticket ticket =
        worker.pushes.Enqueue({.priority = block,
                               .group = uint64_t{virtual_worker} * traffic_.blocks() + block,
                               .bytes = PushBytes(part),
                               .item = uint64_t{virtual_worker} << 32 | part});
    worker.sendings[virtual_worker][part] = {.ticket = ticket};
  }
  SendQueued(index);
}

void ReplayCluster::SendQueued(uint32_t index) {
  Worker& worker = *workers_[index];
  while (const std::optional<uint64_t> item = worker.pushes.Next()) {
    const auto virtual_worker = static_cast<uint32_t>(*item >> 32);
    const auto part = static_cast<uint32_t>(*item);
    worker.sendings[virtual_worker][part].sent_seconds = now_;
    double seconds = 0;
    if (hosts_.encode_bytes_per_second > 0) {
      worker.encodes_until =
          std::max(worker.encodes_until, now_) +
          static_cast<double>(parts_[part].partition.bytes()) / hosts_.encode_bytes_per_second;
      seconds = worker.encodes_until - now_;
    }
    Send({.kind = Message::Kind::kPush,
          .worker = index,
          .lane = parts_[part].partition.lane,
          .part = part,
          .virtual_worker = virtual_worker},
         seconds);
  }
}

void ReplayCluster::Pull(uint32_t index, uint32_t block) {
  Worker& worker = *workers_[index];
  TUG_CHECK_EQ(worker.missing[block], 0u);
  worker.missing[block] = first_part_[block + 1] - first_part_[block];
  for (uint32_t part = first_part_[block]; part < first_part_[block + 1]; ++part) {
    Send({.kind = Message::Kind::kPull,
          .worker = index,
          .lane = parts_[part].partition.lane,
          .part = part,
          .version = worker.versions[block] + 1});
  }
}

void ReplayCluster::OnAnswer(const Message& message) {
  Worker& worker = *workers_[message.worker];
  Sending& sending = worker.sendings[message.virtual_worker][message.part];
  const bool committed = message.kind == Message::Kind::kCommitted;
  if (committed) {
    worker.pushes.Committed(sending.ticket);
  } else {
    worker.pushes.Received(sending.ticket);
  }
  if (!std::exchange(sending.answered, true)) {
    Trace(SpanKind::kPush, message.worker, message.version, parts_[message.part].partition.block,
          sending.sent_seconds, now_);
  }
  SendQueued(message.worker);
}

void ReplayCluster::OnWeights(const Message& message) {
  Worker& worker = *workers_[message.worker];
  Message received = message;
  received.kind = Message::Kind::kWeightsReceived;
  Send(received);
  const uint32_t block = parts_[message.part].partition.block;
  Trace(SpanKind::kPull, message.worker, message.version - 1, block, message.sent_seconds, now_);
  TUG_CHECK(worker.missing[block] > 0 && message.version == worker.versions[block] + 1);
  if (--worker.missing[block] > 0) return;
  ++worker.versions[block];
  if (worker.waits && worker.machine.compute().block == block) {
    worker.waits = false;
    Continue(message.worker);
  }
}

// ---- a lane ----

void ReplayCluster::OnPush(const Message& message) {
  Part& part = parts_[message.part];
  const bool complete = ++part.summed == pushes_of_a_part_;
  const bool alone = traffic_.clip == OptimizerConfig::OFF;
  if (complete && alone) return MakeVersion(message.part);
  Message answer = message;
  answer.version = part.version;  // the clock of the push
  answer.kind = Message::Kind::kReceived;
  Send(answer);
  if (complete) CloseClipped(part.partition.block);
}

// Partitions that are clipped by one norm become a version together, once the last of them is
// complete.
void ReplayCluster::CloseClipped(uint32_t block) {
  const bool global = traffic_.clip == OptimizerConfig::GLOBAL;
  const uint32_t first = global ? 0 : first_part_[block];
  const uint32_t end = global ? first_part_.back() : first_part_[block + 1];
  for (uint32_t part = first; part < end; ++part) {
    if (parts_[part].summed < pushes_of_a_part_) return;
  }
  for (uint32_t part = first; part < end; ++part) MakeVersion(part);
}

void ReplayCluster::MakeVersion(uint32_t index) {
  Part& part = parts_[index];
  Message answer{.kind = Message::Kind::kCommitted,
                 .lane = part.partition.lane,
                 .part = index,
                 .version = part.version};
  part.summed = 0;
  ++part.version;
  for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
    for (uint32_t v = 0; v < workers_[worker]->virtual_workers; ++v) {
      answer.worker = worker;
      answer.virtual_worker = v;
      Send(answer);
    }
  }
  for (const uint32_t worker : std::exchange(part.waiting, {})) OnReady(worker, index);
}

void ReplayCluster::OnPull(const Message& message) {
  Part& part = parts_[message.part];
  if (part.version < message.version) {
    part.waiting.push_back(message.worker);
  } else {
    OnReady(message.worker, message.part);
  }
}

void ReplayCluster::OnReady(uint32_t worker, uint32_t index) {
  const Part& part = parts_[index];
  WaitingPull pull;
  pull.header.sender = WorkerPeer(worker);
  pull.header.block = part.partition.block;
  pull.header.first_segment = index;  // index in parts_
  pull.header.clock = part.version;
  const uint32_t lane = part.partition.lane;
  TUG_CHECK(lanes_[lane].answers.Add(std::move(pull), part.index_on_lane, PullBytes(index)));
  SendAnswers(lane, worker);
}

void ReplayCluster::SendAnswers(uint32_t lane, uint32_t worker) {
  AnswerQueue& answers = lanes_[lane].answers;
  while (const std::optional<AnswerQueue::Turn> turn =
             answers.Next(WorkerPeer(worker), absl::UnixEpoch())) {
    Send({.kind = Message::Kind::kWeights,
          .worker = worker,
          .lane = lane,
          .part = turn->pull.header.first_segment,
          .version = turn->pull.header.clock,
          .number = turn->number});
  }
}

}  // namespace tug
