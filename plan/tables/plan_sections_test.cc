// SPDX-License-Identifier: Apache-2.0
#include "plan/tables/plan_sections.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PlanInputs Gpt3() {
  PlanInputs plan;
  plan.parameters = 175e9;
  plan.layers = 96;
  plan.width = 12288;
  plan.heads = 96;
  plan.gpus = 1024;
  plan.tokens = 300e9;
  plan.batch_tokens = 3.2e6;
  return plan;
}

PlanInputs SevenAndAHalfBillion() {
  PlanInputs plan;
  plan.parameters = 7.5e9;
  return plan;
}

PlanInputs Resolved(PlanInputs plan) {
  EXPECT_TRUE(ResolvePlan(plan).ok());
  return plan;
}

// Cells by key of the row whose first cell is `name`.
nlohmann::ordered_json RowOf(const PlanSection& section, const nlohmann::ordered_json& name) {
  const nlohmann::ordered_json rows = PlanJson({section})[section.key]["rows"];
  for (const nlohmann::ordered_json& row : rows) {
    if (row.begin().value() == name) return row;
  }
  ADD_FAILURE() << "no row " << name;
  return {};
}

double Number(const PlanSection& section, const nlohmann::ordered_json& name, const char* key) {
  return RowOf(section, name).value(key, std::nan(""));
}

TEST(StagesSection, CountsActivationsAndBuffersForWhatFits) {
  PlanInputs plan = Resolved(SevenAndAHalfBillion());
  plan.buffers_gb = 10;
  const auto fits = [&] { return RowOf(StagesSection(plan, {}), "ZeRO-1")["fits"]; };
  EXPECT_EQ(fits(), true);  // 31.4 GB and 10 GB
  plan.activations_gb = 40;
  EXPECT_EQ(fits(), false);
  EXPECT_EQ(Number(StagesSection(plan, {}), "ZeRO-1", "with_activations_bytes"), 81.40625e9);
  plan.memory_gb = 0;
  EXPECT_TRUE(fits().is_null());
}

TEST(StagesSection, HasOtherFormsOfBytesBesideAFigureOfTheLecturesOnly) {
  const PlanInputs plan = Resolved(SevenAndAHalfBillion());
  EXPECT_THAT(PlanText({StagesSection(plan, {})}), Not(HasSubstr("binary")));
  EXPECT_THAT(PlanText({StagesSection(plan, {{"ZeRO-3", "1.9 GB"}})}),
              AllOf(HasSubstr("binary"), HasSubstr("| 1.875 GB     | 1.75 GiB ")));
}

// Servers divide the whole model, however GPUs divide it.
TEST(ParameterServerSection, DividesTheWholeModelByAllServers) {
  PlanInputs plan = Gpt3();
  plan.tensor = 8;
  plan.pipeline = 16;
  plan.servers = {16};
  plan = Resolved(plan);
  EXPECT_DOUBLE_EQ(Number(ParameterServerSection(plan), 16, "server_bytes"), 12 * 175e9 / 16);
  // 8 workers with 350 GB of gradients each.
  EXPECT_DOUBLE_EQ(Number(StepSection(plan), "parameter server, S=16", "server_received_bytes"),
                   8 * 350e9 / 16);
}

TEST(ActivationsSection, MarksWhatIsRecomputed) {
  PlanInputs plan = Resolved(Gpt3());
  plan.recompute = "full";
  const PlanSection section = ActivationsSection(plan);
  EXPECT_EQ(RowOf(section, "full")["planned"], true);
  EXPECT_EQ(RowOf(section, "none")["planned"], false);
  EXPECT_EQ(Number(section, "full", "gpu_bytes"), 96 * 2.0 * 2048 * 12288);
}

TEST(StepSection, JoinsStrategiesThatCostTheSame) {
  const PlanInputs plan = Resolved(SevenAndAHalfBillion());
  EXPECT_THAT(PlanText({StepSection(plan)}), HasSubstr("| ring, ZeRO-1, ZeRO-2 "));
  PlanInputs more = plan;
  more.batch_tokens *= 4;
  EXPECT_THAT(PlanText({StepSection(more)}),
              AllOf(HasSubstr("| ring, ZeRO-1  "), HasSubstr("(m+1) (N-1)/N Psi"),
                    HasSubstr("3 m (N-1)/N Psi")));
  EXPECT_DOUBLE_EQ(Number(StepSection(more), "ZeRO-3", "times_psi"), 12 * 63.0 / 64);
}

// 1562.5 sequences on 1024 GPUs: some compute two, and all others wait for them.
TEST(StepSection, ComputesAsLongAsTheBusiestWorker) {
  const PlanInputs plan = Resolved(Gpt3());
  const PlanSection section = StepSection(plan);
  const double compute = 6 * 175e9 * 2 * 2048 / 160e12;
  EXPECT_DOUBLE_EQ(Number(section, "ring", "sequential_seconds"),
                   compute + Number(section, "ring", "exchange_seconds"));
}

TEST(StepSection, HasNoTimesWithoutAMachine) {
  PlanInputs plan = Resolved(SevenAndAHalfBillion());
  plan.tflops = 0;
  EXPECT_THAT(PlanText({StepSection(plan)}), HasSubstr("give --tflops and --link"));
  EXPECT_FALSE(RowOf(StepSection(plan), "ring").contains("exchange_seconds"));
  EXPECT_THAT(PlanText({DeadlineSection(plan, {})}), HasSubstr("give --tflops and --link"));
}

TEST(DeadlineSection, HasTheLecturesDaysAndThoseOfTheStep) {
  PlanInputs plan = Gpt3();
  plan.tensor = 8;
  plan.pipeline = 4;
  plan = Resolved(plan);
  const PlanSection section = DeadlineSection(plan, {{"GPUs for the deadline", "800"}});
  const nlohmann::ordered_json gpus = RowOf(section, "GPUs for the deadline");
  EXPECT_NEAR(gpus["unrounded"].get<double>(), 759.548611, 1e-6);
  EXPECT_EQ(gpus["rounded"], 760);
  EXPECT_EQ(gpus["lectures"], "800");
  EXPECT_EQ(Number(section, "  as a multiple of t p = 32", "rounded"), 768);
  EXPECT_NEAR(Number(section, "days by the step above (ring)", "unrounded"),
              Number(StepSection(plan), "ring", "sequential_seconds") * 300e9 / 3.2e6 / 86400,
              1e-9);
  EXPECT_THAT(PlanText({DeadlineSection(Resolved(SevenAndAHalfBillion()), {})}),
              HasSubstr("give --tokens"));
}

// All-reduces of a stage's layers in each of m + p - 1 turns.
TEST(TensorSection, FillsThePipelineWithAllReduces) {
  PlanInputs plan = Gpt3();
  plan.tensor = 8;
  const auto seconds = [&](uint32_t pipeline) {
    plan.pipeline = pipeline;
    plan.gpus = 8 * pipeline;  // one worker: m = 1563
    return Number(TensorSection(Resolved(plan)), 8, "seconds");
  };
  EXPECT_NEAR(seconds(4) / seconds(1), (1563 + 3) / 4.0 / 1563, 1e-12);
}

TEST(TensorSection, UsesTheOtherDegreeAndMarksTheChosen) {
  PlanInputs plan = Gpt3();
  plan.tensor = 8;
  plan.pipeline = 4;
  plan = Resolved(plan);
  const PlanSection tensor = TensorSection(plan), pipeline = PipelineSection(plan);
  EXPECT_EQ(RowOf(tensor, 8)["planned"], true);
  EXPECT_EQ(RowOf(tensor, 2)["planned"], false);
  EXPECT_EQ(RowOf(pipeline, 4)["planned"], true);
  EXPECT_EQ(Number(tensor, 8, "state_bytes"), 16 * 175e9 / 32);
  EXPECT_EQ(Number(pipeline, 4, "state_bytes"), 16 * 175e9 / 32);
  EXPECT_EQ(Number(pipeline, 2, "workers"), 64);
}

TEST(TensorSection, MarksDegreesThatFit) {
  PlanInputs plan = Resolved(Gpt3());
  const PlanSection tensor = TensorSection(plan);
  EXPECT_EQ(RowOf(tensor, 1)["fits"], false);
  EXPECT_EQ(RowOf(tensor, 16)["fits"], false) << "175 GB of states";
  plan.pipeline = 16;
  plan.recompute = "full";
  EXPECT_EQ(RowOf(TensorSection(plan), 8)["fits"], true) << "21.9 GB of states";
  plan.memory_gb = 0;
  EXPECT_TRUE(RowOf(TensorSection(plan), 8)["fits"].is_null());
  EXPECT_THAT(PlanText({TensorSection(plan)}), Not(HasSubstr("fits")));
}

TEST(StagesSection, ProposesTheNearestPlanIfNoneFits) {
  PlanInputs plan = Resolved(Gpt3());
  EXPECT_THAT(
      PlanText({StagesSection(plan, {})}),
      AllOf(HasSubstr("No stage fits. Nearest plan that fits: --"), HasSubstr(" per GPU.")));
  plan.memory_gb = 0.5;
  EXPECT_THAT(PlanText({StagesSection(plan, {})}), HasSubstr("add GPUs"));
  EXPECT_THAT(PlanText({StagesSection(Resolved(SevenAndAHalfBillion()), {})}),
              Not(HasSubstr("No stage fits")));
}

TEST(TensorSection, LeavesOutWhatDoesNotDivide) {
  PlanInputs plan = Resolved(Gpt3());
  plan.shape->heads = 12;
  EXPECT_EQ(TensorSection(plan).rows.size(), 3u);  // 1, 2, 4
  plan.shape->layers = 6;
  EXPECT_EQ(PipelineSection(plan).rows.size(), 2u);
}

TEST(PlanText, SaysWhatIsMissingWithoutAShape) {
  const PlanInputs plan = Resolved(SevenAndAHalfBillion());
  for (const PlanSection& section :
       {ActivationsSection(plan), TensorSection(plan), PipelineSection(plan)}) {
    EXPECT_THAT(PlanText({section}), HasSubstr("give --layers, --width and --heads"));
  }
}

TEST(PlanJson, HasInputsAndFiguresThatAreNotRounded) {
  const PlanInputs plan = Resolved(SevenAndAHalfBillion());
  const nlohmann::ordered_json json =
      PlanJson({InputsSection(plan, "x"), StagesSection(plan, {{"ZeRO-3", "1.9 GB"}})});
  EXPECT_EQ(json["inputs"]["title"], "Plan of x");
  EXPECT_EQ(RowOf(InputsSection(plan, "x"), "gpus")["value"], 64);
  EXPECT_TRUE(RowOf(InputsSection(plan, "x"), "tokens")["value"].is_null());
  const nlohmann::ordered_json& zero1 = json["stages"]["rows"][1];
  EXPECT_EQ(zero1["stage"], "ZeRO-1");
  EXPECT_EQ(zero1["bytes"], 31.40625e9);
  EXPECT_EQ(zero1["fits"], true);
  EXPECT_EQ(zero1["with_activations_bytes"], nullptr);
  EXPECT_EQ(zero1["lectures"], nullptr);
  EXPECT_THAT(json.dump(), Not(HasSubstr("GiB")));
}

TEST(DecimalBytes, ReadLikeTheLectures) {
  EXPECT_EQ(DecimalBytes(0), "0 B");
  EXPECT_EQ(DecimalBytes(999), "999 B");
  EXPECT_EQ(DecimalBytes(1536), "1.5 kB");
  EXPECT_EQ(DecimalBytes(497.8e6), "497.8 MB");
  EXPECT_EQ(DecimalBytes(2800e9), "2,800 GB");
  EXPECT_EQ(DecimalBytes(430.3e12), "430.3 TB");
  EXPECT_EQ(BinaryBytes(190e9), "176.95 GiB");
  EXPECT_EQ(CountText(175e9), "175,000,000,000");
  EXPECT_EQ(CountText(12), "12");
  EXPECT_EQ(SecondsText(0.0123), "12.3 ms");
  EXPECT_EQ(SecondsText(12345), "12,345 s");
}

TEST(ExactBytes, HaveEachByte) {
  EXPECT_EQ(ExactBytes(1.875e9), "1.875 GB");
  EXPECT_EQ(ExactBytes(350e9), "350 GB");
  EXPECT_EQ(ExactBytes(31'406'250'001), "31.406250001 GB");
  EXPECT_EQ(ExactBytes(9'999'000'000'001), "9,999.000000001 GB");
  EXPECT_EQ(ExactBytes(7), "7 B");
}

// All figures of a column have one unit, unless they differ too much.
TEST(PlanText, WritesAColumnInOneUnit) {
  PlanSection section{.key = "k", .title = "t"};
  section.columns = {{"what", "what"}, {"bytes", "bytes", PlanForm::kBytes}};
  section.rows = {{"a", 2e9}, {"b", 500e6}, {"c", 0}};
  EXPECT_THAT(PlanText({section}),
              AllOf(HasSubstr("2,000 MB"), HasSubstr("500 MB"), HasSubstr("0 MB")));
  section.rows.push_back({"d", 1});
  EXPECT_THAT(PlanText({section}), AllOf(HasSubstr("| 2 GB "), HasSubstr("| 1 B ")));
}

}  // namespace
}  // namespace tug
