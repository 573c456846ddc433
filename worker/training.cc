// SPDX-License-Identifier: Apache-2.0
#include "worker/training.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpu/cpu_affinity.h"
#include "base/status_macros.h"
#include "blocks/codec_choice.h"
#include "blocks/view_lanes.h"
#include "blocks/worker_place.h"
#include "config/placement_mode.h"
#include "config/push_plan.h"
#include "config/sync_mode.h"
#include "control/trace_messages.h"
#include "exchange/encode/push_encoder.h"
#include "model/job_model.h"
#include "model/replay/replay_model.h"
#include "model/transformer/create_model.h"
#include "model/transformer/memory.h"
#include "transport/open_transport.h"
#include "worker/gradients/restore_residuals.h"

namespace tug {
namespace {

// Number of compute threads, and the cores of the worker's threads.
WorkerCores PlanThreads(const ClusterConfig& cluster, const CoreShare& share) {
  const CpuBudget own = ShareOf(ReadCpuBudget(), share);
  const int threads = cluster.compute_threads() > 0
                          ? static_cast<int>(cluster.compute_threads())
                          : DefaultComputeThreads(own.usable, {.workers = 1});
  if (cluster.pin_threads()) return PlanWorker(own, threads);
  return {.compute = std::vector<CoreList>(static_cast<size_t>(threads))};
}

bool Replays(const JobConfig& config) { return config.compute() == JobConfig::REPLAY; }

// Error of a job with device CUDA. If memory does not suffice, `error` names the remedy.
absl::Status WithoutGpu(const absl::Status& error) {
  const std::string text = absl::StrCat("device: CUDA, but ", error.message());
  if (absl::IsResourceExhausted(error)) return absl::ResourceExhaustedError(text);
  return absl::FailedPreconditionError(absl::StrCat(text, ": set device to AUTO or CPU"));
}

}  // namespace

Training::Training(RegisterReply registered, TrainingOptions options)
    : registered_(std::move(registered)),
      data_folder_(std::move(options.data_folder)),
      keys_(std::move(options.keys)),
      gpu_models_(std::move(options.gpu_models)),
      gpu_encoders_(std::move(options.gpu_encoders)),
      totals_(options.totals),
      cores_(PlanThreads(registered_.config().cluster(), options.core_share)),
      pool_(static_cast<int>(cores_.compute.size()), cores_.compute),
      thread_([this] {
        const absl::Status end = RunWithinMemory();
        absl::MutexLock lock(&mutex_);
        if (cancelled_.ok()) failure_ = end;  // the caller of Cancel knows the reason
      }) {}

Training::~Training() {
  Cancel(absl::CancelledError("the worker stops"));
  thread_.join();
}

absl::Status Training::RunWithinMemory() {
  try {
    return Run();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

absl::Status Training::OutOfMemory() const {
  if (Replays(registered_.config())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this worker is out of memory: weights and a gradient need ",
                     PredictBytes(/*virtual_workers=*/1) >> 20, " MiB; lower replay.size_scale"));
  }
  if (on_gpu_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this worker is out of memory: on the host, weights and gradients of one "
                     "virtual worker need ",
                     PredictHeld(/*virtual_workers=*/1, {}) >> 20,
                     " MiB; start more workers, or set placement.kind to ZERO2 or ZERO3"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "this worker is out of memory: activations alone need ",
      PredictActivationBytes(ModelOptionsOf(registered_.config())) >> 20,
      " MiB; lower train.micro_batch or model.context, or set train.recompute to FULL"));
}

absl::Status Training::Run() {
  StayOn(cores_.compute.front());
  RETURN_IF_ERROR(OpenData());
  ASSIGN_OR_RETURN(const View view, WaitForView());
  RETURN_IF_ERROR(Build(view));
  while (true) {
    const uint32_t number = NewestView();
    RETURN_IF_ERROR(loop_->Run());
    // Done, unless virtual workers of a lost worker are assigned to it.
    RETURN_IF_ERROR(WaitForViewAfter(number));
  }
}

uint32_t Training::NewestView() const {
  absl::MutexLock lock(&mutex_);
  return view_->number();
}

absl::Status Training::WaitForViewAfter(uint32_t number) {
  absl::MutexLock lock(&mutex_);
  const auto there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return view_->number() > number || !cancelled_.ok();
  };
  mutex_.Await(absl::Condition(&there));
  return cancelled_;
}

absl::Status Training::OpenData() {
  const JobConfig& config = registered_.config();
  const DataConfig& data = config.data();
  if (data.random().samples() == 0 && !Replays(config)) {
    std::error_code error;
    std::filesystem::create_directories(data_folder_, error);
    ASSIGN_OR_RETURN(tokens_, OpenResolvedTokens(data, data_folder_ + "/tokens.bin",
                                                 TextFormOf(config.model())));
  }
  ASSIGN_OR_RETURN(sampler_, MakeSampler(config, tokens_.has_value() ? &*tokens_ : nullptr));
  return absl::OkStatus();
}

absl::StatusOr<View> Training::WaitForView() {
  absl::MutexLock lock(&mutex_);
  const auto there = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return view_.has_value() || !cancelled_.ok();
  };
  mutex_.Await(absl::Condition(&there));
  if (!cancelled_.ok()) return cancelled_;
  return *view_;
}

absl::Status Training::Build(const View& view) {
  const JobConfig& config = registered_.config();
  if (KeepsResiduals(config)) {
    RETURN_IF_ERROR(ResidualWriter::CheckRunFolder(registered_.run_dir()));
  }
  TrainingLoopOptions options{config, {}, view.start_version()};
  const WorkerPlace place = PlaceOf(view, registered_.node_id());
  options.virtual_workers = place.virtual_workers;
  options.start_clocks = place.start_clocks;
  const auto virtual_workers = static_cast<uint32_t>(options.virtual_workers.size());
  if (config.trace().steps() > 0) {
    trace_.emplace(RecordedClocks(config.trace(), view.start_version()), time_);
    options.trace = trace_->AddTrack("compute");
  }
  RETURN_IF_ERROR(BuildModel(view, options.virtual_workers));
  options.encoder = encoder_.get();
  options.totals = totals_;
  if (trace_.has_value() && tracer_ != nullptr) {
    options.device_trace = trace_->AddTrack("device");
    options.tracer = tracer_;
  }
  NodeCounters predicted = Predict(virtual_workers);
  ASSIGN_OR_RETURN(options.shares_memory, BuildExchange(view));
  if (options.shares_memory) options.in_place = BlocksInPlace(view);
  predicted.set_predicted_held_bytes(PredictHeld(virtual_workers, options.in_place));
  bool has_residuals = false;
  if (KeepsResiduals(config)) {
    ASSIGN_OR_RETURN(has_residuals, RestoreResiduals(view, place));
    predicted.set_predicted_memory_bytes(
        predicted.predicted_memory_bytes() +
        PredictResidualCopyBytes(config.comm().push_codec(), view.blocks(), *table_));
    const StartThreadsOn io(cores_.io);
    residuals_.emplace(ResidualWriter::Options{registered_.run_dir(), BlockNames(view.blocks()),
                                               view.timeline(), SyncModeOf(config.sync().policy())},
                       *table_);
    options.residuals = &*residuals_;
    options.view = view.number();
  }
  const PushCodecConfig& codec = config.comm().push_codec();
  // With `auto` through shared memory, only restored residuals are sent in frames.
  if (!codec.has_auto_() || !options.shares_memory || has_residuals) {
    predicted.set_predicted_memory_bytes(
        predicted.predicted_memory_bytes() +
        PredictPushEncoderBytes(codec, view.blocks(), *table_, virtual_workers,
                                /*on_device=*/encoder_ != nullptr));
  }
  loop_.emplace(std::move(options), *table_, *model_, *sampler_, *exchange_, board_);
  absl::MutexLock lock(&mutex_);
  if (!cancelled_.ok()) return cancelled_;
  predicted_ = std::move(predicted);
  ready_ = true;
  built_view_ = view.number();
  if (view_->number() > built_view_) AdoptAssignment();
  return absl::OkStatus();
}

uint64_t Training::PredictBytes(uint32_t virtual_workers) const {
  const JobConfig& config = registered_.config();
  if (Replays(config)) {
    return PredictReplayBytes(config.replay().resolved_profile(), virtual_workers);
  }
  const ModelOptions model = ModelOptionsOf(config);
  const CommConfig::Format format = config.comm().pull_format();
  WorkerHolding holding = WorkerHoldingOf(config, virtual_workers);
  holding.on_gpu = on_gpu_;
  return PredictWorkerBytes(model, format, holding) +
         LocalStepBytes(model, format, config.sync(), config.optimizer(), virtual_workers);
}

// Lanes keep consecutive segments of a block in one piece. Weights pulled in another format than
// the model computes with are copied.
std::vector<bool> Training::BlocksInPlace(const View& view) const {
  const JobConfig& config = registered_.config();
  const CommConfig::Format format = config.comm().pull_format();
  // Where all lanes share memory, as here, PULL_AUTO is FP32.
  const bool as_computed = format == CommConfig::FP32 || format == CommConfig::PULL_AUTO ||
                           PushPlanOf(config).binds_bf16;
  const bool reads_lanes = SyncModeOf(config.sync().policy()).in_place &&
                           config.placement().offload_dir().empty() && !on_gpu_;
  const std::vector<uint32_t> lanes =
      LaneNumberOfSegmentFor(view, WorkerPeer(registered_.node_id()));
  std::vector<bool> in_place(table_->num_blocks(), as_computed && reads_lanes);
  for (uint32_t id = 0; id < table_->size(); ++id) {
    const uint32_t block = table_->segment(id).block;
    if (lanes[id] != lanes[table_->first_of_block(block)]) in_place[block] = false;
  }
  return in_place;
}

uint64_t Training::PredictHeld(uint32_t virtual_workers, std::vector<bool> in_place) const {
  const JobConfig& config = registered_.config();
  if (Replays(config)) return 0;
  WorkerHolding holding = WorkerHoldingOf(config, virtual_workers);
  holding.in_place = std::move(in_place);
  holding.on_gpu = on_gpu_;
  const HeldBytes held =
      PredictHeldBytes(ModelOptionsOf(config), config.comm().pull_format(), holding);
  return held.weights + held.gradients;
}

NodeCounters Training::Predict(uint32_t virtual_workers) const {
  const JobConfig& config = registered_.config();
  NodeCounters predicted;
  predicted.set_predicted_memory_bytes(PredictBytes(virtual_workers));
  if (Replays(config) || on_gpu_) return predicted;
  const ModelOptions model = ModelOptionsOf(config);
  predicted.set_predicted_activation_bytes(PredictActivationBytes(model));
  if (config.model().family() != ModelConfig::ENCODER_DECODER) {
    predicted.set_literature_activation_bytes(LecturesActivationBytes(model));
  }
  return predicted;
}

absl::StatusOr<GpuModel> Training::MakeGpuModel(const View& view,
                                                std::vector<uint32_t> virtual_workers) {
  const JobConfig& config = registered_.config();
  const PushPlan plan = PushPlanOf(config);
  GpuModelOptions options{.model = ModelOptionsOf(config), .bf16_weights = plan.binds_bf16};
  if (plan.gpu_encodes) {
    ASSIGN_OR_RETURN(encoder_, gpu_encoders_({.codec = config.comm().push_codec(),
                                              .block_names = BlockNames(view.blocks()),
                                              .table = &*table_,
                                              .virtual_workers = std::move(virtual_workers)}));
    options.encoder = encoder_.get();
  }
  // Threads that it starts, for several GPUs, may use all cores of the worker, not only this
  // thread's.
  CoreList all;
  for (const CoreList& cores : cores_.compute) all.insert(all.end(), cores.begin(), cores.end());
  const StartThreadsOn place(all);
  ASSIGN_OR_RETURN(GpuModel made, gpu_models_(options));
  if (!made.encodes) encoder_.reset();
  return made;
}

absl::StatusOr<std::unique_ptr<Model>> Training::MakeModel(
    const View& view, const std::vector<uint32_t>& virtual_workers) {
  const JobConfig& config = registered_.config();
  if (Replays(config)) {
    return std::make_unique<ReplayModel>(config.replay().resolved_profile());
  }
  if (config.device() == ClusterConfig::CPU) return CreateModel(ModelOptionsOf(config), pool_);
  absl::StatusOr<GpuModel> made = MakeGpuModel(view, virtual_workers);
  const absl::Status& status = made.status();
  if (config.sync().record() == SyncConfig::ORDER) {
    if (made.ok()) {
      ReportDevice(absl::StrCat("the CPU, not on ", made->device,
                                ": a run with sync.record ORDER is recomputed on the CPU"));
      made->model.reset();
    }
  } else if (made.ok()) {
    on_gpu_ = true;
    tracer_ = made->tracer;
    ReportDevice(absl::StrCat(made->device, ", ", (made->device_bytes >> 20) + 1,
                              " MiB of GPU memory per worker",
                              encoder_ != nullptr ? ", gradients are encoded there too" : ""));
    return std::move(made->model);
  } else if (absl::IsFailedPrecondition(status)) {  // only some of its GPUs can be used
    return status;
  } else if (config.device() == ClusterConfig::CUDA) {
    return WithoutGpu(status);
  } else if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) {
    ReportDevice(absl::StrCat("the CPU: ", status.message()));
  } else if (!absl::IsUnimplemented(status)) {
    return status;
  }
  encoder_.reset();
  return CreateModel(ModelOptionsOf(config), pool_);
}

void Training::ReportDevice(const std::string& device) {
  absl::MutexLock lock(&mutex_);
  Notice& notice = notices_.emplace_back();
  notice.set_key(absl::StrCat("device/", device));  // one notice for all workers with this text
  notice.set_text(absl::StrCat("workers compute on ", device));
}

absl::Status Training::BuildModel(const View& view, const std::vector<uint32_t>& virtual_workers) {
  const JobConfig& config = registered_.config();
  ASSIGN_OR_RETURN(table_, SegmentTable::Create(view.blocks(), config.comm().segment_elements()));
  ASSIGN_OR_RETURN(model_, MakeModel(view, virtual_workers));
  if (model_->blocks().SerializeAsString() == view.blocks().SerializeAsString()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "this worker's model differs from the coordinator's: run the same version of tug everywhere");
}

absl::StatusOr<bool> Training::BuildExchange(const View& view) {
  std::optional<StartThreadsOn> place(cores_.io);
  const PeerId self = WorkerPeer(registered_.node_id());
  ASSIGN_OR_RETURN(OpenedTransport opened,
                   OpenTransport(self, registered_.job(), registered_.config().comm(), "", keys_));
  RETURN_IF_ERROR(ConnectToLanes(view, self, *opened.transport));
  const std::vector<Lane> lanes = LanesFor(view, self);
  const bool shares_memory = std::all_of(lanes.begin(), lanes.end(), [&](const Lane& lane) {
    return opened.transport->SharesMemoryWith(LanePeer(LaneNumber(lane)));
  });
  place.emplace(cores_.exchange);
  ExchangeOptions options = ExchangeOptionsOf(registered_.config(), registered_.job(), view, self);
  if (trace_.has_value()) options.trace = trace_->AddTrack("exchange");
  exchange_ =
      std::make_unique<ExchangeClient>(std::move(options), *table_, std::move(opened.transport));
  return shares_memory;
}

// A worker that joins during the timeline runs virtual workers that continued elsewhere; the
// checkpoint may be deleted by then. At the start of the timeline, servers read it too and report
// errors.
absl::StatusOr<bool> Training::RestoreResiduals(const View& view, const WorkerPlace& place) {
  bool any = false;
  const bool amid = view.number() != view.placement();
  const std::vector<std::string> names = BlockNames(view.blocks());
  const CodecChoice codecs(registered_.config().comm().push_codec(), names);
  const SyncMode& mode = SyncModeOf(registered_.config().sync().policy());
  for (const size_t i : ResidualsToRestore(view, place, mode)) {
    const uint32_t virtual_worker = place.virtual_workers[i];
    const uint64_t clock = place.start_clocks[i];
    absl::StatusOr<RestoredResiduals> restored =
        ReadResiduals(view.restore_path(), names, *table_, codecs, virtual_worker, clock);
    if (absl::IsNotFound(restored.status()) || (!restored.ok() && amid)) continue;
    RETURN_IF_ERROR(restored.status());
    if (!restored->notice.empty()) {
      absl::MutexLock lock(&mutex_);
      Notice& notice = notices_.emplace_back();
      notice.set_key(absl::StrCat("residual ", view.timeline(), " ", virtual_worker));
      notice.set_text(restored->notice);
    }
    if (restored->residuals.empty()) continue;
    any = true;
    if (encoder_ != nullptr) {
      RETURN_IF_ERROR(encoder_->RestoreResiduals(virtual_worker, restored->residuals));
    } else {
      exchange_->RestoreResiduals(virtual_worker, std::move(restored->residuals));
    }
  }
  return any;
}

void Training::SetView(const View& view) {
  absl::MutexLock lock(&mutex_);
  view_ = view;
  if (ready_) AdoptAssignment();
}

void Training::AdoptAssignment() {
  exchange_->SetView(
      ViewRequestOf(*view_, WorkerPeer(registered_.node_id()), registered_.config()));
  if (residuals_.has_value()) residuals_->OnView(*view_, registered_.node_id());
  board_.SetPlace(view_->number(), PlaceOf(*view_, registered_.node_id()));
}

void Training::OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
  {
    absl::MutexLock lock(&mutex_);
    if (ready_ && residuals_.has_value()) residuals_->OnHeard(sent);
  }
  board_.OnReply(reply, sent);
}

const Trace* Training::trace() const {
  absl::MutexLock lock(&mutex_);
  return ready_ && trace_.has_value() ? &*trace_ : nullptr;
}

absl::Status Training::failure() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

void Training::Cancel(const absl::Status& reason) {
  board_.Cancel(reason);
  absl::MutexLock lock(&mutex_);
  if (!cancelled_.ok()) return;
  cancelled_ = reason;
  if (ready_) exchange_->Cancel(reason);
  if (ready_ && residuals_.has_value()) residuals_->Cancel();
}

}  // namespace tug
