#include "cli/plan_job.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cli/experiment_arguments.h"
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
constexpr double kMostSymbols = 1e7;  // of model.vocabulary

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
      " has no model of Tugboat's (compute: REPLAY or model.external): give --parameters"));
}

PlanOptions OptionsOf(const JobConfig& job, uint64_t parameters, uint32_t symbols) {
  const ModelConfig& model = job.model();
  PlanOptions options;
  options.parameters = static_cast<double>(parameters);
  options.context = model.context();
  // The formulas of plan/ are of one stack of layers.
  if (model.family() != ModelConfig::ENCODER_DECODER) {
    options.layers = model.layers();
    options.width = model.width();
    options.heads = model.heads();
    options.vocabulary = symbols;
  }
  options.precision = job.train().precision() == TrainConfig::BF16 ? "mixed" : "fp32";
  options.gpus = job.cluster().workers();
  options.servers = {job.cluster().servers()};
  options.batch_tokens = static_cast<double>(job.train().global_batch()) * model.context();
  options.micro_batch = job.train().micro_batch();
  switch (job.train().recompute()) {
    case TrainConfig::NONE:
      options.recompute = "none";
      break;
    case TrainConfig::SELECTIVE:
      options.recompute = "selective";
      break;
    default:
      options.recompute = "full";
      break;
  }
  return options;
}

// Where segments lie in the job's first placement.
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
    view.add_lanes()->set_server_node_id(lane.server);
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
  section.headings = {"process", "rounded", "exactly", "binary"};
  section.keys = {"process", "", "bytes", ""};
  const auto add = [&](const std::string& what, uint64_t bytes) {
    const auto number = static_cast<double>(bytes);
    section.rows.push_back(
        {what, DecimalBytes(number), PlanCell(ExactBytes(number), number), BinaryBytes(number)});
  };
  add(absl::StrFormat("worker, of %u; virtual workers it carries: %u", workers, carried),
      PredictWorkerBytes(model, format, carried) +
          LocalStepBytes(model, format, job.sync(), job.optimizer(), carried));
  add("  of it activations", PredictActivationBytes(model));
  add(absl::StrFormat("server, of %u", job.cluster().servers()), server.line_bytes);
  add("  more during a checkpoint", server.checkpoint_bytes);
  section.notes = {
      "Formulas: model/memory.h and server/memory.h; without residuals of error "
      "feedback and encoders."};
  return section;
}

}  // namespace

absl::StatusOr<PlanJob> ReadPlanJob(const std::string& job_file,
                                    const std::vector<std::string>& overrides,
                                    std::optional<uint64_t> vocabulary) {
  ASSIGN_OR_RETURN(JobConfig job, LoadJobConfig(job_file, overrides));
  RETURN_IF_ERROR(CheckPlannable(job_file, job));
  if (vocabulary) {
    RETURN_IF_ERROR(CheckNumber("--vocabulary", static_cast<double>(*vocabulary), 1, kMostSymbols));
  }
  const uint32_t symbols = std::max(
      {SymbolsOf(job), job.model().vocabulary(), static_cast<uint32_t>(vocabulary.value_or(0))});
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
  PlanJob plan{.options = OptionsOf(job, ElementCount(blocks), symbols),
               .memory = MemoryOf(job, table)};
  return plan;
}

}  // namespace tug
