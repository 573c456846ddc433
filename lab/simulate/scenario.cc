// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/scenario.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/codecs/codecs.h"
#include "config/placement_mode.h"
#include "config/push_plan.h"
#include "config/sync_mode.h"
#include "lab/simulate/draw.h"
#include "lab/simulate/drawn_faults.h"

namespace tug {
namespace {

constexpr uint64_t kSteps = 24;
BlockTable Blocks(bool exact) {
  BlockTable blocks;
  for (const uint64_t elements : {300, 150}) {
    BlockSpec* block = blocks.add_blocks();
    block->set_name(absl::StrCat("block.", blocks.blocks_size() - 1));
    TensorSpec* matrix = block->add_tensors();
    matrix->add_shape(elements);
    matrix->set_weight_decay(true);
    matrix->set_init_mean(exact ? 1.0f : 0.0f);
    matrix->set_init_std(exact ? 0.0f : 0.5f);
    TensorSpec* bias = block->add_tensors();
    bias->add_shape(20);
    bias->set_init_mean(1.0f);
  }
  return blocks;
}

void SetComm(CommConfig& comm) {
  comm.set_segment_elements(128);
  comm.set_partition_bytes(1024);
  comm.set_credit_bytes(2048);
  comm.set_pull_credit_bytes(4096);
  comm.set_scheduler(CommConfig::BYTESCHEDULER);
  comm.set_pull_density(0.1);
  PushCodecConfig& codec = *comm.mutable_push_codec();
  codec.set_blocks("*");
  codec.set_vectors(true);
  codec.set_min_elements(0);
}

void SetAdam(OptimizerConfig& optimizer) {
  optimizer.set_algorithm(OptimizerConfig::ADAMW);
  optimizer.set_learning_rate(0.01);
  optimizer.set_min_learning_rate(0.001);
  optimizer.set_warmup_steps(2);
  optimizer.set_decay_steps(kSteps);
  optimizer.set_clip_norm(1.0);
  optimizer.mutable_adamw()->set_beta1(0.9);
  optimizer.mutable_adamw()->set_beta2(0.99);
  optimizer.mutable_adamw()->set_epsilon(1e-8);
  optimizer.mutable_adamw()->set_weight_decay(0.1);
}

// Powers of two throughout: sums of pushes are exact, in any order.
void SetExactSgd(OptimizerConfig& optimizer) {
  optimizer.set_algorithm(OptimizerConfig::SGD);
  optimizer.set_schedule(OptimizerConfig::CONSTANT);
  optimizer.set_warmup_steps(0);
  optimizer.set_learning_rate(1.0 / 64);
  optimizer.set_clip(OptimizerConfig::OFF);
}

void DrawCodec(Draw& draw, PushCodecConfig& codec) {
  codec.set_warmup_steps(1);
  switch (draw.Below(8)) {
    case 0:
      codec.mutable_bf16();
      break;
    case 1:
      codec.mutable_int8();
      break;
    case 2:
      codec.mutable_one_bit();
      break;
    case 3:
      codec.mutable_top_k()->set_density(0.1);
      break;
    case 4:
      codec.mutable_random_k()->set_density(0.1);
      break;
    case 5:
      codec.mutable_top_k_int8()->set_density(0.1);
      break;
    case 6:
      codec.mutable_qsgd()->set_levels(7);
      break;
    case 7:
      codec.mutable_power_sgd()->set_rank(2);
      codec.mutable_power_sgd()->set_columns(16);
      break;
  }
}

// Checkpoints contain whole weights: with CHANGES pulls, the undisturbed job writes its own at the
// same steps as this one.
void DrawFormats(Draw& draw, const SyncConfig& sync, bool external, CommConfig& comm) {
  if (draw.OneIn(4)) comm.set_pull_format(draw.OneIn(2) ? CommConfig::BF16 : CommConfig::INT8);
  if (sync.policy() == SyncConfig::BSP && draw.OneIn(7)) comm.set_pull_format(CommConfig::CHANGES);
  if (external && comm.pull_format() == CommConfig::CHANGES) comm.set_pull_format(CommConfig::BF16);
  if (draw.OneIn(2)) DrawCodec(draw, *comm.mutable_push_codec());
}

// Draws the job. The seeds of one policy cover all other settings. `sums`: pushes are summed, and
// bits compared.
void DrawJob(Draw& draw, bool sums, Scenario& scenario) {
  SimulationOptions& options = scenario.options;
  JobConfig& job = options.config;
  job.set_seed(42);
  job.mutable_train()->set_steps(kSteps);
  job.mutable_checkpoint()->set_interval(draw.OneIn(2) ? 5 : draw.From(1, 4));
  job.mutable_checkpoint()->set_keep(2);
  SetComm(*job.mutable_comm());
  constexpr SyncConfig::Policy kPolicies[] = {SyncConfig::BSP,   SyncConfig::BSP, SyncConfig::BSP,
                                              SyncConfig::SSP,   SyncConfig::SSP, SyncConfig::ASP,
                                              SyncConfig::BACKUP};
  SyncConfig& sync = *job.mutable_sync();
  const SyncConfig::Policy drawn = kPolicies[draw.Below(std::size(kPolicies))];
  sync.set_policy(sums ? SyncConfig::BSP : drawn);
  const SyncMode& mode = SyncModeOf(sync.policy());
  const bool external = !sums && !mode.skips_steps && draw.OneIn(8);
  job.mutable_model()->set_external(external);
  sync.set_staleness(draw.Below(3));
  sync.set_backups(1);
  sync.set_replicas(1);
  sync.set_staleness_scaling(SyncConfig::NONE);
  scenario.counts_pushes = mode.update_per_push;
  sync.set_local_steps(scenario.counts_pushes || external || !draw.OneIn(8) ? 1 : 2);
  if (sync.local_steps() > 1) {
    sync.mutable_outer()->set_learning_rate(0.01);
    sync.mutable_outer()->set_momentum(0.9);
    sync.mutable_outer()->set_nesterov(true);
  }
  constexpr FaultConfig::WorkerLoss kLosses[] = {FaultConfig::REASSIGN, FaultConfig::REASSIGN,
                                                 FaultConfig::WAIT, FaultConfig::SHRINK};
  FaultConfig& fault = *job.mutable_fault();
  fault.set_on_worker_loss(kLosses[draw.Below(std::size(kLosses))]);
  fault.set_failure_timeout_ms(300);
  fault.set_heartbeat_ms(40);
  fault.set_max_rollbacks(1000);
  fault.set_coordinator_timeout_ms(60000);
  OptimizerConfig& optimizer = *job.mutable_optimizer();
  if (scenario.counts_pushes) {
    SetExactSgd(optimizer);
    options.gradient_of_weights = false;
  } else {
    SetAdam(optimizer);
    constexpr OptimizerConfig::Clip kClips[] = {OptimizerConfig::OFF, OptimizerConfig::GLOBAL,
                                                OptimizerConfig::PER_BLOCK};
    optimizer.set_clip(kClips[draw.Below(3)]);
    DrawFormats(draw, sync, external, *job.mutable_comm());
  }
  // Where every push is an update, the sum of the weights is known except for residuals.
  if (scenario.counts_pushes && draw.OneIn(3)) {
    DrawFormats(draw, sync, external, *job.mutable_comm());
  } else if (draw.OneIn(8)) {
    options.poisoned_virtual_worker = draw.Below(3);
    options.poisoned_clock = 7;
  }
  options.blocks = Blocks(scenario.counts_pushes);
  job.mutable_cluster()->set_virtual_workers(draw.From(3, 5));
}

void DrawCluster(Draw& draw, Scenario& scenario) {
  SimulationOptions& options = scenario.options;
  ClusterConfig& cluster = *options.config.mutable_cluster();
  cluster.set_servers(draw.From(1, 3));
  cluster.set_workers(draw.From(1, std::min(4u, cluster.virtual_workers())));
  cluster.set_lanes_per_server(draw.OneIn(3) ? 2 : 1);
  cluster.set_spare_servers(draw.OneIn(4) ? 1 : 0);
  SyncConfig& sync = *options.config.mutable_sync();
  if (!SyncModeOf(sync.policy()).skips_steps && cluster.servers() > 1 && !draw.OneIn(3)) {
    sync.set_replicas(2);
  }
  CommConfig& comm = *options.config.mutable_comm();
  // SSP's bound is checked with commits by segment (checks/run_watch.h).
  const bool alone = sync.policy() == SyncConfig::SSP;
  comm.set_partition_bytes(alone ? 64 : draw.OneIn(2) ? 512 : 1024);
  options.shared_memory = draw.OneIn(3);
  constexpr uint64_t kParking[] = {0, 1024, 2048, kServerParkingBytes};
  options.parking_bytes = kParking[draw.Below(std::size(kParking))];
  constexpr uint32_t kResends[] = {20, 50, 200};
  comm.set_resend_ms(kResends[draw.Below(std::size(kResends))]);
  if (draw.OneIn(5)) options.config.mutable_straggler()->set_slowdown(4);
  options.max_control_delay = draw.Between(absl::Milliseconds(1), absl::Milliseconds(20));
  options.network = {absl::Microseconds(50), absl::Microseconds(100), 0, 0};
  if (!draw.OneIn(4)) options.network.max_delay = absl::Milliseconds(draw.From(1, 20));
  if (draw.OneIn(2)) options.network.repeat_probability = 0.05;
  if (draw.OneIn(2)) options.network.drop_probability = draw.From(1, 10) * 0.01;
  options.beat_interval = absl::Milliseconds(40);
  options.max_compute = absl::Milliseconds(4);
  if (options.config.model().external()) {
    cluster.set_workers(cluster.virtual_workers());
    cluster.set_spare_servers(0);
    sync.set_replicas(1);
    options.config.clear_straggler();
  }
  if (!draw.OneIn(16)) return;
  // A hundred steps between two heartbeats.
  options.max_compute = absl::Microseconds(100);
  options.config.mutable_train()->set_steps(5 * kSteps);
}

// Whether the job determines the number of workers, not the cluster that runs it.
bool HasFixedWorkers(const JobConfig& job) { return AllReduces(job) || job.model().external(); }

// One BSP job in six reduces the sums among its servers. Drawn separately, so that other seeds keep
// their scenarios. An all-reduce resends nothing, so the network loses nothing.
void MaybeAllReduce(Scenario& scenario) {
  Draw draw(scenario.seed * 0xBF58476D1CE4E5B9u + 1);
  JobConfig& job = scenario.options.config;
  if (job.sync().policy() != SyncConfig::BSP || HasFixedWorkers(job) || !draw.OneIn(6)) return;
  job.set_exchange(JobConfig::ALL_REDUCE);
  job.mutable_collective()->set_algorithm(static_cast<CollectiveConfig::Algorithm>(
      draw.From(CollectiveConfig::AUTO, CollectiveConfig::BINARY_TREE)));
  job.mutable_collective()->set_format(static_cast<CollectiveConfig::Format>(
      draw.From(CollectiveConfig::FP32, CollectiveConfig::FP16)));
  ClusterConfig& cluster = *job.mutable_cluster();
  cluster.set_workers(draw.OneIn(8) ? 1 : draw.From(2, std::min(4u, cluster.virtual_workers())));
  cluster.set_servers(cluster.workers());
  cluster.set_lanes_per_server(1);
  cluster.set_spare_servers(0);
  job.mutable_sync()->set_replicas(1);
  job.mutable_fault()->set_on_worker_loss(FaultConfig::REASSIGN);
  job.mutable_comm()->mutable_push_codec()->clear_codec();
  if (job.comm().pull_format() != CommConfig::BF16) {
    job.mutable_comm()->set_pull_format(CommConfig::FP32);
  }
  scenario.options.network.drop_probability = 0;
}

// Error feedback, if no bits are compared, or no virtual worker ever moves to another worker: its
// residuals are lost by that, and the bits change.
void ChooseErrorFeedback(Scenario& scenario) {
  PushCodecConfig& codec = *scenario.options.config.mutable_comm()->mutable_push_codec();
  const CodecRow* const row = FindCodec(codec.codec_case());
  const bool moves = std::ranges::any_of(scenario.options.faults, MovesWorker, &FaultEvent::kind);
  codec.set_error_feedback(row != nullptr && !IsUnbiased(row->id) &&
                           !(moves && scenario.same_bits));
  scenario.conserves = scenario.counts_pushes && KeepsResiduals(scenario.options.config) && !moves;
}

// Depends on the job alone, not on the cluster that computes it.
void DescribeUndisturbed(Scenario& scenario) {
  SimulationOptions& undisturbed = scenario.undisturbed;
  undisturbed = scenario.options;
  undisturbed.seed = 1;
  undisturbed.faults.clear();
  undisturbed.network = {absl::Microseconds(50), absl::Microseconds(50), 0, 0};
  undisturbed.shared_memory = false;
  undisturbed.parking_bytes = kServerParkingBytes;
  undisturbed.max_control_delay = absl::Milliseconds(5);
  undisturbed.config.clear_straggler();
  undisturbed.config.mutable_checkpoint()->set_keep(undisturbed.config.train().steps());
  if (undisturbed.config.comm().pull_format() != CommConfig::CHANGES) {
    undisturbed.config.mutable_checkpoint()->set_interval(1);
  }
  ClusterConfig& cluster = *undisturbed.config.mutable_cluster();
  // An all-reduce's bits depend on the number of workers, and every program is a virtual worker.
  if (!AllReduces(undisturbed.config)) cluster.set_servers(1);
  if (!HasFixedWorkers(undisturbed.config)) cluster.set_workers(1);
  cluster.set_lanes_per_server(1);
  cluster.set_spare_servers(0);
  undisturbed.config.mutable_sync()->set_replicas(1);
  undisturbed.config.mutable_fault()->set_on_worker_loss(FaultConfig::REASSIGN);
  scenario.kind =
      absl::StrCat(undisturbed.config.SerializeAsString(), "/", undisturbed.poisoned_clock, "/",
                   undisturbed.poisoned_virtual_worker);
}

FaultEvent At(FaultKind kind, absl::Duration at, absl::Duration lasts) {
  return {.kind = kind, .at = at, .lasts = lasts};
}

// A server is lost for a second, and there are no replicas.
void LoseServer(absl::Duration at, Scenario& scenario) {
  SimulationOptions& options = scenario.options;
  options.config.mutable_sync()->set_replicas(1);
  options.config.mutable_cluster()->set_spare_servers(0);
  options.faults = {At(FaultKind::kKillServer, at, absl::Seconds(1))};
}

// The pauses follow so closely that all of a node's heartbeats may fall into them.
void PauseCoordinator(absl::Duration at, Draw& draw, std::vector<FaultEvent>& faults) {
  faults.clear();
  for (int pause = 0; pause < 4; ++pause) {
    const absl::Duration lasts = draw.Between(absl::Milliseconds(50), absl::Milliseconds(200));
    faults.push_back(At(FaultKind::kFreezeCoordinator, at, lasts));
    at += lasts + draw.Between(absl::Milliseconds(1), absl::Milliseconds(100));
  }
}

// Process exits that the supervisor must tell apart: a crash loop, the loss of a node and the
// coordinator at once, interrupts during recovery, a failure while the job is being stopped.
void DrawCrashes(absl::Duration at, Draw& draw, SimulationOptions& options) {
  options.supervision.quick_death = absl::Milliseconds(400);
  constexpr FaultKind kKills[] = {FaultKind::kKillWorker, FaultKind::kKillServer,
                                  FaultKind::kKillCoordinator};
  FaultEvent kill = DrawFault(draw);
  kill.kind = kKills[draw.Below(3)];
  kill.at = at;
  const absl::Duration later = draw.Between(absl::ZeroDuration(), kill.lasts);
  FaultEvent stop = At(FaultKind::kStop, at + later, {});
  options.faults.clear();
  switch (draw.Below(4)) {
    case 0:
      kill.times_more = draw.From(1, 3);
      kill.up = draw.Between(absl::ZeroDuration(), absl::Milliseconds(200));
      break;
    case 1:
      kill.kind = kKills[draw.Below(2)];
      options.faults.push_back(At(FaultKind::kKillCoordinator, at + later / 50, kill.lasts));
      break;
    case 2:
      kill.kind = FaultKind::kKillCoordinator;
      options.faults.push_back(stop);
      if (draw.OneIn(2))
        options.faults.push_back(At(FaultKind::kStop, stop.at + absl::Seconds(1), {}));
      break;
    case 3:
      kill.kind = draw.OneIn(2) ? FaultKind::kFreezeWorker : FaultKind::kFreezeServer;
      stop.at += kill.lasts;
      options.faults.push_back(stop);
      break;
  }
  options.faults.push_back(kill);
}

// Three seeds in twenty have one.
Conjunction DrawConjunction(Draw& draw) {
  const uint32_t drawn = draw.Below(40);
  return drawn < kConjunctions.size() ? kConjunctions[drawn].conjunction : Conjunction::kDrawn;
}

void Add(Conjunction conjunction, Draw& draw, Scenario& scenario) {
  SimulationOptions& options = scenario.options;
  JobConfig& job = options.config;
  const absl::Duration at = draw.Between(absl::Milliseconds(200), absl::Milliseconds(800));
  if (conjunction != Conjunction::kDrawn) scenario.may_fail = false;
  switch (conjunction) {
    case Conjunction::kDrawn:
      return;
    case Conjunction::kFramesWithoutMemory:
      job.mutable_cluster()->set_workers(3);
      job.mutable_fault()->set_on_worker_loss(FaultConfig::REASSIGN);
      DrawCodec(draw, *job.mutable_comm()->mutable_push_codec());
      options.parking_bytes = draw.OneIn(2) ? 0 : 1024;
      options.faults = {At(FaultKind::kKillWorker, at, absl::InfiniteDuration()),
                        At(FaultKind::kLoseKind, at, absl::Milliseconds(500))};
      return;
    case Conjunction::kStopWhileGoingBack:
      LoseServer(at, scenario);
      options.faults.push_back(
          {.kind = FaultKind::kStop,
           .at = at + draw.Between(absl::Milliseconds(50), absl::Milliseconds(900))});
      return;
    case Conjunction::kLossy:
      options.network.drop_probability = 0.1;
      job.mutable_comm()->set_resend_ms(200);
      options.faults.clear();
      return;
    case Conjunction::kLeavesWhileWaiting:
      LoseServer(at, scenario);
      for (const FaultKind kind : {FaultKind::kLeaveWorker, FaultKind::kLeaveServer}) {
        const absl::Duration later = draw.Between(absl::Milliseconds(50), absl::Milliseconds(900));
        options.faults.push_back({.kind = kind, .at = at + later, .pick = draw.Below(1000)});
      }
      return;
    case Conjunction::kShortPauses:
      job.mutable_fault()->set_on_worker_loss(FaultConfig::WAIT);
      DrawCodec(draw, *job.mutable_comm()->mutable_push_codec());
      PauseCoordinator(at, draw, options.faults);
      return;
    case Conjunction::kCrashes:
      DrawCrashes(at, draw, options);
      return;
  }
}

}  // namespace

Scenario MakeScenario(uint64_t seed, Conjunction conjunction) {
  Draw draw(seed * 0x9E3779B97F4A7C15u + 1);
  Scenario scenario;
  scenario.seed = seed;
  scenario.options.seed = seed;
  if (conjunction == Conjunction::kDrawn) conjunction = DrawConjunction(draw);
  const bool sums = conjunction != Conjunction::kDrawn && conjunction != Conjunction::kLossy;
  DrawJob(draw, sums, scenario);
  DrawCluster(draw, scenario);
  if (conjunction == Conjunction::kDrawn) MaybeAllReduce(scenario);
  DrawFaults(draw, scenario);
  Add(conjunction, draw, scenario);
  DescribeFaults(scenario);
  const JobConfig& job = scenario.options.config;
  // With SHRINK a lane does not know at first that a share is not computed: its sums differ.
  scenario.same_bits =
      job.sync().policy() == SyncConfig::BSP && job.fault().on_worker_loss() != FaultConfig::SHRINK;
  ChooseErrorFeedback(scenario);
  DescribeUndisturbed(scenario);
  return scenario;
}

Scenario MakeResumed(const Scenario& before, const Manifest& newest) {
  Draw draw(before.seed * 0xD1B54A32D192ED03u + 1);
  Scenario scenario = before;
  scenario.resumed = true;
  scenario.conserves = false;
  scenario.may_fail = false;
  SimulationOptions& options = scenario.options;
  options.seed = before.seed + 1;  // identifies the job
  options.faults.clear();
  ClusterConfig& cluster = *options.config.mutable_cluster();
  const bool copies = options.config.sync().replicas() > 1;
  if (!AllReduces(options.config)) cluster.set_servers(draw.From(copies ? 2 : 1, 3));
  if (!HasFixedWorkers(options.config)) {
    cluster.set_workers(draw.From(1, std::min(4u, cluster.virtual_workers())));
  }
  DrawFaults(draw, scenario);
  if (options.config.comm().push_codec().error_feedback() && before.same_bits) {
    std::erase_if(options.faults, [](const FaultEvent& f) { return MovesWorker(f.kind); });
    // Residuals that are not in the checkpoint are lost.
    scenario.same_bits = ResidualsIn(newest).size() == cluster.virtual_workers();
  }
  // Changes are relative to the weights that a run begins with, which the undisturbed job pulls as
  // a whole only where its checkpoints are.
  const bool apart = newest.version() % options.config.checkpoint().interval() != 0;
  if (apart && options.config.comm().pull_format() == CommConfig::CHANGES) {
    scenario.same_bits = false;
  }
  DescribeFaults(scenario);
  return scenario;
}

}  // namespace tug
