// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_arithmetic.h"

#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "blocks/view_lanes.h"
#include "lab/bench/bench_job.h"
#include "limits/bench_processes.h"
#include "limits/huge_array.h"
#include "limits/stream_loops.h"
#include "server/shard/shard.h"

namespace tug {
namespace {

constexpr uint64_t kPartitionBytes = uint64_t{4} << 20;
constexpr uint64_t kPartitionElements = kPartitionBytes / sizeof(float);

// Counts this thread only: other users of the core do not matter.
int64_t CpuNs() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

BenchSetting JobOf(const ArithmeticSetting& setting, bool update) {
  BenchSetting job;
  job.bytes = kPartitionBytes;
  job.blocks =
      static_cast<uint32_t>((setting.parameters + kPartitionElements - 1) / kPartitionElements);
  job.workers = setting.virtual_workers;
  job.bf16 = setting.bf16_copy;
  job.optimizer = update;
  return job;
}

// A lane that receives its messages from the caller.
class Arithmetic {
 public:
  Arithmetic(const LaneJob& job, const BenchSetting& setting, Home home)
      : setting_(setting),
        home_(home),
        job_(job),
        shard_(OptionsOf(job, setting), job.table,
               {.send = [](Outgoing) {},
                .snapshot = [](const SegmentSnapshot&) {},
                .notice = [this](ShardNotice notice) { trouble_ = std::move(notice.text); }}) {
    // A sender's bytes stay unchanged, so one gradient serves all; our own are written into.
    const uint32_t gradients = home == Home::kSender ? 1 : setting.virtual_workers();
    for (uint32_t i = 0; i < gradients; ++i) {
      gradients_.push_back(std::make_shared<AlignedBuffer>(setting.blocks * setting.bytes));
      std::ranges::fill(gradients_.back()->floats(), 1e-3f);
    }
  }

  // Runs the next clock; returns its nanoseconds.
  absl::StatusOr<int64_t> RunClock() {
    const int64_t begin = CpuNs();
    for (uint32_t v = 0; v < setting_.virtual_workers(); ++v) {
      for (uint32_t b = 0; b < setting_.blocks; ++b) {
        shard_.OnMessage(PushOf(b, v), absl::UnixEpoch());
      }
    }
    const int64_t taken = CpuNs() - begin;
    ++clock_;
    if (!trouble_.empty()) return absl::InternalError(trouble_);
    if (shard_.version(0) != clock_) return absl::InternalError("a clock did not complete");
    return taken;
  }

 private:
  static ShardOptions OptionsOf(const LaneJob& job, const BenchSetting& setting) {
    const View view = MakeBenchView(setting, {"memory"});
    ShardOptions options = ShardOptionsOf(job.job, job.config, view, LaneNumber(view.lanes(0)));
    options.leave_out_update = job.leave_out_update;
    return options;
  }

  Message PushOf(uint32_t block, uint32_t virtual_worker) const {
    const auto& gradient = gradients_[virtual_worker % gradients_.size()];
    Message message;
    message.header.kind = MessageKind::kPush;
    message.header.job = job_.job;
    message.header.timeline = 1;
    message.header.view = 1;
    message.header.sender = WorkerPeer(1000 + virtual_worker);
    message.header.block = block;
    message.header.segment_count = job_.table.segments_in_block(block);
    message.header.virtual_worker = virtual_worker;
    message.header.virtual_worker_count = 1;
    message.header.clock = clock_;
    message.header.token_count = 1;
    message.header.payload_bytes = setting_.bytes;
    message.payload = Lease(gradient, std::as_const(*gradient).floats())
                          .Slice(block * setting_.bytes, setting_.bytes);
    message.home = home_;
    return message;
  }

  const BenchSetting setting_;
  const Home home_;
  const LaneJob& job_;
  std::string trouble_;
  std::vector<std::shared_ptr<AlignedBuffer>> gradients_;
  uint64_t clock_ = 0;
  Shard shard_;
};

// Runs one round per received line and replies with its nanoseconds, forever.
template <typename Round>
absl::Status AnswerRounds(BenchChild& child, Round round) {
  while (true) {
    RETURN_IF_ERROR(child.Listen().status());
    ASSIGN_OR_RETURN(const int64_t ns, round());
    child.Say(absl::StrCat(ns));
  }
}

absl::Status RunLane(const ArithmeticSetting& setting, bool update, BenchChild& child) {
  const BenchSetting job_setting = JobOf(setting, update);
  ASSIGN_OR_RETURN(const std::unique_ptr<LaneJob> job, MakeBenchJob(job_setting, 1));
  Arithmetic lane(*job, job_setting, setting.home);
  return AnswerRounds(child, [&] { return lane.RunClock(); });
}

absl::Status RunStream(uint64_t elements, BenchChild& child) {
  const HugeArray<float> a(elements);
  const HugeArray<float> b(elements);
  return AnswerRounds(child, [&]() -> absl::StatusOr<int64_t> {
    const int64_t begin = CpuNs();
    StreamAdd(a.data(), b.data(), static_cast<int64_t>(elements));
    return CpuNs() - begin;
  });
}

absl::StatusOr<double> Round(BenchProcesses& processes, size_t child) {
  processes.Tell(child, "go");
  ASSIGN_OR_RETURN(const std::string line, processes.Hear(child));
  double ns = 0;
  if (!absl::SimpleAtod(line, &ns))
    return absl::InternalError(absl::StrCat("unexpected reply: ", line));
  return ns;
}

}  // namespace

absl::StatusOr<ArithmeticFigures> MeasureArithmetic(const ArithmeticSetting& setting) {
  const uint64_t parameters = JobOf(setting, true).parameters();
  BenchProcesses processes;
  for (const bool update : {false, true}) {
    RETURN_IF_ERROR(processes.Start(update ? "lane" : "lane without update", "",
                                    [=](BenchChild& c) { return RunLane(setting, update, c); }));
  }
  RETURN_IF_ERROR(
      processes.Start("STREAM", "", [=](BenchChild& c) { return RunStream(parameters, c); }));
  ArithmeticFigures figures;
  // Warm-up rounds: touch both copies of the weights, and allocate all spare buffers.
  constexpr int kWarmUp = 3;
  for (int run = -kWarmUp; run < setting.runs; ++run) {
    double ns[3];
    for (size_t child = 0; child < 3; ++child) {
      ASSIGN_OR_RETURN(ns[child], Round(processes, child));
      ns[child] /= static_cast<double>(parameters);
    }
    if (run < 0) continue;
    figures.sum_ns.push_back(ns[0]);
    figures.update_ns.push_back(ns[1] - ns[0]);
    figures.stream_ns.push_back(ns[2]);
  }
  return figures;
}

std::vector<double> SumOfStream(const ArithmeticFigures& figures, uint32_t virtual_workers) {
  std::vector<double> ratios;
  for (size_t i = 0; virtual_workers > 1 && i < figures.sum_ns.size(); ++i) {
    ratios.push_back(figures.stream_ns[i] * (virtual_workers - 1) / figures.sum_ns[i]);
  }
  return ratios;
}

}  // namespace tug
