// SPDX-License-Identifier: Apache-2.0
// Workers of `tug bench`: see bench_job.h. Step i of a worker is block i mod blocks at clock i /
// blocks; at most `outstanding` steps are in flight.

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/memory/large_blocks.h"
#include "base/memory/lease.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "blocks/view_lanes.h"
#include "exchange/client.h"
#include "exchange/exchange.h"
#include "lab/bench/bench_job.h"
#include "limits/stream_loops.h"
#include "proto/process_name.h"
#include "transport/open_transport.h"

namespace tug {
namespace {

constexpr uint32_t kFirstWorkerNode = 1001;
constexpr absl::Duration kTick = absl::Milliseconds(50);

// One worker's job, memory and index among the others.
class BenchWorker {
 public:
  static absl::Status Run(const BenchSetting& setting, const BenchLoad& load, uint32_t index,
                          const std::vector<std::string>& endpoints, BenchTally& tally) {
    KeepLargeBlocksMapped();  // as worker/daemon.cc does
    ASSIGN_OR_RETURN(const std::unique_ptr<LaneJob> job, MakeBenchJob(setting, 1));
    const View view = MakeBenchView(setting, endpoints);
    const PeerId self = WorkerPeer(kFirstWorkerNode + index);
    ASSIGN_OR_RETURN(OpenedTransport opened,
                     OpenTransport(self, job->job, job->config.comm(), "", job->keys));
    RETURN_IF_ERROR(ConnectToLanes(view, self, *opened.transport));
    BenchWorker worker(setting, load, index, *job, view, tally);
    worker.MakeMemory(*opened.transport);
    return load.through_client ? worker.RunClient(std::move(opened.transport))
                               : worker.RunMachine(*opened.transport);
  }

 private:
  BenchWorker(const BenchSetting& setting, const BenchLoad& load, uint32_t index,
              const LaneJob& job, const View& view, BenchTally& tally)
      : setting_(setting),
        load_(load),
        index_(index),
        job_(job),
        options_(
            ExchangeOptionsOf(job.config, job.job, view, WorkerPeer(kFirstWorkerNode + index))),
        tally_(tally) {}

  void MakeMemory(Transport& transport) {
    for (uint32_t b = 0; b < setting_.blocks; ++b) {
      for (uint32_t v = 0; v < setting_.virtual_workers_per_worker; ++v) {
        gradients_.push_back(transport.NewBuffer(setting_.bytes));
        std::ranges::fill(gradients_.back()->floats(), 1e-3f);
      }
      weights_.emplace_back(load_.op == BenchOp::kPush ? 0 : setting_.bytes);
    }
  }

  // ---- steps ----

  bool pushes() const { return load_.op != BenchOp::kPull; }
  bool pulls() const { return load_.op != BenchOp::kPush; }
  uint64_t clock(uint64_t step) const { return step / setting_.blocks; }
  uint32_t block(uint64_t step) const {
    const auto b = static_cast<uint32_t>(step % setting_.blocks);
    const bool backwards = load_.order == BenchLoad::Order::kBackwards && index_ % 2 == 1;
    return backwards ? setting_.blocks - 1 - b : b;
  }

  PushRequest PushOf(uint64_t step, uint32_t v) const {
    const uint32_t per_worker = setting_.virtual_workers_per_worker;
    const auto& buffer = gradients_[block(step) * per_worker + v];
    PushRequest push;
    push.block = block(step);
    push.virtual_worker = index_ * per_worker + v;
    push.clock = clock(step);
    push.token_count = 1;
    push.gradient = Lease(buffer, std::as_const(*buffer).floats());
    return push;
  }

  // Pulls alone request version 0 repeatedly.
  PullRequest PullOf(uint64_t step) {
    PullRequest pull;
    pull.block = block(step);
    pull.clock = pushes() ? clock(step) + 1 : 0;
    pull.destination = weights_[pull.block].floats();
    pull.allow_in_place = setting_.transport == "shm";
    return pull;
  }

  // Reads in-place weights once, like a forward pass: otherwise their bytes would count without
  // being moved.
  void Use(const InPlaceWeights& weights) {
    read_ = StreamRead(reinterpret_cast<const uint32_t*>(weights.elements.data()),
                       static_cast<int64_t>(weights.elements.size()));
  }

  // Delays a late worker's clock, as if its backward pass took longer.
  void MaybeWait(uint64_t step) const {
    if (step % setting_.blocks != 0) return;
    const bool late =
        (load_.order == BenchLoad::Order::kEvenFirst && index_ % 2 == 1) ||
        (load_.order == BenchLoad::Order::kStraggler && index_ + 1 == setting_.workers);
    if (late) absl::SleepFor(load_.late_by);
  }

  void CountStep() {
    const uint64_t virtual_workers = pushes() ? setting_.virtual_workers_per_worker : 0;
    tally_.Count(virtual_workers * setting_.payload_bytes(), pulls() ? setting_.payload_bytes() : 0,
                 std::max<uint64_t>(1, virtual_workers));
  }

  // ---- through ExchangeClient ----

  absl::Status RunClient(std::unique_ptr<Transport> transport) {
    ExchangeClient client(options_, job_.table, std::move(transport));
    std::vector<int64_t> begun(load_.outstanding);
    for (uint64_t step = 0;; ++step) {
      if (step >= load_.outstanding) {
        const uint64_t done = step - load_.outstanding;
        for (uint32_t v = 0; v < setting_.virtual_workers_per_worker; ++v) {
          RETURN_IF_ERROR(client.WaitCommitted(block(done), PushOf(done, v).virtual_worker));
        }
        tally_.AddLatency(1, MonotonicNs() - begun[done % load_.outstanding]);
        if (pulls()) {
          RETURN_IF_ERROR(client.WaitPulled(block(done), clock(done) + 1).status());
          Use(client.TakeInPlace(block(done)));
        }
        CountStep();
      }
      MaybeWait(step);
      begun[step % load_.outstanding] = MonotonicNs();
      for (uint32_t v = 0; v < setting_.virtual_workers_per_worker; ++v) {
        client.Push(PushOf(step, v));
      }
      if (pulls()) client.Pull(PullOf(step));
    }
  }

  // ---- with the Exchange machine ----

  struct OpenBlock {
    int64_t begun_ns = 0;
    bool answered = false;
    uint32_t uncommitted = 0;
    bool unpulled = false;
    bool open() const { return uncommitted > 0 || unpulled; }
  };

  void MaybeEnd(OpenBlock& open) {
    if (open.open()) return;
    --on_their_way_;
    CountStep();
  }

  absl::Status RunMachine(Transport& transport) {
    const RealTime time;
    std::vector<OpenBlock> blocks(setting_.blocks);
    Exchange exchange(options_, job_.table,
                      {.send = [&](Outgoing m) { transport.Send(std::move(m)).IgnoreError(); },
                       .pulled =
                           [&](BlockPulled event) {
                             OpenBlock& open = blocks[event.block];
                             open.unpulled = false;
                             Use(event.in_place);
                             if (!pushes()) tally_.AddLatency(0, MonotonicNs() - open.begun_ns);
                             MaybeEnd(open);
                           },
                       .committed =
                           [&](PushCommitted event) {
                             OpenBlock& open = blocks[event.block];
                             --open.uncommitted;
                             tally_.AddLatency(1, MonotonicNs() - open.begun_ns);
                             MaybeEnd(open);
                           }});
    absl::Time next_tick = time.Now() + kTick;
    for (uint64_t step = 0;;) {
      while (on_their_way_ < load_.outstanding && !blocks[block(step)].open()) {
        MaybeWait(step);
        Begin(exchange, blocks[block(step)], step, time.Now());
        ++step;
      }
      transport.Poll(kTick, [&](Message message) {
        NoteAnswer(message.header, blocks);
        exchange.OnMessage(message, time.Now());
      });
      if (const absl::Time now = time.Now(); now >= next_tick) {
        exchange.OnTick(now);
        next_tick = now + kTick;
      }
    }
  }

  // A push that closes a segment is answered with committed at once, without received.
  void NoteAnswer(const WireHeader& header, std::vector<OpenBlock>& blocks) {
    const bool taken =
        header.kind == MessageKind::kReceived || header.kind == MessageKind::kCommitted;
    if (!taken || header.block >= blocks.size() || blocks[header.block].answered) return;
    blocks[header.block].answered = true;
    tally_.AddLatency(0, MonotonicNs() - blocks[header.block].begun_ns);
  }

  void Begin(Exchange& exchange, OpenBlock& open, uint64_t step, absl::Time now) {
    ++on_their_way_;
    open.begun_ns = MonotonicNs();
    open.answered = false;
    open.uncommitted = pushes() ? setting_.virtual_workers_per_worker : 0;
    open.unpulled = pulls();
    for (uint32_t v = 0; pushes() && v < setting_.virtual_workers_per_worker; ++v) {
      exchange.Push(PushOf(step, v), now);
    }
    if (pulls()) exchange.Pull(PullOf(step), now);
  }

  const BenchSetting& setting_;
  const BenchLoad& load_;
  const uint32_t index_;
  const LaneJob& job_;
  const ExchangeOptions options_;
  BenchTally& tally_;
  uint32_t on_their_way_ = 0;                              // in blocks; for the machine only
  volatile uint32_t read_ = 0;                             // result of Use, so that it is computed
  std::vector<std::shared_ptr<AlignedBuffer>> gradients_;  // by block, then virtual worker
  std::vector<AlignedBuffer> weights_;                     // by block
};

}  // namespace

absl::Status StartBenchWorkers(const BenchSetting& setting, const BenchLoad& load,
                               const std::vector<std::string>& endpoints,
                               BenchProcesses& processes) {
  for (uint32_t w = 0; w < setting.workers; ++w) {
    RETURN_IF_ERROR(
        processes.Start(ProcessName(kWorkerRole, w), setting.worker_host, [=](BenchChild& child) {
          return BenchWorker::Run(setting, load, w, endpoints, child.tally());
        }));
  }
  return absl::OkStatus();
}

}  // namespace tug
