// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/drawn_faults.h"

#include <algorithm>

#include "config/placement_mode.h"
#include "config/sync_mode.h"

namespace tug {
namespace {

// Time within which faults begin; a job without them takes about as long.
constexpr absl::Duration kFaultsWithin = absl::Milliseconds(2000);
// By then every job runs, with its replicas in sync.
constexpr absl::Duration kRunsBy = absl::Milliseconds(800);
// Longest time of a job, and repeats per step that message loss adds to it.
constexpr absl::Duration kLongestJob = absl::Seconds(120);
constexpr int kMaxRepeatsPerStep = 50;

bool OfCoordinator(FaultKind kind) {
  return kind == FaultKind::kKillCoordinator || kind == FaultKind::kFreezeCoordinator;
}
bool LosesServer(FaultKind kind) {
  return kind == FaultKind::kKillServer || kind == FaultKind::kFreezeServer ||
         kind == FaultKind::kCutServer;
}
bool LosesWorker(FaultKind kind) {
  return kind == FaultKind::kKillWorker || kind == FaultKind::kFreezeWorker ||
         kind == FaultKind::kCutWorker;
}

bool LosesNobody(FaultKind kind) {
  return OfCoordinator(kind) || kind == FaultKind::kLoseKind || kind == FaultKind::kKillJob;
}
// Whether the fault is drawn for jobs that fail, with a proper message, when a node is lost
// (ContinuesWithoutNode).
bool IsForFragile(const FaultEvent& fault, const JobConfig& job) {
  const bool freezes =
      fault.kind == FaultKind::kFreezeWorker || fault.kind == FaultKind::kFreezeServer;
  return LosesNobody(fault.kind) || fault.kind == FaultKind::kKillWorker ||
         fault.kind == FaultKind::kKillServer || (freezes && AllReduces(job));
}

}  // namespace

FaultEvent DrawFault(Draw& draw) {
  constexpr FaultKind kKinds[] = {
      FaultKind::kKillWorker,      FaultKind::kKillWorker,        FaultKind::kKillServer,
      FaultKind::kKillServer,      FaultKind::kFreezeWorker,      FaultKind::kFreezeServer,
      FaultKind::kCutWorker,       FaultKind::kCutServer,         FaultKind::kJoinWorker,
      FaultKind::kJoinServer,      FaultKind::kDrainWorker,       FaultKind::kDrainServer,
      FaultKind::kKillCoordinator, FaultKind::kFreezeCoordinator, FaultKind::kLoseKind,
      FaultKind::kLoseKind,        FaultKind::kLeaveWorker,       FaultKind::kLeaveServer};
  // Kinds that a link may lose: all that a job has.
  constexpr MessageKind kLosable[] = {
      MessageKind::kPush,     MessageKind::kReceived,    MessageKind::kCommitted,
      MessageKind::kDropped,  MessageKind::kPull,        MessageKind::kWeights,
      MessageKind::kNorms,    MessageKind::kNormsWanted, MessageKind::kRefused,
      MessageKind::kDeferred, MessageKind::kPushWanted,  MessageKind::kWeightsReceived,
      MessageKind::kUpdate,   MessageKind::kCopied,      MessageKind::kCopyWanted,
      MessageKind::kCopy};
  FaultEvent fault;
  fault.kind = kKinds[draw.Below(std::size(kKinds))];
  fault.at = draw.Between(absl::ZeroDuration(), kFaultsWithin);
  fault.pick = draw.Below(1000);
  // Shorter than the timeout, or longer.
  fault.lasts = draw.OneIn(3) ? draw.Between(absl::Milliseconds(400), absl::Milliseconds(1000))
                              : draw.Between(absl::Milliseconds(10), absl::Milliseconds(400));
  fault.seen_at_once = draw.OneIn(2);
  const uint32_t direction = draw.Below(4);
  fault.cuts_out = direction != 1;
  fault.cuts_in = direction != 2;
  fault.cut_from = static_cast<FaultEvent::From>(draw.Below(3));
  fault.loses = kLosable[draw.Below(std::size(kLosable))];
  return fault;
}

bool MovesWorker(FaultKind kind) {
  return LosesWorker(kind) || kind == FaultKind::kJoinWorker || kind == FaultKind::kDrainWorker ||
         kind == FaultKind::kLeaveWorker;
}

void DrawFaults(Draw& draw, Scenario& scenario) {
  SimulationOptions& options = scenario.options;
  const JobConfig& job = options.config;
  const bool fragile = !ContinuesWithoutNode(job);
  const uint32_t count = draw.OneIn(10) ? 0 : draw.From(1, 4);
  for (uint32_t i = 0; i < count; ++i) {
    FaultEvent fault = DrawFault(draw);
    if (fragile && (!IsForFragile(fault, job) || draw.OneIn(2))) continue;
    scenario.may_fail |= fragile && !LosesNobody(fault.kind);
    // If others take over, a worker of a running job need not be replaced, unless it is the last
    // one.
    const bool last = job.cluster().workers() <= count;
    if (fault.kind == FaultKind::kKillWorker && !last && draw.OneIn(3) && fault.at > kRunsBy &&
        job.fault().on_worker_loss() != FaultConfig::WAIT) {
      fault.lasts = absl::InfiniteDuration();
    }
    options.faults.push_back(fault);
  }
  if (draw.OneIn(8)) {
    options.faults.push_back({.kind = FaultKind::kStop, .at = draw.Between({}, kFaultsWithin)});
  } else if (!scenario.resumed && draw.OneIn(8)) {
    options.faults.push_back({.kind = FaultKind::kKillJob, .at = draw.Between({}, kFaultsWithin)});
  }
}

void DescribeFaults(Scenario& scenario) {
  SimulationOptions& options = scenario.options;
  const auto repeats = static_cast<int64_t>(options.config.train().steps() * kMaxRepeatsPerStep);
  options.longest = kLongestJob + repeats * absl::Milliseconds(options.config.comm().resend_ms());
  std::stable_sort(options.faults.begin(), options.faults.end(),
                   [](const FaultEvent& a, const FaultEvent& b) { return a.at < b.at; });
  scenario.stops = std::ranges::count(options.faults, FaultKind::kStop, &FaultEvent::kind) > 0;
  // One server at a time, while both replicas of every segment exist.
  int servers = 0;
  bool early = false;
  for (const FaultEvent& fault : options.faults) {
    servers += LosesServer(fault.kind) ? 1 + static_cast<int>(fault.times_more) : 0;
    early |= (LosesServer(fault.kind) || LosesWorker(fault.kind)) && fault.at < kRunsBy;
    // A frozen coordinator starts the job later.
    early |= fault.kind == FaultKind::kFreezeCoordinator && fault.at < kRunsBy;
    early |= fault.kind == FaultKind::kJoinServer || fault.kind == FaultKind::kDrainServer ||
             fault.kind == FaultKind::kLeaveServer || fault.kind == FaultKind::kKillCoordinator ||
             fault.kind == FaultKind::kLoseKind;
  }
  scenario.loses_nobody = std::ranges::none_of(options.faults, [](const FaultEvent& fault) {
    return LosesServer(fault.kind) || LosesWorker(fault.kind);
  });
  const bool copied = options.config.sync().replicas() > 1;
  scenario.one_timeline = (servers == 0 || copied) && servers <= 1 && !early;
}

}  // namespace tug
