#include "cli/built_in_experiments.h"

#include "experiment/experiment_plan.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

// They need no file, so that they run anywhere.
TEST(BuiltInExperiments, AreExperimentsOfTheirName) {
  ASSERT_FALSE(BuiltInExperimentNames().empty());
  for (const std::string& name : BuiltInExperimentNames()) {
    const auto text = BuiltInExperiment(name);
    ASSERT_TRUE(text.has_value()) << name;
    const auto plan =
        PlanExperiment({.text = *text, .name = name, .made_up_text_path = "text.txt"});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->file.name(), name);
    EXPECT_FALSE(plan->file.has_job_file()) << name;
    EXPECT_GT(plan->cases.size(), 1u) << name;
  }
  EXPECT_FALSE(BuiltInExperiment("nothing").has_value());
}

}  // namespace
}  // namespace tug
