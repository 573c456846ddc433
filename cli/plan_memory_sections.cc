#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/plan_sections.h"
#include "plan/pipeline_parallel.h"

namespace tug {
namespace {

// Three forms of the same bytes.
void AddBytes(std::vector<PlanCell>& row, double bytes) {
  row.emplace_back(DecimalBytes(bytes));
  row.emplace_back(ExactBytes(bytes), bytes);
  row.emplace_back(BinaryBytes(bytes));
}

// A last column with the lectures' figures, if they have one of the rows.
void AddLectures(const LectureFigures& lectures, PlanSection& section) {
  bool any = false;
  for (const std::vector<PlanCell>& row : section.rows) any |= lectures.contains(row[0].text);
  if (!any) return;
  section.headings.emplace_back("lectures");
  section.keys.emplace_back("lectures");
  for (std::vector<PlanCell>& row : section.rows) {
    const auto figure = lectures.find(row[0].text);
    row.emplace_back(figure == lectures.end() ? "" : figure->second);
  }
}

// What a GPU has of activations at once; none: there is no shape to tell.
std::optional<double> GpuActivationBytes(const PlanInputs& plan) {
  if (plan.activation_bytes) return plan.activation_bytes;
  if (!plan.shape) return std::nullopt;
  const auto held = static_cast<double>(MicroBatchesHeld(plan.pipeline, plan.micro_batches()));
  return ActivationBytes(*plan.shape, plan.micro_batch, plan.tensor, plan.recomputation) * held /
         plan.pipeline;
}

// "2 Psi + 14 Psi / N".
std::string StageFormula(Stage stage, const StateBytes& states) {
  const double shared = WorkerStateBytes(stage, states, 1, 1) -
                        WorkerStateBytes(stage, states, 1, 2);  // half of what is divided
  const double divided = 2 * shared, whole = states.All() - divided;
  if (divided == 0) return absl::StrFormat("%g Psi", whole);
  if (whole == 0) return absl::StrFormat("%g Psi / N", divided);
  return absl::StrFormat("%g Psi + %g Psi / N", whole, divided);
}

std::string ParametersText(const PlanInputs& plan) {
  if (plan.tensor * plan.pipeline == 1) {
    return absl::StrCat("Psi = ", CountText(plan.parameters));
  }
  return absl::StrFormat("Psi = %s a GPU (of %s, tensor %u x pipeline %u)",
                         CountText(plan.local_parameters()), CountText(plan.parameters),
                         plan.tensor, plan.pipeline);
}

}  // namespace

PlanSection ParametersSection(const PlanInputs& plan) {
  PlanSection section{.key = "parameters", .title = "Parameters"};
  section.headings = {"counted", "parameters"};
  section.keys = {"counted", "parameters"};
  const auto add = [&](const char* how, double count) {
    section.rows.push_back({how, PlanCell(CountText(count), count)});
  };
  add("Psi, as planned with", plan.parameters);
  if (!plan.shape) return section;
  add("lectures: V h + L (12 h^2 + 5 h)", static_cast<double>(LecturesParameters(*plan.shape)));
  add("a GPT-2 of that shape, with all biases, LayerNorm, positions",
      static_cast<double>(DecoderParameters(*plan.shape)));
  return section;
}

PlanSection StatesSection(const PlanInputs& plan, const LectureFigures& lectures) {
  PlanSection section{.key = "states", .title = "Memory of the whole model in training (Adam)"};
  section.headings = {"what", "bytes each", "rounded", "exactly", "binary"};
  section.keys = {"what", "bytes_each", "", "bytes", ""};
  double total = 0;
  const auto add = [&](const char* what, double each, double bytes) {
    total += bytes;
    std::vector<PlanCell>& row = section.rows.emplace_back();
    row.emplace_back(what);
    row.push_back(each > 0 ? PlanCell(absl::StrFormat("%g", each), each) : PlanCell(""));
    AddBytes(row, bytes);
  };
  const auto add_state = [&](const char* what, double each) {
    if (each > 0) add(what, each, each * plan.parameters);
  };
  add_state("parameters", plan.states.parameters);
  add_state("gradients", plan.states.gradients);
  add_state("master weights", plan.states.master);
  add_state("m", plan.states.first_moment);
  add_state("v", plan.states.second_moment);
  if (plan.activation_bytes) add("activations", 0, *plan.activation_bytes);
  if (plan.buffer_bytes > 0) add("buffers", 0, plan.buffer_bytes);
  const double all = total;
  add("total", 0, all);
  AddLectures(lectures, section);
  section.notes = {plan.mixed ? "16-bit parameters and gradients; master weights, m and v FP32."
                              : "FP32: the parameters are the master weights."};
  return section;
}

PlanSection StagesSection(const PlanInputs& plan, const LectureFigures& lectures) {
  const double parameters = plan.local_parameters();
  const uint32_t workers = plan.data_parallel();
  const double gpu = plan.gpu_memory_bytes;
  PlanSection section{.key = "stages",
                      .title = absl::StrFormat("Memory of a worker by stage: %s, N = %u",
                                               ParametersText(plan), workers)};
  section.headings = {"stage",
                      "formula",
                      "rounded",
                      "exactly",
                      "binary",
                      "with activations",
                      absl::StrCat("in ", DecimalBytes(gpu))};
  section.keys = {"stage", "formula", "", "bytes", "", "with_activations_bytes", "fits"};
  const std::optional<double> activations = GpuActivationBytes(plan);
  const auto add = [&](const char* name, const std::string& formula, double bytes) {
    const double all = bytes + activations.value_or(0) + plan.buffer_bytes;
    std::vector<PlanCell>& row = section.rows.emplace_back();
    row.emplace_back(name);
    row.emplace_back(formula);
    AddBytes(row, bytes);
    row.push_back(activations ? PlanCell(DecimalBytes(all), all) : PlanCell("-"));
    row.emplace_back(all <= gpu ? "fits" : "no");
  };
  const std::pair<Stage, const char*> stages[] = {{Stage::kDataParallel, "data parallel"},
                                                  {Stage::kZero1, "ZeRO-1"},
                                                  {Stage::kZero2, "ZeRO-2"},
                                                  {Stage::kZero3, "ZeRO-3"}};
  for (const auto& [stage, name] : stages) {
    add(name, StageFormula(stage, plan.states),
        WorkerStateBytes(stage, plan.states, parameters, workers));
  }
  add("parameter server's worker",
      absl::StrFormat("%g Psi", plan.states.parameters + plan.states.gradients),
      ParameterServerWorkerBytes(plan.states, parameters));
  AddLectures(lectures, section);
  if (!activations) {
    section.notes = {"Without activations: for these give --layers, --width and --heads."};
  } else if (!plan.mixed && plan.shape) {
    section.notes = {"Activations are counted in 16 bits."};
  }
  return section;
}

PlanSection ParameterServerSection(const PlanInputs& plan) {
  const double parameters = plan.local_parameters();
  PlanSection section{
      .key = "parameter_server",
      .title = absl::StrCat("Memory with a parameter server of S servers: ", ParametersText(plan))};
  const double each = plan.states.parameters + plan.states.gradients;
  section.headings = {"S",
                      absl::StrFormat("worker, %g Psi", each),
                      "server, 12 Psi / S",
                      "exactly",
                      "binary",
                      "Tugboat's worker, 8 Psi",
                      "Tugboat's server, 20 Psi / S"};
  section.keys = {"servers",
                  "worker_bytes",
                  "",
                  "server_bytes",
                  "",
                  "tugboat_worker_bytes",
                  "tugboat_server_bytes"};
  const double worker = ParameterServerWorkerBytes(plan.states, parameters);
  const double tugboat_worker = kTugboatWorkerBytes * parameters;
  for (const uint32_t servers : plan.servers) {
    const double tugboat_server = kTugboatServerBytes * parameters / servers;
    std::vector<PlanCell>& row = section.rows.emplace_back();
    row.emplace_back(CountText(servers), servers);
    row.emplace_back(DecimalBytes(worker), worker);
    AddBytes(row, ParameterServerBytes(plan.states, parameters, servers));
    row.emplace_back(DecimalBytes(tugboat_worker), tugboat_worker);
    row.emplace_back(DecimalBytes(tugboat_server), tugboat_server);
  }
  section.notes = {
      "A server: FP32 weights, m, v. Tugboat, in FP32: a worker weights and a gradient (4 + 4), a",
      "server weights, m, v (12), the version before, for pulls (4), the sum of gradients (4)."};
  return section;
}

PlanSection ActivationsSection(const PlanInputs& plan) {
  PlanSection section{.key = "activations"};
  if (!plan.shape) {
    section.title = plan.activation_bytes
                        ? absl::StrCat("Activations: ", DecimalBytes(*plan.activation_bytes),
                                       " a GPU, as given")
                        : "Activations: give --layers, --width and --heads";
    return section;
  }
  const TransformerShape& shape = *plan.shape;
  section.title =
      absl::StrFormat("Activations in 16 bits: L = %u, s = %u, h = %u, a = %u; b sequences",
                      shape.layers, shape.context, shape.width, shape.heads);
  section.headings = {
      "recomputed", "formula", "b = 1, rounded",
      "exactly",    "binary",  absl::StrFormat("a step's batch, b = %.8g", plan.sequences()),
      "a GPU"};
  section.keys = {"recomputed", "formula", "", "sequence_bytes", "", "batch_bytes", "gpu_bytes"};
  const struct {
    Recomputation what;
    const char* name;
    const char* formula;
  } kinds[] = {{Recomputation::kNone, "none", "L (34 s b h + 5 a s^2 b)"},
               {Recomputation::kSelective, "selective", "L 34 s b h"},
               {Recomputation::kFull, "full", "L 2 s b h"}};
  for (const auto& kind : kinds) {
    PlanInputs with = plan;
    with.recomputation = kind.what;
    with.activation_bytes.reset();
    const double batch = ActivationBytes(shape, plan.sequences(), 1, kind.what);
    const double gpu = *GpuActivationBytes(with);
    std::vector<PlanCell>& row = section.rows.emplace_back();
    row.emplace_back(kind.name);
    row.emplace_back(kind.formula);
    AddBytes(row, ActivationBytes(shape, 1, 1, kind.what));
    row.emplace_back(DecimalBytes(batch), batch);
    row.emplace_back(DecimalBytes(gpu), gpu);
  }
  section.notes = {
      absl::StrFormat(
          "A GPU: micro-batches of %u, of them %u at once (1F1B), tensor %u, pipeline %u.",
          plan.micro_batch, MicroBatchesHeld(plan.pipeline, plan.micro_batches()), plan.tensor,
          plan.pipeline),
      "Full recomputation computes 4/3 as much: another forward pass."};
  return section;
}

}  // namespace tug
