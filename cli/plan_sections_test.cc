#include "cli/plan_sections.h"

#include "cli/plan_presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Preset {
  PlanInputs plan;
  LectureFigures lectures;
};

Preset PresetOf(const std::string& name) {
  for (const PlanPreset& preset : PlanPresets()) {
    if (preset.name == name) return {ResolvePlan(preset.options).value(), preset.lectures};
  }
  ADD_FAILURE() << "no preset " << name;
  return {};
}

// Cells of the row whose first one is `name`.
std::vector<std::string> Row(const PlanSection& section, const std::string& name) {
  std::vector<std::string> texts;
  for (const std::vector<PlanCell>& row : section.rows) {
    if (row[0].text != name) continue;
    for (const PlanCell& cell : row) texts.push_back(cell.text);
  }
  return texts;
}

TEST(StatesSection, PrintsTheLecturesGpt3) {
  const Preset gpt3 = PresetOf("gpt3");
  const PlanSection states = StatesSection(gpt3.plan, gpt3.lectures);
  EXPECT_THAT(Row(states, "parameters"),
              ElementsAre("parameters", "2", "350 GB", "350 GB", "325.96 GiB", "350 GB"));
  EXPECT_THAT(Row(states, "gradients"),
              ElementsAre("gradients", "2", "350 GB", "350 GB", "325.96 GiB", "350 GB"));
  for (const char* state : {"master weights", "m", "v"}) {
    EXPECT_THAT(Row(states, state),
                ElementsAre(state, "4", "700 GB", "700 GB", "651.93 GiB", "700 GB"));
  }
}

TEST(StatesSection, PrintsTheLectures10Billion) {
  const Preset preset = PresetOf("10b");
  const PlanSection states = StatesSection(preset.plan, preset.lectures);
  EXPECT_THAT(Row(states, "total"),
              ElementsAre("total", "", "190 GB", "190 GB", "176.95 GiB", "190 GB (~176 GiB)"));
}

TEST(StagesSection, PrintsTheLectures7Point5Billion) {
  const Preset preset = PresetOf("7.5b");
  const PlanSection stages = StagesSection(preset.plan, preset.lectures);
  EXPECT_THAT(Row(stages, "data parallel"),
              ElementsAre("data parallel", "16 Psi", "120 GB", "120 GB", "111.76 GiB", "-", "no",
                          "120 GB"));
  EXPECT_THAT(Row(stages, "ZeRO-1"),
              ElementsAre("ZeRO-1", "4 Psi + 12 Psi / N", "31.4 GB", "31.40625 GB", "29.25 GiB",
                          "-", "fits", "31.4 GB"));
  EXPECT_THAT(Row(stages, "ZeRO-2"),
              ElementsAre("ZeRO-2", "2 Psi + 14 Psi / N", "16.6 GB", "16.640625 GB", "15.50 GiB",
                          "-", "fits", "16.6 GB"));
  EXPECT_THAT(Row(stages, "ZeRO-3"), ElementsAre("ZeRO-3", "16 Psi / N", "1.9 GB", "1.875 GB",
                                                 "1.75 GiB", "-", "fits", "1.9 GB"));
}

TEST(StagesSection, CountsActivationsAndBuffersForWhatFits) {
  Preset preset = PresetOf("10b");
  const auto fits = [&](const std::string& stage) {
    return Row(StagesSection(preset.plan, {}), stage).back();
  };
  EXPECT_EQ(fits("ZeRO-1"), "fits");  // 41.9 GB and 30 GB
  preset.plan.activation_bytes = 40e9;
  EXPECT_EQ(fits("ZeRO-1"), "no");
}

TEST(DeadlineSection, PrintsTheLectures800GpusAnd760) {
  const Preset gpt3 = PresetOf("gpt3");
  const PlanSection deadline = DeadlineSection(gpt3.plan, gpt3.lectures);
  EXPECT_THAT(Row(deadline, "GPUs for the deadline"),
              ElementsAre("GPUs for the deadline", "759.548611", "760", "800"));
}

TEST(DeadlineSection, AsksForTokens) {
  const Preset preset = PresetOf("7.5b");
  EXPECT_THAT(PlanText({DeadlineSection(preset.plan, {})}), HasSubstr("give --tokens"));
}

TEST(StepSection, HasARowForEachStrategyAndNumberOfServers) {
  Preset preset = PresetOf("7.5b");
  preset.plan.servers = {1, 64};
  const PlanSection step = StepSection(preset.plan);
  EXPECT_EQ(step.rows.size(), 2u + 5u);
  EXPECT_EQ(Row(step, "ring all-reduce")[2], "1.969");
  EXPECT_EQ(Row(step, "ZeRO-3")[2], "2.953");
  EXPECT_EQ(Row(step, "parameter server, S = 1")[4], "960 GB");
  EXPECT_EQ(Row(step, "parameter server, S = 64")[4], "15 GB");
}

TEST(PlanText, SaysWhatIsMissingWithoutAShape) {
  const PlanInputs plan = PresetOf("7.5b").plan;
  for (const PlanSection& section :
       {ActivationsSection(plan), TensorSection(plan), PipelineSection(plan)}) {
    EXPECT_THAT(PlanText({section}), HasSubstr("give --layers, --width and --heads"));
  }
}

TEST(TensorSection, LeavesOutWhatDoesNotDivide) {
  PlanInputs plan = PresetOf("gpt3").plan;
  plan.shape->heads = 12;
  EXPECT_EQ(TensorSection(plan).rows.size(), 3u);  // 1, 2, 4
  plan.shape->layers = 6;
  EXPECT_EQ(PipelineSection(plan).rows.size(), 2u);
}

TEST(PlanJson, HasFiguresThatAreNotRounded) {
  const Preset preset = PresetOf("7.5b");
  const nlohmann::ordered_json json =
      PlanJson({StagesSection(preset.plan, preset.lectures), InputsSection(preset.plan)});
  EXPECT_EQ(json["stages"][1]["stage"], "ZeRO-1");
  EXPECT_EQ(json["stages"][1]["bytes"], 31.40625e9);
  EXPECT_EQ(json["inputs"][0]["value"], 64);
  EXPECT_THAT(json.dump(), Not(HasSubstr("GiB")));
}

TEST(DecimalBytes, ReadLikeTheLectures) {
  EXPECT_EQ(DecimalBytes(0), "0 B");
  EXPECT_EQ(DecimalBytes(999), "999 B");
  EXPECT_EQ(DecimalBytes(1536), "1.5 kB");
  EXPECT_EQ(DecimalBytes(497.8e6), "497.8 MB");
  EXPECT_EQ(DecimalBytes(2800e9), "2,800 GB");
  EXPECT_EQ(DecimalBytes(430.3e12), "430.3 TB");
  EXPECT_EQ(ExactBytes(1.875e9), "1.875 GB");
  EXPECT_EQ(BinaryBytes(190e9), "176.95 GiB");
  EXPECT_EQ(CountText(175e9), "175,000,000,000");
  EXPECT_EQ(CountText(12), "12");
  EXPECT_EQ(SecondsText(0.0123), "12.3 ms");
  EXPECT_EQ(SecondsText(12345), "12,345 s");
}

}  // namespace
}  // namespace tug
