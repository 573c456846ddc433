// SPDX-License-Identifier: Apache-2.0
#include "plan/tables/plan_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "blocks/segment_table.h"
#include "config/job_config.h"
#include "data/sampler.h"
#include "launch/job_memory.h"
#include "model/job_model.h"
#include "model/layout.h"
#include "model/transformer/memory.h"

namespace tug {
namespace {

absl::Status CheckPlannable(const std::string& job_file, const JobConfig& job) {
  if (job.compute() != JobConfig::REPLAY && !job.model().external()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(job_file,
                   " has no model of tug's own (compute: REPLAY or model.external): plan with "
                   "--parameters N instead"));
}

std::string RecomputeOf(const TrainConfig& train) {
  if (train.recompute() == TrainConfig::NONE) return "none";
  return train.recompute() == TrainConfig::SELECTIVE ? "selective" : "full";
}

// Adam: m and v; SGD: its momentum, if any.
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

// Per element; formats that depend on links or on changes count as FP32.
double PullBytes(CommConfig::Format format) {
  if (format == CommConfig::BF16) return 2;
  return format == CommConfig::INT8 ? 1 + 4.0 / 256 : 4;
}

// Why the formulas of plan/ do not apply to this model; empty: they do.
std::string OtherShape(const ModelConfig& model) {
  if (model.family() == ModelConfig::ENCODER_DECODER) {
    return "the formulas are for one stack of layers, an encoder-decoder has two";
  }
  if (model.mlp_width() != 4 * model.width()) {
    return "model.mlp_width is not 4 x model.width, which the formulas assume";
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

PlanSection MemoryOf(const JobConfig& job, const SegmentTable& table) {
  const JobMemory memory = PredictJobMemory(job, table);
  PlanSection section{.key = "tugboat", .title = "Predicted peak memory of the job's processes"};
  section.columns = {{"process", "process"},
                     {"rounded", "bytes", PlanForm::kBytes},
                     {"exactly", "", PlanForm::kExactBytes},
                     {"binary", "", PlanForm::kBinaryBytes}};
  const auto add = [&](const std::string& what, uint64_t bytes) {
    section.rows.push_back({what, bytes});
  };
  add(absl::StrFormat("worker, of %u; virtual workers it runs: %u", job.cluster().workers(),
                      memory.carried),
      memory.worker_bytes);
  add("  of which activations", memory.activation_bytes);
  add(absl::StrFormat("server, of %u", job.cluster().servers()), memory.server_bytes);
  add("  additional during a checkpoint", memory.checkpoint_bytes);
  section.notes = {
      "Formulas: model/transformer/memory.h, server/segments/memory.h; without residuals of error "
      "feedback."};
  if (job.placement().host_weight_cache()) {
    section.notes.push_back("Weights of servers are counted as if each server had its own host.");
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
      std::max({SymbolsWithoutText(job), job.model().vocabulary(), vocabulary.value_or(0)});
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
