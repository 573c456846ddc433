// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/experiment_runner.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/files/file.h"
#include "base/files/file_lock.h"
#include "base/files/replace_file.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "coordinator/observe/run_folder.h"
#include "lab/experiment/charts/report_page.h"
#include "lab/experiment/experiment_report.h"
#include "lab/experiment/plan/case_choice.h"
#include "lab/experiment/plan/experiment_plan.h"
#include "lab/experiment/results/experiment_results.h"
#include "lab/experiment/results/scheduled_step.h"
#include "lab/experiment/results/timeline.h"
#include "lab/experiment/run/experiment_job.h"
#include "lab/experiment/run/experiment_place.h"
#include "lab/experiment/run/experiment_source.h"
#include "lab/experiment/training_text.h"
#include "launch/own_bundle.h"
#include "nlohmann/json.hpp"
#include "process/log_format.h"
#include "process/machine_text.h"
#include "process/version.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kIdentityLimitBytes = uint64_t{64} << 20;
constexpr char kIdentityFile[] = "experiment.json";
constexpr size_t kShownMeasures = 3;  // in the output line of a run
constexpr size_t kBuildDigits = 12;
constexpr absl::Duration kReportInterval = absl::Seconds(10);

class Runner {
 public:
  Runner(const ExperimentFileArguments& a, ExperimentSource source)
      : a_(a), source_(std::move(source)) {}

  absl::Status Run();

 private:
  absl::Status Plan();
  std::string PlanText() const;
  void PrintCommands() const;
  // Creates and locks the output folder, checks that it belongs to this experiment, and reads its
  // rows.
  absl::Status TakeFolder();
  absl::Status CheckIdentity() const;
  absl::Status WriteSources() const;
  absl::Status TakeRows();
  // Reduces the plan, and so the report, to the chosen cases and those that have rows.
  void KeepCasesToReport();
  void ReadCourses();
  absl::Status RunAll();
  absl::Status RunOne(size_t number, uint32_t repeat);
  absl::Status Measure(const PlacedJob& job, uint64_t warm_up_steps, ExperimentRow& row);
  void ReadCourse(size_t number, const std::string& folder);
  void PrintRow(const ExperimentRow& row) const;
  std::string TimeLeft() const;
  absl::Status Write() const;
  absl::Status End() const;

  PlacedJob JobOf(const PlannedCase& one, uint32_t repeat, const std::string& out) const;
  // Shell command that runs a case again.
  std::string CommandFor(const PlannedCase& one, const PlacedJob& job) const;
  // Cases in the order in which a repeat runs them.
  std::vector<size_t> Order() const;
  std::string FolderOf(const PlannedCase& one, uint32_t repeat) const {
    return absl::StrCat("runs/", one.folder, "-r", repeat + 1);
  }
  std::string RowsPath() const { return absl::StrCat(out_, "/", kRowsFile); }

  const ExperimentFileArguments& a_;
  ExperimentSource source_;
  ExperimentResults results_;
  std::string out_;        // absolute
  std::string shown_out_;  // as shown in commands
  FileDescriptor lock_;
  std::unique_ptr<ExperimentPlaces> places_;
  std::vector<bool> chosen_;  // by case of the plan
  RunOrigin origin_;          // except start and command
  uint64_t rows_bytes_ = 0;
  size_t to_do_ = 0, done_ = 0;  // runs of this call
  const RealTime time_;
  absl::Duration spent_;
};

absl::Status Runner::Plan() {
  ASSIGN_OR_RETURN(const std::string name, [&]() -> absl::StatusOr<std::string> {
    if (!a_.out.empty()) return a_.out;
    // The default folder needs the name, so the first plan is made without a folder. It finds all
    // mistakes.
    ASSIGN_OR_RETURN(const ExperimentPlan plan, PlanExperiment(source_));
    return absl::StrCat("runs/", plan.file.name());
  }());
  shown_out_ = name;
  out_ = AbsolutePath(name);
  source_.made_up_text_path = out_ + "/text.txt";
  ASSIGN_OR_RETURN(results_.plan, PlanExperiment(source_));
  results_.command = a_.command;
  ASSIGN_OR_RETURN(chosen_, ChooseCases(results_.plan, a_.only_case));
  return absl::OkStatus();
}

// Empty: no link.
std::string LinkOf(const PlannedCase& one) {
  return TestbedHostsOf(one.place, one.config) == 0 ? "" : one.place.testbed().link();
}

std::vector<size_t> Runner::Order() const {
  const std::vector<PlannedCase>& cases = results_.plan.cases;
  std::vector<std::string> links;  // in the order of their first case
  for (const PlannedCase& one : cases) {
    if (std::find(links.begin(), links.end(), LinkOf(one)) == links.end()) {
      links.push_back(LinkOf(one));
    }
  }
  std::vector<size_t> order;
  for (const std::string& link : links) {
    for (size_t number = 0; number < cases.size(); ++number) {
      if (LinkOf(cases[number]) == link) order.push_back(number);
    }
  }
  return order;
}

// File names in a place are relative to the experiment file.
Place Resolved(Place place, const std::string& experiment_file) {
  if (!place.has_hosts()) return place;
  HostsPlace& hosts = *place.mutable_hosts();
  std::error_code error;
  hosts.set_file(
      fs::absolute(fs::path(experiment_file).parent_path() / hosts.file(), error).string());
  return place;
}

PlacedJob Runner::JobOf(const PlannedCase& one, uint32_t repeat, const std::string& out) const {
  return {.job_file = out + "/job.textproto",
          .overrides = OverridesOf(results_.plan, one, repeat),
          .out = out,
          .config = one.config,
          .place = Resolved(one.place, a_.file)};
}

std::string Runner::CommandFor(const PlannedCase& one, const PlacedJob& job) const {
  std::vector<std::string> words = {"sudo", "tug", "experiment", a_.file};
  for (const std::string& setting : a_.settings) words.insert(words.end(), {"--set", setting});
  words.insert(words.end(), {"--case", one.name, "--out", shown_out_ + "-again"});
  return CommandOf(job, words);
}

std::string Runner::PlanText() const {
  const ExperimentPlan& plan = results_.plan;
  const auto chosen = std::count(chosen_.begin(), chosen_.end(), true);
  return absl::StrCat(plan.file.question(), "\n",
                      RunsText(static_cast<uint64_t>(chosen), plan.repeats), ": ",
                      chosen * plan.repeats, " runs, in ", shown_out_, "\n");
}

void Runner::PrintCommands() const {
  std::printf("%s", PlanText().c_str());
  for (size_t i = 0; i < results_.plan.cases.size(); ++i) {
    if (!chosen_[i]) continue;
    const PlannedCase& one = results_.plan.cases[i];
    const std::string command = CommandFor(one, JobOf(one, 0, shown_out_));
    std::printf("%s\n    %s\n", one.name.c_str(), command.c_str());
  }
}

absl::Status Runner::Run() {
  RETURN_IF_ERROR(Plan());
  if (a_.dry_run) {
    PrintCommands();
    return absl::OkStatus();
  }
  WriteStandardError(PlanText());
  uint32_t hosts = 0;
  for (const PlannedCase& one : results_.plan.cases) {
    hosts = std::max(hosts, TestbedHostsOf(one.place, one.config));
  }
  origin_ = {.version = VersionText(), .commit = CheckoutCommit(), .machine = MachineText()};
  ASSIGN_OR_RETURN(const std::string hash, HashOfFiles({{"bin/tug", "/proc/self/exe"}}));
  origin_.build = hash.substr(0, kBuildDigits);
  RETURN_IF_ERROR(TakeFolder());
  places_ = std::make_unique<ExperimentPlaces>(hosts);
  RETURN_IF_ERROR(RunAll());
  RETURN_IF_ERROR(Write());
  std::printf("\n%s\n%s/report.html\n", ExperimentReportMarkdown(results_, {}).c_str(),
              shown_out_.c_str());
  return End();
}

absl::Status Runner::TakeFolder() {
  std::error_code error;
  const std::string identity = absl::StrCat(out_, "/", kIdentityFile);
  if (fs::exists(identity, error)) {
    // Without rows, no results depend on it.
    ASSIGN_OR_RETURN(const ExperimentRows there, ReadRows(RowsPath()));
    if (!there.rows.empty()) RETURN_IF_ERROR(CheckIdentity());
  } else if (fs::exists(out_, error) &&
             !(fs::is_directory(out_, error) && fs::is_empty(out_, error))) {
    return absl::AlreadyExistsError(absl::StrCat(
        shown_out_, " exists but is not an experiment folder; pass another folder with --out"));
  }
  fs::create_directories(out_, error);
  if (error) return FileError(error.value(), "make", out_);
  ASSIGN_OR_RETURN(lock_, TryFolderLock(out_));
  if (!lock_.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat(shown_out_,
                     " is in use by another tug experiment; wait until it ends, or pass another "
                     "folder with --out"));
  }
  RETURN_IF_ERROR(WriteSources());
  return TakeRows();
}

// Name of the first part that differs; for cases, the first such case.
std::string DifferenceOf(const nlohmann::ordered_json& there, const nlohmann::ordered_json& now) {
  for (const auto& [name, value] : now.items()) {
    if (there.value(name, nlohmann::ordered_json()) == value) continue;
    if (name != "cases") return name;
    const auto cases = there.value("cases", nlohmann::ordered_json::array());
    for (size_t i = 0; i < value.size(); ++i) {
      if (i >= cases.size() || cases[i] != value[i]) {
        return absl::StrCat("case ", value[i]["name"].get<std::string>());
      }
    }
    return "the number of cases";
  }
  return "";
}

absl::Status Runner::CheckIdentity() const {
  const std::string path = absl::StrCat(out_, "/", kIdentityFile);
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kIdentityLimitBytes));
  const auto there = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!there.is_object()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is damaged; pass another folder with --out"));
  }
  const std::string difference = DifferenceOf(there, results_.plan.Identity());
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(shown_out_, " has results of another experiment: ", difference,
                   " differs; pass another folder with --out"));
}

absl::Status Runner::WriteSources() const {
  const ExperimentPlan& plan = results_.plan;
  RETURN_IF_ERROR(WriteJson(absl::StrCat(out_, "/", kIdentityFile), plan.Identity()));
  std::error_code error;
  fs::create_directories(out_ + "/runs", error);
  if (error) return FileError(error.value(), "make", out_ + "/runs");
  RETURN_IF_ERROR(WriteFile(out_ + "/experiment.textproto", source_.text));
  RETURN_IF_ERROR(WriteFile(out_ + "/job.textproto", plan.job_text));
  if (!plan.made_up_text_path.empty()) {
    const uint64_t bytes = plan.file.made_up_text_bytes();
    RETURN_IF_ERROR(WriteFile(plan.made_up_text_path, TrainingText(kTrainingTextSeed, bytes)));
  }
  return absl::OkStatus();
}

absl::Status Runner::TakeRows() {
  ASSIGN_OR_RETURN(ExperimentRows read, ReadRows(RowsPath()));
  rows_bytes_ = read.whole_bytes;
  const size_t before = read.rows.size();
  if (a_.retry_failed) {
    std::erase_if(read.rows, [](const ExperimentRow& row) { return !row.error.empty(); });
  }
  if (read.rows.size() != before) {
    std::string text;
    for (const ExperimentRow& row : read.rows) absl::StrAppend(&text, RowLine(row), "\n");
    RETURN_IF_ERROR(WriteFile(RowsPath(), text));
    rows_bytes_ = text.size();
  }
  // Rows of further repeats stay in the file, but are not used.
  std::erase_if(read.rows,
                [this](const ExperimentRow& row) { return row.repeat >= results_.plan.repeats; });
  results_.rows = std::move(read.rows);
  KeepCasesToReport();
  ReadCourses();
  if (results_.rows.empty()) return absl::OkStatus();
  const auto others =
      std::count_if(results_.rows.begin(), results_.rows.end(),
                    [&](const ExperimentRow& row) { return row.origin.build != origin_.build; });
  if (others > 0) {
    Warn(absl::StrCat(others, " runs in ", shown_out_, " were made by another build of tug"));
  }
  PrintLineToStderr(absl::StrCat(results_.rows.size(), " runs exist already"));
  return absl::OkStatus();
}

void Runner::KeepCasesToReport() {
  std::vector<bool> kept, kept_chosen;
  for (size_t i = 0; i < results_.plan.cases.size(); ++i) {
    const std::string& name = results_.plan.cases[i].name;
    kept.push_back(chosen_[i] ||
                   std::any_of(results_.rows.begin(), results_.rows.end(),
                               [&](const ExperimentRow& row) { return row.case_name == name; }));
    if (kept[i]) kept_chosen.push_back(chosen_[i]);
  }
  KeepCases(kept, results_.plan);
  chosen_ = std::move(kept_chosen);
}

void Runner::ReadCourses() {
  if (results_.plan.file.sections_size() == 0) return;
  results_.courses.resize(results_.plan.cases.size());
  for (size_t i = 0; i < results_.plan.cases.size(); ++i) {
    const ExperimentRow* row = results_.Find(results_.plan.cases[i], 0);
    if (row != nullptr && row->error.empty()) ReadCourse(i, row->folder);
  }
}

absl::Status Runner::RunAll() {
  const std::vector<size_t> order = Order();
  std::vector<std::pair<size_t, uint32_t>> missing;
  for (uint32_t repeat = 0; repeat < results_.plan.repeats; ++repeat) {
    for (const size_t number : order) {
      if (!chosen_[number]) continue;
      if (results_.Find(results_.plan.cases[number], repeat) != nullptr) continue;
      missing.push_back({number, repeat});
    }
  }
  to_do_ = missing.size();
  // Checks all places before any case runs.
  std::set<std::string> seen;
  for (const auto& [number, repeat] : missing) {
    const Place place = Resolved(results_.plan.cases[number].place, a_.file);
    if (seen.insert(place.ShortDebugString()).second) RETURN_IF_ERROR(places_->Check(place));
  }
  absl::Time reported = absl::InfinitePast();
  for (const auto& [number, repeat] : missing) {
    RETURN_IF_ERROR(RunOne(number, repeat));
    if (time_.Now() - reported < kReportInterval) continue;
    RETURN_IF_ERROR(Write());
    reported = time_.Now();
  }
  return absl::OkStatus();
}

absl::Status Runner::RunOne(size_t number, uint32_t repeat) {
  const PlannedCase& one = results_.plan.cases[number];
  PlacedJob job = JobOf(one, repeat, out_);
  job.name = FolderOf(one, repeat);
  // Removes the output of a run that was cut off.
  std::error_code error;
  fs::remove_all(absl::StrCat(out_, "/", job.name), error);
  fs::remove(absl::StrCat(out_, "/", job.name, ".log"), error);
  ExperimentRow row{.case_name = one.name,
                    .repeat = repeat,
                    .seed = results_.plan.seed(repeat),
                    .folder = job.name,
                    .settings = job.overrides,
                    .origin = origin_};
  row.origin.started = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  row.origin.command = CommandFor(one, job);
  const absl::Time begin = time_.Now();
  const absl::Status measured = Measure(job, one.warm_up_steps, row);
  if (absl::IsCancelled(measured)) {
    static_cast<void>(Write());
    return absl::CancelledError(absl::StrCat("interrupted after ", results_.rows.size(), " of ",
                                             results_.plan.runs(),
                                             " runs; run the same command again to continue"));
  }
  if (!measured.ok()) row.error = std::string(measured.message());
  spent_ += time_.Now() - begin;
  ++done_;
  ASSIGN_OR_RETURN(rows_bytes_, AppendRow(RowsPath(), rows_bytes_, row));
  results_.rows.push_back(std::move(row));
  PrintRow(results_.rows.back());
  if (repeat == 0 && measured.ok() && !results_.courses.empty()) ReadCourse(number, job.name);
  return absl::OkStatus();
}

absl::Status Runner::Measure(const PlacedJob& job, uint64_t warm_up_steps, ExperimentRow& row) {
  const Experiment& file = results_.plan.file;
  const absl::Time begin = time_.Now();
  MeasuredRun run{.warm_up_steps = warm_up_steps};
  ASSIGN_OR_RETURN(run.links, places_->Run(job));
  row.links = run.links;
  run.wall_seconds = absl::ToDoubleSeconds(time_.Now() - begin);
  const std::string run_dir = absl::StrCat(out_, "/", job.name);
  ASSIGN_OR_RETURN(run.figures, ReadRunFigures(absl::StrCat(run_dir, "/", kMetricsFile)));
  ASSIGN_OR_RETURN(run.config, ReadRunConfig(run_dir));
  if (file.has_at_samples()) run.at_samples = file.at_samples();
  if (file.has_target_loss()) run.target_loss = file.target_loss();
  for (const tug::Measure& measure : Measures()) row.measures[measure.name] = measure.of(run);
  return absl::OkStatus();
}

void Runner::ReadCourse(size_t number, const std::string& folder) {
  const std::string run_dir = absl::StrCat(out_, "/", folder);
  CaseCourse& course = results_.courses[number];
  auto figures = ReadRunFigures(absl::StrCat(run_dir, "/", kMetricsFile));
  auto config = ReadRunConfig(run_dir);
  if (!figures.ok() || !config.ok()) return;
  course.figures = *std::move(figures);
  course.config = *std::move(config);
  const ExperimentPlan& plan = results_.plan;
  const PlannedCase& one = plan.cases[number];
  if (plan.HasSection(Experiment::SCHEDULING)) {
    course.scheduled =
        ScheduledStepOf(*course.figures, course.config, one.place, one.warm_up_steps);
  }
  if (one.config.trace().steps() == 0) return;
  const std::string trace = absl::StrCat(run_dir, "/", kTraceFile);
  // A missing timeline is only a warning: the figures are useful without it.
  const auto warn = [&](const absl::Status& status) {
    Warn(absl::StrCat(folder, " has no timeline: ", status.message()));
  };
  if (plan.HasSection(Experiment::SCHEDULING)) {
    auto step = ReadTimeline(trace, one.config.trace().first_step(), BlockNamesOf(course.config));
    if (!step.ok()) warn(step.status());
    if (step.ok()) course.scheduled.timeline = *std::move(step);
  }
  if (!plan.HasSection(Experiment::TIMELINES) && !plan.HasSection(Experiment::SYNC)) return;
  auto timeline = ReadWorkerTimelines(trace);
  if (!timeline.ok()) return warn(timeline.status());
  course.timeline = *std::move(timeline);
}

std::string Runner::TimeLeft() const {
  if (done_ == to_do_) return "";
  const absl::Duration left =
      spent_ / static_cast<double>(done_) * static_cast<double>(to_do_ - done_);
  const double minutes = absl::ToDoubleMinutes(left);
  return minutes < 1.5 ? absl::StrFormat("; about %.0f s left", absl::ToDoubleSeconds(left))
                       : absl::StrFormat("; about %.0f minutes left", minutes);
}

void Runner::PrintRow(const ExperimentRow& row) const {
  std::vector<std::string> shown;
  if (!row.error.empty()) {
    shown = {absl::StrCat("failed: ", row.error)};
  } else {
    for (const tug::Measure* measure : results_.plan.measures) {
      const std::optional<double> value = row.Find(measure->name);
      if (!value.has_value() || shown.size() == kShownMeasures) continue;
      shown.push_back(absl::StrFormat("%s %.*f%s%s", measure->name, measure->digits, *value,
                                      *measure->unit == 0 ? "" : " ", measure->unit));
    }
  }
  PrintLineToStderr(absl::StrCat("[", done_, "/", to_do_, "] repeat ", row.repeat + 1, ", ",
                                 row.case_name, ": ", absl::StrJoin(shown, ", "), TimeLeft()));
}

absl::Status Runner::Write() const {
  std::vector<std::string> pictures;
  const std::vector<DrawnFigure> figures = DrawFigures(results_);
  for (size_t i = 0; i < figures.size(); ++i) {
    pictures.push_back(absl::StrCat("figure-", i + 1, ".svg"));
    if (figures[i].svg.empty()) continue;
    RETURN_IF_ERROR(WriteFile(absl::StrCat(out_, "/", pictures.back()), SvgFile(figures[i].svg)));
  }
  RETURN_IF_ERROR(WriteFile(out_ + "/report.md", ExperimentReportMarkdown(results_, pictures)));
  return WriteFile(out_ + "/report.html", ExperimentReportHtml(results_));
}

absl::Status Runner::End() const {
  const size_t failed = results_.Failed();
  if (failed == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(failed, " of ", results_.rows.size(),
                                         " runs failed, first: ", Failures(results_).front(),
                                         "; --retry-failed runs them again"));
}

}  // namespace

absl::Status RunExperimentFile(const ExperimentFileArguments& arguments) {
  ASSIGN_OR_RETURN(ExperimentSource source, ReadExperimentSource(arguments));
  return Runner(arguments, std::move(source)).Run();
}

}  // namespace tug
