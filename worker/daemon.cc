#include "worker/daemon.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/large_blocks.h"
#include "base/process_memory.h"
#include "base/status_macros.h"
#include "base/thread_pool.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "exchange/client.h"
#include "exchange/view_lanes.h"
#include "model/gpt.h"
#include "model/memory.h"
#include "proto/control_client.h"
#include "proto/heartbeat_loop.h"
#include "proto/job_config.h"
#include "transport/zmq_transport.h"
#include "worker/control_board.h"
#include "worker/training_loop.h"

namespace tug {
namespace {

constexpr absl::Duration kJoinTimeout = absl::Seconds(8);

absl::StatusOr<uint64_t> FingerprintOf(const WorkerOptions& options) {
  if (options.job_file.empty()) return 0;
  ASSIGN_OR_RETURN(const JobConfig config, LoadJobConfig(options.job_file, options.overrides));
  return Fingerprint(config);
}

absl::StatusOr<TokenFile> OpenData(const WorkerOptions& options, const RegisterReply& registered) {
  const std::string folder =
      options.cache_dir.empty() ? registered.run_dir() + "/data" : options.cache_dir;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const DataConfig& data = registered.config().data();
  ASSIGN_OR_RETURN(const TokenFileInfo info, PrepareTokenFile(data, folder + "/tokens.bin"));
  if (info.fingerprint != data.resolved_fingerprint()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the text in ", data.path(),
                     " is not the one the coordinator reads: give this host the same files"));
  }
  return TokenFile::Open(folder + "/tokens.bin");
}

// The parts of a worker that live as long as a view does. The compute thread runs `loop`.
class Training {
 public:
  static absl::StatusOr<std::unique_ptr<Training>> Create(const RegisterReply& registered,
                                                          const Sampler& sampler, const View& view,
                                                          ControlBoard& board) {
    std::unique_ptr<Training> training(new Training(registered, board));
    RETURN_IF_ERROR(training->Build(registered, sampler, view));
    return training;
  }

  ~Training() {
    Cancel(absl::CancelledError("the worker stops"));
    if (thread_.joinable()) thread_.join();
    exchange_.reset();  // before the loop, whose weights its thread writes
  }

  void Cancel(const absl::Status& reason) {
    board_.Cancel(reason);
    if (exchange_ != nullptr) exchange_->Cancel(reason);
  }

  uint64_t dropped_messages() const { return exchange_->transport_counters().dropped; }
  uint64_t predicted_bytes() const { return predicted_bytes_; }

 private:
  Training(const RegisterReply& registered, ControlBoard& board)
      : board_(board), pool_(static_cast<int>(registered.config().cluster().compute_threads())) {}

  absl::Status Build(const RegisterReply& registered, const Sampler& sampler, const View& view) {
    const JobConfig& config = registered.config();
    ASSIGN_OR_RETURN(table_,
                     SegmentTable::Create(registered.blocks(), config.comm().segment_elements()));
    ASSIGN_OR_RETURN(model_, Gpt::Create(config.model(), config.data().resolved_symbols(),
                                         static_cast<int>(config.train().micro_batch()), pool_));
    if (model_->blocks().SerializeAsString() != registered.blocks().SerializeAsString()) {
      return absl::FailedPreconditionError(
          "this worker's model is not the coordinator's: run the same version of tug everywhere");
    }
    ZmqTransport::Options transport_options;
    transport_options.self = WorkerPeer(registered.node_id());
    transport_options.checksum = config.comm().checksum();
    ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> transport,
                     ZmqTransport::Create(transport_options));
    RETURN_IF_ERROR(ConnectToLanes(view, transport_options.self, *transport));
    exchange_ = std::make_unique<ExchangeClient>(
        ExchangeOptions{registered.job(), view.timeline(), view.number(), LaneNumberOfSegment(view),
                        config.comm()},
        *table_, std::move(transport));

    TrainingLoopOptions options{config, {}, view.start_version()};
    for (const WorkerAssignment& assignment : view.workers()) {
      if (assignment.node_id() != registered.node_id()) continue;
      options.virtual_workers.assign(assignment.virtual_workers().begin(),
                                     assignment.virtual_workers().end());
    }
    predicted_bytes_ = PredictWorkerBytes(config.model(), config.data().resolved_symbols(),
                                          config.train().micro_batch(),
                                          static_cast<uint32_t>(options.virtual_workers.size()));
    loop_.emplace(std::move(options), *table_, *model_, sampler, *exchange_, board_);
    // What ends the loop early is what it was cancelled with: whoever cancelled knows.
    thread_ = std::thread([this] { loop_->Run().IgnoreError(); });
    return absl::OkStatus();
  }

  ControlBoard& board_;
  ThreadPool pool_;
  std::optional<SegmentTable> table_;
  std::unique_ptr<Gpt> model_;
  std::unique_ptr<ExchangeClient> exchange_;
  std::optional<TrainingLoop> loop_;
  uint64_t predicted_bytes_ = 0;
  std::thread thread_;
};

void AddState(const ControlBoard& board, const Training* training, HeartbeatRequest& beat) {
  beat.set_ready(training != nullptr);
  board.AddTo(beat);
  NodeCounters& counters = *beat.mutable_counters();
  counters.set_peak_memory_bytes(PeakMemoryBytes());
  if (training == nullptr) return;
  counters.set_messages_dropped(training->dropped_messages());
  counters.set_predicted_memory_bytes(training->predicted_bytes());
}

}  // namespace

absl::Status RunWorker(const WorkerOptions& options) {
  KeepLargeBlocksMapped();
  RegisterRequest request = ThisProcess(WORKER);
  ASSIGN_OR_RETURN(const uint64_t fingerprint, FingerprintOf(options));
  request.set_job_fingerprint(fingerprint);
  ASSIGN_OR_RETURN(std::unique_ptr<ControlClient> client,
                   ControlClient::Connect(options.coordinator, kJoinTimeout));
  ASSIGN_OR_RETURN(const RegisterReply registered, client->Register(request));
  ASSIGN_OR_RETURN(const TokenFile tokens, OpenData(options, registered));
  ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Create(registered.config(), tokens));

  ControlBoard board;
  std::unique_ptr<Training> training;
  HeartbeatCallbacks callbacks;
  callbacks.report = [&](HeartbeatRequest& beat) { AddState(board, training.get(), beat); };
  callbacks.on_view = [&](const View& view) {
    ASSIGN_OR_RETURN(training, Training::Create(registered, sampler, view, board));
    return absl::OkStatus();
  };
  callbacks.on_reply = [&](const HeartbeatReply& reply, const HeartbeatRequest& sent) {
    board.ConfirmReports(sent.steps_size(), sent.evals_size());
    board.SetOrders({reply.go(), reply.pause(), reply.final_version()});
  };
  callbacks.failure = [] { return absl::OkStatus(); };
  const absl::Status end = BeatUntilEnd(*client, registered, callbacks);
  if (training != nullptr) training->Cancel(absl::CancelledError("the job has ended"));
  return end;
}

}  // namespace tug
