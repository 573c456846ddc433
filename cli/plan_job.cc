#include "cli/plan_job.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "coordinator/segment_holders.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "exchange/segment_table.h"
#include "model/job_model.h"
#include "model/layout.h"
#include "model/memory.h"
#include "proto/job_config.h"
#include "server/memory.h"

namespace tug {
namespace {

constexpr uint32_t kByteSymbols = 256;

// Of the tokenizer, without reading the text; 0: only the text knows.
uint32_t SymbolsOf(const JobConfig& job) {
  const DataConfig& data = job.data();
  if (data.random().samples() > 0) return data.random().symbols();
  uint32_t symbols = 0;
  if (data.tokenizer() == DataConfig::BYTE) symbols = kByteSymbols;
  if (data.tokenizer() == DataConfig::SENTENCEPIECE && data.tokenizer_path().empty()) {
    symbols = data.pieces();
  }
  if (symbols == 0 || TextFormOf(job.model()) == TextForm::kRunning) return symbols;
  return symbols + kLineSymbols;
}

absl::Status CheckPlannable(const std::string& job_file, const JobConfig& job) {
  if (job.compute() != JobConfig::REPLAY && !job.model().external()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      job_file,
      " has no model of Tugboat's (compute: REPLAY or model.external): plan its --parameters"));
}

std::string RecomputeOf(const TrainConfig& train) {
  if (train.recompute() == TrainConfig::NONE) return "none";
  return train.recompute() == TrainConfig::SELECTIVE ? "selective" : "full";
}

// Of Adam, m and v; of SGD its momentum, if it has any.
StateBytes StatesOf(const JobConfig& job) {
  const bool adam = job.optimizer().algorithm() != OptimizerConfig::SGD;
  const bool momentum = adam || job.optimizer().sgd().momentum() > 0;
  const bool narrow =
      job.train().precision() == TrainConfig::BF16 && job.comm().pull_format() == CommConfig::BF16;
  return {.parameters = narrow ? 2.0 : 4.0,
          .gradients = 4,
          .master = narrow ? 4.0 : 0.0,
          .first_moment = momentum ? 4.0 : 0.0,
          .second_moment = adam ? 4.0 : 0.0};
}

// Of an element; formats that depend on links or on what changed are counted as FP32.
double PullBytes(CommConfig::Format format) {
  if (format == CommConfig::BF16) return 2;
  return format == CommConfig::INT8 ? 1 + 4.0 / 256 : 4;
}

// Why the formulas of plan/ are not of this model; empty: they are.
std::string OtherShape(const ModelConfig& model) {
  if (model.family() == ModelConfig::ENCODER_DECODER) {
    return "an encoder-decoder has two stacks of layers, the formulas are of one";
  }
  if (model.mlp_width() != 4 * model.width()) {
    return "model.mlp_width is not 4 x model.width, as the formulas take it";
  }
  return "";
}

PlanInputs InputsOf(const JobConfig& job, const PlanOptions& hardware, uint64_t parameters,
                    uint32_t symbols) {
  const ModelConfig& model = job.model();
  PlanInputs plan{hardware};
  plan.is_job = true;
  plan.parameters = static_cast<double>(parameters);
  plan.context = model.context();
  plan.no_shape = OtherShape(model);
  if (plan.no_shape.empty()) {
    plan.layers = model.layers();
    plan.width = model.width();
    plan.heads = model.heads();
    plan.vocabulary = symbols;
  }
  plan.precision = job.train().precision() == TrainConfig::BF16 ? "bf16" : "fp32";
  plan.states = StatesOf(job);
  plan.push_bytes = 4;
  plan.pull_bytes = PullBytes(job.comm().pull_format());
  plan.exchange_notes = {
      absl::StrCat("Gradients are pushed in FP32, without comm.push_codec; weights are pulled as ",
                   CommConfig::Format_Name(job.comm().pull_format()), "."),
      "Collectives exchange in the same formats, once a step, without sync.local_steps."};
  plan.gpus = job.cluster().workers();
  plan.virtual_workers = job.cluster().virtual_workers();
  plan.servers = {job.cluster().servers()};
  plan.batch_tokens = static_cast<double>(job.train().global_batch()) * model.context();
  plan.tokens = static_cast<double>(job.train().steps()) * plan.batch_tokens;
  plan.micro_batch = job.train().micro_batch();
  plan.recompute = RecomputeOf(job.train());
  plan.activations_gb = static_cast<double>(PredictActivationBytes(ModelOptionsOf(job))) * 1e-9;
  return plan;
}

// Where segments lie in the job's first placement. Each server is on a host of its own: none keeps
// more for its workers then (placement.host_weight_cache).
View FirstPlacement(const JobConfig& job, const SegmentTable& table) {
  SegmentHolders::Options options{.replicas = job.sync().replicas(),
                                  .lanes_per_server = job.cluster().lanes_per_server()};
  for (uint32_t id = 0; id < table.size(); ++id) {
    options.segment_bytes.push_back(table.segment(id).bytes());
  }
  SegmentHolders holders(std::move(options));
  std::vector<uint32_t> servers(job.cluster().servers());
  std::iota(servers.begin(), servers.end(), 0);
  holders.Begin(servers);
  View view;
  for (const LaneId& lane : holders.Lanes()) {
    Lane& added = *view.add_lanes();
    added.set_server_node_id(lane.server);
    added.set_index_on_server(lane.index);
    added.set_host_id(lane.server + 1);
  }
  for (const uint32_t lane : holders.Owners()) view.add_lane_of_segment(lane);
  for (const std::vector<uint32_t>& copies : holders.Copies()) {
    SegmentCopies& entry = *view.add_copies();
    entry.mutable_lane_of_segment()->Add(copies.begin(), copies.end());
  }
  return view;
}

PlanSection MemoryOf(const JobConfig& job, const SegmentTable& table) {
  const ModelOptions model = ModelOptionsOf(job);
  const CommConfig::Format format = job.comm().pull_format();
  const uint32_t workers = job.cluster().workers();
  const uint32_t carried = (job.cluster().virtual_workers() + workers - 1) / workers;
  const View view = FirstPlacement(job, table);
  ServerMemory server;
  for (uint32_t id = 0; id < job.cluster().servers(); ++id) {
    const ServerMemory memory = PredictServerMemory(job, table, view, id);
    if (memory.line_bytes > server.line_bytes) server = memory;
  }
  PlanSection section{.key = "tugboat",
                      .title = "Memory of the job's processes, as Tugboat predicts it at most"};
  section.columns = {{"process", "process"},
                     {"rounded", "bytes", PlanForm::kBytes},
                     {"exactly", "", PlanForm::kExactBytes},
                     {"binary", "", PlanForm::kBinaryBytes}};
  const auto add = [&](const std::string& what, uint64_t bytes) {
    section.rows.push_back({what, bytes});
  };
  add(absl::StrFormat("worker, of %u; virtual workers it carries: %u", workers, carried),
      PredictWorkerBytes(model, format, WorkerHoldingOf(job, carried)) +
          LocalStepBytes(model, format, job.sync(), job.optimizer(), carried));
  add("  of it activations", PredictActivationBytes(model));
  add(absl::StrFormat("server, of %u", job.cluster().servers()), server.line_bytes);
  add("  more during a checkpoint", server.checkpoint_bytes);
  section.notes = {
      "Formulas: model/memory.h, server/memory.h; without residuals of error feedback."};
  if (job.placement().host_weight_cache()) {
    section.notes.push_back("Servers keep weights as if each had a host to itself.");
  }
  return section;
}

}  // namespace

absl::StatusOr<PlanJob> ReadPlanJob(const std::string& job_file,
                                    const std::vector<std::string>& overrides,
                                    const PlanOptions& hardware,
                                    std::optional<uint32_t> vocabulary) {
  ASSIGN_OR_RETURN(JobConfig job, LoadJobConfig(job_file, overrides));
  RETURN_IF_ERROR(CheckPlannable(job_file, job));
  const uint32_t symbols =
      std::max({SymbolsOf(job), job.model().vocabulary(), vocabulary.value_or(0)});
  if (symbols == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.tokenizer ", DataConfig::Tokenizer_Name(job.data().tokenizer()), " of ",
                     job_file, " takes its symbols from the text: give --vocabulary N"));
  }
  job.mutable_data()->set_resolved_symbols(symbols);
  const uint32_t classes = DataClasses(job.data());
  if (job.model().family() == ModelConfig::ENCODER &&
      std::max(classes, job.model().classes()) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(job_file, " takes its classes from the text: give --set model.classes=N"));
  }
  const BlockTable blocks = ModelLayout(job.model(), symbols, classes);
  ASSIGN_OR_RETURN(const SegmentTable table,
                   SegmentTable::Create(blocks, job.comm().segment_elements()));
  PlanJob plan{.inputs = InputsOf(job, hardware, ElementCount(blocks), symbols),
               .memory = MemoryOf(job, table)};
  RETURN_IF_ERROR(ResolvePlan(plan.inputs));
  return plan;
}

}  // namespace tug
