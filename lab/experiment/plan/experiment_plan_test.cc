// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/plan/experiment_plan.h"

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/experiment/plan/experiment_help.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Ten lines; `more` begins on the eleventh.
constexpr char kFile[] = R"(name: "sizes"
question: "Which size is best?"
job {
  compute: REPLAY
  replay { profile: "vgg16" }
  train { steps: 20 }
  optimizer { clip: OFF }
}
axes { field: "cluster.workers" values: ["1", "2", "4"] }
axes { name: "order" field: "comm.scheduler" values: ["FIFO", "PRIORITY"] }
)";

absl::StatusOr<ExperimentPlan> Plan(const std::string& text) {
  return PlanExperiment({.text = text, .name = "a.textproto"});
}

std::string ErrorOf(const std::string& text) {
  const auto plan = Plan(text);
  return plan.ok() ? "" : std::string(plan.status().message());
}

std::vector<std::string> NamesOf(const ExperimentPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedCase& one : plan.cases) names.push_back(one.name);
  return names;
}

TEST(ExperimentPlan, ShowsAllNamesOfAValueAndTheUnitOfAnAxis) {
  const auto plan =
      Plan(absl::StrCat(kFile, "axes { field: \"comm.credit_bytes\" values: [\"33554432\"] }"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->axes[1].labels, ElementsAre("FIFO", "PRIORITY"));
  EXPECT_THAT(plan->axes[1].titles, ElementsAre("FIFO (WFBP)", "PRIORITY"));
  EXPECT_EQ(AxisHeading(plan->axes[0]), "workers");
  EXPECT_EQ(AxisHeading(plan->axes[2]), "credit (bytes)");
}

TEST(ExperimentPlan, HasACaseForEveryCombination) {
  const auto plan = Plan(kFile);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NamesOf(*plan), ElementsAre("workers=1, order=FIFO", "workers=1, order=PRIORITY",
                                          "workers=2, order=FIFO", "workers=2, order=PRIORITY",
                                          "workers=4, order=FIFO", "workers=4, order=PRIORITY"));
  EXPECT_EQ(plan->cases[3].config.cluster().workers(), 2u);
  EXPECT_EQ(plan->cases[3].config.comm().scheduler(), CommConfig::PRIORITY);
  EXPECT_EQ(plan->cases[3].folder, "004-2-PRIORITY");
  EXPECT_TRUE(plan->cases[3].place.has_local());
  EXPECT_EQ(plan->repeats, 3u);
  EXPECT_EQ(plan->runs(), 18u);
  ASSERT_EQ(plan->figures.size(), 1u);
  EXPECT_EQ(plan->figures[0].over, 0u);
  EXPECT_EQ(plan->figures[0].by, 1u);
}

TEST(ExperimentPlan, LeavesOutWhatIsExcludedAndWhatOnlyDoesNotName) {
  auto plan = Plan(absl::StrCat(kFile, "exclude { where: \"workers=4\" where: \"order=FIFO\" }"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NamesOf(*plan), Not(::testing::Contains("workers=4, order=FIFO")));
  EXPECT_EQ(plan->cases.size(), 5u);
  plan = Plan(absl::StrCat(kFile, "only { where: \"workers=4\" } only { where: \"workers=1\" }\n",
                           "exclude { where: \"order=PRIORITY\" }"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NamesOf(*plan), ElementsAre("workers=1, order=FIFO", "workers=4, order=FIFO"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kFile, "exclude { where: \"order=FIFO\" }\n",
                                   "exclude { where: \"order=PRIORITY\" }")),
              HasSubstr("no case is left"));
}

TEST(ExperimentPlan, HasOneCaseWithoutAxes) {
  const auto plan = Plan(
      "name: \"a\" question: \"?\" job { compute: REPLAY "
      "replay { profile: \"vgg16\" } }");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NamesOf(*plan), ElementsAre("the job"));
  EXPECT_TRUE(plan->figures.empty());
}

TEST(ExperimentPlan, GivesCasesOfARepeatTheSameSeed) {
  const auto plan = Plan(absl::StrCat(kFile, "first_seed: 40 repeats: 2"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlannedCase& one : plan->cases) {
    EXPECT_EQ(OverridesOf(*plan, one, 0).back(), "seed=40");
    EXPECT_EQ(OverridesOf(*plan, one, 1).back(), "seed=41");
  }
}

TEST(ExperimentPlan, ComparesEachCaseWithTheBaselineOfItsOtherValues) {
  const auto plan = Plan(absl::StrCat(kFile, "baseline { where: \"order=FIFO\" }\n",
                                      "exclude { where: \"workers=4\" where: \"order=FIFO\" }"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->BaselineOf(0), std::nullopt) << "it is one";
  EXPECT_EQ(plan->BaselineOf(1), 0u);
  EXPECT_EQ(plan->BaselineOf(3), 2u);
  EXPECT_EQ(plan->BaselineOf(4), std::nullopt) << "it is not run";
}

TEST(ExperimentPlan, TakesSettingsOfTheCommandLineBeforeAxes) {
  const auto plan =
      PlanExperiment({.text = kFile,
                      .name = "a",
                      .settings = {"train.steps=7", "cluster.workers=3", "place.testbed.hosts=5"},
                      .repeats = 9});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->repeats, 9u);
  EXPECT_EQ(plan->cases[0].config.train().steps(), 7u);
  EXPECT_EQ(plan->cases[0].config.cluster().workers(), 1u);
  EXPECT_EQ(plan->cases[0].place.testbed().hosts(), 5u);
  EXPECT_EQ(plan->cases[0].place.testbed().link(), "200mbit");
}

TEST(ExperimentPlan, TakesTheLinkOfATestbedAsAnAxis) {
  const auto plan = Plan(absl::StrCat(
      kFile, "axes { field: \"place.testbed.link\" values: [\"none\", \"100mbit\"] }"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->cases.size(), 12u);
  EXPECT_EQ(plan->cases[1].place.testbed().link(), "100mbit");
  EXPECT_THAT(
      ErrorOf(absl::StrCat(kFile, "axes { field: \"place.testbed.link\" values: [\"fast\"] }")),
      AllOf(HasSubstr("place.testbed.link"), HasSubstr("fast")));
}

TEST(ExperimentPlan, TakesALinkWithoutHostsForWhatEachProcessSends) {
  const std::string axis = "axes { field: \"place.testbed.link\" values: [\"none\", \"100mbit\"] }";
  const auto plan = Plan(absl::StrCat(kFile, "place { testbed { loopback: true } }\n", axis));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->cases[0].config.comm().impair().rate_mbit(), 0);
  EXPECT_TRUE(plan->cases[0].config.comm().shared_memory());
  const PlannedCase& slow = plan->cases[1];
  EXPECT_TRUE(slow.place.has_local());
  EXPECT_EQ(slow.config.comm().impair().rate_mbit(), 100);
  EXPECT_FALSE(slow.config.comm().shared_memory());
  EXPECT_EQ(slow.config.cluster().lanes_per_server(), 1u);
  const auto hosts = PlanExperiment({.text = absl::StrCat(kFile, axis),
                                     .name = "a",
                                     .settings = {"place.testbed.loopback=false"}});
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ(hosts->cases[1].config.comm().impair().rate_mbit(), 0) << "the links have it";
  EXPECT_EQ(hosts->cases[1].place.testbed().link(), "100mbit");
}

TEST(ExperimentPlan, RefusesWhatALinkWithoutHostsSetsItself) {
  for (const char* setting :
       {"cluster.lanes_per_server=2", "comm.shared_memory=true", "comm.impair.rate_mbit=5"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(kFile, "place { testbed { loopback: true } }\nset: \"",
                                     setting, "\"")),
                AllOf(HasSubstr(setting), HasSubstr("place.testbed.loopback")));
  }
}

TEST(ExperimentPlan, TakesTextsOfAnAxis) {
  const auto plan = PlanExperiment({.text = R"(
name: "texts"
question: "?"
job { data { tokenizer: CHARACTER } }
made_up_text_bytes: 1000
axes { field: "data.path" values: ["a.txt", "b.txt"] }
)",
                                    .name = "a",
                                    .made_up_text_path = "m.txt"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->cases[0].config.data().path(), "a.txt");
  EXPECT_EQ(plan->cases[1].config.data().path(), "b.txt");
}

TEST(ExperimentPlan, MakesNoTextUpWhereOneIsGiven) {
  const std::string text = absl::StrCat(R"(
name: "text"
question: "?"
job { data { tokenizer: CHARACTER } }
made_up_text_bytes: 1000
)");
  const auto made_up = PlanExperiment({.text = text, .name = "a", .made_up_text_path = "m.txt"});
  ASSERT_TRUE(made_up.ok()) << made_up.status();
  EXPECT_EQ(made_up->cases[0].config.data().path(), "m.txt");
  const auto given = PlanExperiment({.text = text,
                                     .name = "a",
                                     .made_up_text_path = "m.txt",
                                     .settings = {"data.path=mine.txt"}});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->cases[0].config.data().path(), "mine.txt");
  EXPECT_EQ(given->made_up_text_path, "");
}

TEST(ExperimentPlan, DrawsAnAxisInPanelsWithScalesOfTheirOwn) {
  const auto plan = Plan(absl::StrCat(
      kFile, "figures { over: \"order\" panels: \"workers\" part: \"exposed_time\" }"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->figures[0].panels, 0u);
  EXPECT_EQ(plan->figures[0].by, std::nullopt);
  EXPECT_STREQ(plan->figures[0].part->name, "exposed_time");
  EXPECT_THAT(ErrorOf(absl::StrCat(kFile, "figures { over: \"order\" panels: \"order\" }")),
              HasSubstr("name an axis twice"));
}

TEST(ExperimentPlan, TakesVerdictsBesideABaseline) {
  const std::string verdict = "verdicts { measure: \"step_time\" yes: \"pays\" no: \"not\" ";
  const std::string baseline = absl::StrCat(kFile, "baseline { where: \"order=FIFO\" }\n");
  const auto plan = Plan(absl::StrCat(baseline, verdict, "margin: 0.05 best_over: \"workers\" }"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->verdicts.size(), 1u);
  EXPECT_EQ(plan->verdicts[0].margin, 0.05);
  EXPECT_EQ(plan->verdicts[0].best_over, 0u);
  EXPECT_THAT(plan->BaselineAxes(), ElementsAre(1u));
  EXPECT_THAT(ErrorOf(absl::StrCat(kFile, verdict, "}")), HasSubstr("baseline"));
  EXPECT_THAT(ErrorOf(absl::StrCat(baseline, verdict, "margin: 1 }")), HasSubstr("margin"));
  EXPECT_THAT(ErrorOf(absl::StrCat(baseline, verdict, "best_over: \"order\" }")),
              HasSubstr("best_over"));
  EXPECT_THAT(ErrorOf(absl::StrCat(baseline, "verdicts { measure: \"step_tim\" }")),
              HasSubstr("did you mean step_time?"));
  EXPECT_THAT(ErrorOf(absl::StrCat(baseline, "verdicts { measure: \"step_time\" }")),
              HasSubstr("`yes`"));
}

TEST(ExperimentPlan, IdentityDoesNotDependOnReportSettings) {
  const auto plan = Plan(kFile);
  const auto shown = Plan(absl::StrCat(kFile, "repeats: 7 measures: \"wall_time\"\n",
                                       "baseline { where: \"order=FIFO\" }"));
  const auto other = Plan(absl::StrCat(kFile, "warm_up_steps: 2"));
  ASSERT_TRUE(plan.ok() && shown.ok() && other.ok());
  EXPECT_EQ(plan->Identity(), shown->Identity());
  EXPECT_NE(plan->Identity(), other->Identity());
}

TEST(ExperimentPlan, LeavesMoreOutWhereAConditionSaysSo) {
  constexpr char kMore[] = R"(
warm_up_steps: 2
when { where: "order=PRIORITY" set: "train.steps=50" warm_up_steps: 40 }
when { where: "workers=4" where: "order=PRIORITY" warm_up_steps: 30 }
)";
  const auto plan = Plan(absl::StrCat(kFile, kMore));
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<uint64_t> steps;
  for (const PlannedCase& one : plan->cases) steps.push_back(one.warm_up_steps);
  EXPECT_THAT(steps, ElementsAre(2, 40, 2, 40, 2, 30));
  const auto other = Plan(absl::StrReplaceAll(absl::StrCat(kFile, kMore), {{"30", "40"}}));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(plan->Identity(), other->Identity());
  EXPECT_THAT(ErrorOf(absl::StrCat(kFile, "when { where: \"order=FIFO\" warm_up_steps: 20 }")),
              AllOf(HasSubstr("case workers=1, order=FIFO"), HasSubstr("warm_up_steps = 20")));
}

TEST(ExperimentPlan, NamesTheLineOfAMistakeAndTheRemedy) {
  const auto with = [](const std::string& more) { return ErrorOf(absl::StrCat(kFile, more)); };
  EXPECT_THAT(with("repeat: 3"),
              AllOf(StartsWith("a.textproto:11:"), HasSubstr("did you mean repeats?"),
                    HasSubstr("tug help experiment")));
  EXPECT_THAT(with("\nset: \"train.stepps=3\""),
              AllOf(StartsWith("a.textproto:12: "), HasSubstr("did you mean steps?")));
  EXPECT_THAT(with("set: \"train.steps=many\""), HasSubstr("whole number"));
  EXPECT_THAT(with("set: \"train.steps\""), HasSubstr("path.to.field=value"));
  EXPECT_THAT(with("set: \"seed=3\""), HasSubstr("first_seed"));
  EXPECT_THAT(with("axes { field: \"sync.polcy\" values: \"ASP\" }"),
              AllOf(StartsWith("a.textproto:11: "), HasSubstr("axis polcy, value ASP"),
                    HasSubstr("did you mean policy?")));
  EXPECT_THAT(with("axes { name: \"order\" field: \"seed\" values: \"1\" }"),
              HasSubstr("axis order is defined twice"));
  EXPECT_THAT(with("axes { field: \"train.steps\" }"), HasSubstr("has no values"));
  EXPECT_THAT(with("axes { name: \"a\" value { set: \"train.steps=3\" } }"), HasSubstr("label"));
  EXPECT_THAT(with("exclude { where: \"worker=1\" }"), HasSubstr("did you mean workers?"));
  EXPECT_THAT(with("exclude { where: \"order=FIFA\" }"), HasSubstr("did you mean FIFO?"));
  EXPECT_THAT(with("exclude { where: \"order\" }"), HasSubstr("axis=label"));
  EXPECT_THAT(with("exclude { }"), HasSubstr("axis=label"));
  EXPECT_THAT(with("measures: \"step_times\""), HasSubstr("did you mean step_time?"));
  EXPECT_THAT(with("measures: \"time_to_loss\""), HasSubstr("target_loss"));
  for (const char* loss : {"nan", "inf", "-inf"}) {
    EXPECT_THAT(with(absl::StrCat("\nmeasures: \"time_to_loss\"\ntarget_loss: ", loss)),
                AllOf(StartsWith("a.textproto:13: "),
                      HasSubstr(absl::StrCat("target_loss = ", loss, " is not finite"))));
  }
  EXPECT_THAT(with("figures { over: \"order\" by: \"order\" }"), HasSubstr("an axis twice"));
  EXPECT_THAT(with("figures { measure: \"speed\" }"), HasSubstr("unknown measure speed"));
  EXPECT_THAT(with("repeats: 0"), HasSubstr("1..1000"));
  EXPECT_THAT(with("warm_up_steps: 20"), HasSubstr("train.steps = 20"));
  EXPECT_THAT(with("sections: TIMELINES"), HasSubstr("trace.steps"));
  EXPECT_THAT(with("place { hosts {} }"), HasSubstr("place.hosts.file"));
  EXPECT_THAT(ErrorOf("name: \"a b\" question: \"?\""), HasSubstr("name"));
  EXPECT_THAT(ErrorOf("name: \"a\""), HasSubstr("question"));
  EXPECT_THAT(ErrorOf("name: \"a\" question: \"?\""), HasSubstr("job_file"));
}

// Each value is valid by itself.
TEST(ExperimentPlan, FindsCombinationsThatAreNoJob) {
  EXPECT_THAT(ErrorOf(absl::StrCat(
                  kFile,
                  "axes { name: \"policy\" value { label: \"b\" set: \"sync.policy=BACKUP\" "
                  "set: \"sync.backups=1\" } }")),
              AllOf(HasSubstr("case workers=1, order=FIFO, policy=b"), HasSubstr("backups"),
                    HasSubstr("exclude")));
}

TEST(ExperimentPlan, BoundsItsSize) {
  std::string file = kFile;
  for (int axis = 0; axis < 4; ++axis) {
    absl::StrAppend(&file, "axes { name: \"a", axis, "\" ");
    for (int i = 0; i < 30; ++i) {
      absl::StrAppend(&file, "value { label: \"", i, "\" set: \"train.steps=", i + 1, "\" } ");
    }
    file += "}\n";
  }
  EXPECT_THAT(ErrorOf(file), HasSubstr("too many"));
  file = kFile;
  for (int axis = 0; axis < 7; ++axis) {
    absl::StrAppend(&file, "axes { name: \"a", axis, "\" value { label: \"x\" } }\n");
  }
  EXPECT_THAT(ErrorOf(file), HasSubstr("at most 8"));
}

// Any text is refused in one line, or every case is a job.
TEST(ExperimentPlanFuzz, TakesOrRefusesAnyText) {
  const std::string good = absl::StrCat(
      kFile, "exclude { where: \"workers=4\" }\nbaseline { where: \"order=FIFO\" }\nrepeats: 2\n",
      "figures { measure: \"step_time\" over: \"order\" by: \"workers\" }\nplace { local {} }\n");
  const std::string letters = "{}[]:\",=.#\n 0159-axvalus";
  const uint64_t seed = 17;
  std::mt19937_64 random(seed);
  int taken = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    std::string text = good;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = letters[random() % letters.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
      }
      if (text.empty()) break;
    }
    const auto plan = Plan(text);
    if (!plan.ok()) {
      EXPECT_THAT(std::string(plan.status().message()), Not(HasSubstr("\n"))) << "seed " << seed;
      EXPECT_FALSE(plan.status().message().empty());
      continue;
    }
    ++taken;
    std::set<std::string> names, folders;
    for (const PlannedCase& one : plan->cases) {
      EXPECT_TRUE(names.insert(one.name).second) << text;
      EXPECT_TRUE(folders.insert(one.folder).second) << text;
      EXPECT_GT(one.config.train().steps(), 0u);
    }
  }
  EXPECT_GT(taken, 20) << "seed " << seed;
}

TEST(ExperimentHelp, HasEveryFieldAndMeasure) {
  const std::string help = ExperimentHelp();
  for (int i = 0; i < Experiment::descriptor()->field_count(); ++i) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat(" ", Experiment::descriptor()->field(i)->name())));
  }
  for (const std::string& name : MeasureNames()) EXPECT_THAT(help, HasSubstr(name));
}

}  // namespace
}  // namespace tug
