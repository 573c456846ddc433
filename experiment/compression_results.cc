#include "experiment/compression_results.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/median.h"
#include "experiment/figure_text.h"
#include "experiment/markdown_table.h"

namespace tug {
namespace {

using Json = nlohmann::ordered_json;
using Table = std::vector<std::vector<std::string>>;

double MedianOf(const LinkRun& run, double StepPoint::*member) {
  std::vector<double> values;
  for (const StepPoint& point : StepsAfter(run.figures, run.warm_up)) values.push_back(point.*member);
  return Median(std::move(values));
}

double SumOf(const std::vector<StepPoint>& steps, uint64_t StepPoint::*member) {
  double sum = 0;
  for (const StepPoint& point : steps) sum += static_cast<double>(point.*member);
  return sum;
}

double MeanOf(const LinkRun& run, uint64_t StepPoint::*member) {
  const std::vector<StepPoint>& steps = run.figures.steps;
  return steps.empty() ? 0 : SumOf(steps, member) / static_cast<double>(steps.size());
}

// A sum over the job, per step of each of `nodes`. None: 0, so it was not measured.
std::optional<double> PerStep(const RunFigures& figures, double sum, size_t nodes) {
  if (sum <= 0 || figures.steps.empty() || nodes == 0) return std::nullopt;
  return sum / static_cast<double>(figures.steps.back().step * nodes);
}

std::optional<double> Over(const std::optional<double>& value, const std::optional<double>& of) {
  if (!value.has_value() || !of.has_value() || *of <= 0) return std::nullopt;
  return *value / *of;
}

std::string ShareText(const std::optional<double>& share) {
  return share.has_value() ? absl::StrFormat("%.2f%%", *share * 100) : kNoFigure;
}

std::optional<double> Millis(const std::optional<double>& seconds) {
  if (!seconds.has_value()) return std::nullopt;
  return *seconds * 1e3;
}

std::string VerdictText(const Verdict& verdict) {
  return absl::StrFormat("%s, %.2fx", verdict.pays() ? "pays" : "does not", verdict.SpeedUp());
}

std::vector<std::string> LinkLine(const CompressionResults& results, const LinkRun& run) {
  const LinkRun* fp32 = results.FindFp32(run.link);
  const std::optional<Verdict> verdict = results.VerdictOf(run);
  const auto of_fp32 = [&](auto figure) {
    if (fp32 == nullptr) return std::string(kNoFigure);
    return ShareText(Over((run.*figure)(), (fp32->*figure)()));
  };
  return {run.link,
          run.codec.name,
          NumberText(run.StepSeconds() * 1e3, 1),
          verdict.has_value() ? NumberText(verdict->SpeedUp(), 2) : kNoFigure,
          NumberText(run.WaitSeconds() * 1e3, 1),
          NumberText(Millis(run.EncodeSeconds()), 2),
          NumberText(Millis(run.DecodeSeconds()), 2),
          NumberText(run.PushedBytes() * 1e-3, 1),
          of_fp32(&LinkRun::PushedBytes),
          NumberText(run.PulledBytes() * 1e-3, 1),
          of_fp32(&LinkRun::PulledBytes),
          of_fp32(&LinkRun::WorkerSocketBytes),
          of_fp32(&LinkRun::ServerSocketBytes)};
}

std::vector<std::string> LearningLine(const CompressionResults& results, const LearningRun& run) {
  const LearningRun* fp32 = results.BestFp32();
  const bool counts = results.Best(run.codec) == &run;
  const std::optional<double> over = results.LossOverFp32(run.codec);
  const auto of_fp32 = [&](double (LearningRun::*figure)() const) {
    if (fp32 == nullptr) return std::string(kNoFigure);
    return ShareText(Over((run.*figure)(), (fp32->*figure)()));
  };
  return {run.codec.name,
          absl::StrFormat("%g", run.learning_rate),
          NumberText(FinalLoss(run.figures), 4),
          counts && over.has_value() && std::isfinite(*over) ? absl::StrFormat("%+.4f", *over)
                                                             : kNoFigure,
          NumberText(run.PushedBytes() * 1e-6, 2),
          of_fp32(&LearningRun::PushedBytes),
          NumberText(run.PulledBytes() * 1e-6, 2),
          of_fp32(&LearningRun::PulledBytes),
          NumberText(run.Seconds(), 1)};
}

// "final loss 1.9012, +0.0110 over fp32's: learns as well". Empty: not known.
std::string LearningFinding(const CompressionResults& results, const CodecCase& codec) {
  const std::optional<bool> as_well = results.LearnsAsWell(codec);
  if (!as_well.has_value()) return "";
  const double loss = FinalLoss(results.Best(codec)->figures).value_or(0);
  const double over = *results.LossOverFp32(codec);
  if (!std::isfinite(over)) return "does not learn as well: a final loss is not finite";
  return absl::StrFormat("%s: final validation loss %.4f, fp32's %.4f (%+.4f, margin %g)",
                         *as_well ? "learns as well" : "does not learn as well", loss, loss - over,
                         over, results.loss_margin);
}

std::string LinkFinding(const std::string& link, const Verdict& verdict) {
  return absl::StrFormat("on link %s it %s: a step takes %.1f ms, fp32's %.1f ms (%.2fx)", link,
                         verdict.pays() ? "pays" : "does not pay", verdict.step_seconds * 1e3,
                         verdict.fp32_seconds * 1e3, verdict.SpeedUp());
}

Json AsJson(const CompressionResults& results, const LinkRun& run) {
  const std::optional<Verdict> verdict = results.VerdictOf(run);
  Json json = {
      {"codec", run.codec.name},
      {"link", run.link},
      {"warm_up_steps", run.warm_up},
      {"step_seconds", OrNull(run.StepSeconds())},
      {"fp32_step_seconds", OrNull(verdict ? std::optional(verdict->fp32_seconds) : std::nullopt)},
      {"pays", verdict ? Json(verdict->pays()) : Json(nullptr)},
      {"wait_seconds", OrNull(run.WaitSeconds())},
      {"encode_seconds", OrNull(run.EncodeSeconds())},
      {"decode_seconds", OrNull(run.DecodeSeconds())},
      {"pushed_bytes", run.PushedBytes()},
      {"pulled_bytes", run.PulledBytes()},
      {"worker_socket_bytes", OrNull(run.WorkerSocketBytes())},
      {"server_socket_bytes", OrNull(run.ServerSocketBytes())},
      {"steps", Json::array()}};
  for (const StepPoint& point : run.figures.steps) {
    json["steps"].push_back({{"step", point.step},
                             {"step_seconds", point.step_seconds},
                             {"wait_seconds", point.wait_seconds},
                             {"pushed_bytes", point.pushed_bytes},
                             {"pulled_bytes", point.pulled_bytes}});
  }
  return json;
}

Json AsJson(const CompressionResults& results, const LearningRun& run) {
  const bool counts = results.Best(run.codec) == &run;
  const std::optional<bool> as_well = results.LearnsAsWell(run.codec);
  Json json = {{"codec", run.codec.name},
               {"learning_rate", run.learning_rate},
               {"whole_steps", run.whole_steps},
               {"counts", counts},
               {"final_loss", OrNull(FinalLoss(run.figures))},
               {"over_fp32", counts ? OrNull(results.LossOverFp32(run.codec)) : Json(nullptr)},
               {"learns_as_well", counts && as_well ? Json(*as_well) : Json(nullptr)},
               {"pushed_bytes", run.PushedBytes()},
               {"pulled_bytes", run.PulledBytes()},
               {"seconds", run.Seconds()},
               {"steps", Json::array()},
               {"evaluations", Json::array()}};
  for (const StepPoint& point : run.figures.steps) {
    json["steps"].push_back({{"step", point.step},
                             {"seconds", point.seconds},
                             {"pushed_bytes", point.pushed_bytes},
                             {"pulled_bytes", point.pulled_bytes},
                             {"loss", OrNull(point.loss)}});
  }
  for (const EvalPoint& point : run.figures.evals) {
    json["evaluations"].push_back({{"step", point.step},
                                   {"seconds", point.seconds},
                                   {"loss", OrNull(point.loss)},
                                   {"final", point.final}});
  }
  return json;
}

}  // namespace

double LearningRun::PushedBytes() const { return SumOf(figures.steps, &StepPoint::pushed_bytes); }

double LearningRun::PulledBytes() const { return SumOf(figures.steps, &StepPoint::pulled_bytes); }

double LearningRun::Seconds() const {
  return figures.steps.empty() ? 0 : figures.steps.back().seconds;
}

double LinkRun::StepSeconds() const { return MedianOf(*this, &StepPoint::step_seconds); }

double LinkRun::WaitSeconds() const { return MedianOf(*this, &StepPoint::wait_seconds); }

double LinkRun::PushedBytes() const { return MeanOf(*this, &StepPoint::pushed_bytes); }

double LinkRun::PulledBytes() const { return MeanOf(*this, &StepPoint::pulled_bytes); }

std::optional<double> LinkRun::WorkerSocketBytes() const {
  return PerStep(figures, static_cast<double>(figures.worker_socket_bytes), 1);
}

std::optional<double> LinkRun::ServerSocketBytes() const {
  return PerStep(figures, static_cast<double>(figures.server_socket_bytes), 1);
}

std::optional<double> LinkRun::EncodeSeconds() const {
  return PerStep(figures, figures.encode_seconds, figures.workers.size());
}

std::optional<double> LinkRun::DecodeSeconds() const {
  return PerStep(figures, figures.decode_seconds, servers);
}

const LinkRun* CompressionResults::Find(const CodecCase& codec, const std::string& link) const {
  for (const LinkRun& run : links) {
    if (run.codec == codec && run.link == link) return &run;
  }
  return nullptr;
}

const LinkRun* CompressionResults::FindFp32(const std::string& link) const {
  return Find(CodecCase{.name = "fp32"}, link);
}

const LearningRun* CompressionResults::Best(const CodecCase& codec) const {
  const LearningRun* best = nullptr;
  const auto loss_of = [](const LearningRun& run) {
    const double loss = FinalLoss(run.figures).value_or(INFINITY);
    return std::isnan(loss) ? INFINITY : loss;
  };
  for (const LearningRun& run : learning) {
    if (run.codec == codec && (best == nullptr || loss_of(run) < loss_of(*best))) best = &run;
  }
  return best;
}

const LearningRun* CompressionResults::BestFp32() const { return Best(CodecCase{.name = "fp32"}); }

std::optional<Verdict> CompressionResults::VerdictOf(const LinkRun& run) const {
  const LinkRun* fp32 = FindFp32(run.link);
  if (fp32 == nullptr || run.codec.is_fp32()) return std::nullopt;
  const Verdict verdict{.step_seconds = run.StepSeconds(), .fp32_seconds = fp32->StepSeconds()};
  if (!(verdict.step_seconds > 0) || !(verdict.fp32_seconds > 0)) return std::nullopt;
  return verdict;
}

std::optional<double> CompressionResults::LossOverFp32(const CodecCase& codec) const {
  const LearningRun *run = Best(codec), *fp32 = BestFp32();
  if (codec.is_fp32() || run == nullptr || fp32 == nullptr) return std::nullopt;
  const std::optional<double> loss = FinalLoss(run->figures), of_fp32 = FinalLoss(fp32->figures);
  if (!loss.has_value() || !of_fp32.has_value()) return std::nullopt;
  return *loss - *of_fp32;
}

std::optional<bool> CompressionResults::LearnsAsWell(const CodecCase& codec) const {
  const std::optional<double> over = LossOverFp32(codec);
  if (!over.has_value()) return std::nullopt;
  return *over <= loss_margin;  // false of NaN
}

Table VerdictTable(const CompressionResults& results) {
  Table table = {{"codec"}};
  for (const std::string& link : results.link_names) table[0].push_back("link " + link);
  table[0].push_back("learning");
  for (const CodecCase& codec : results.codecs) {
    std::vector<std::string> line = {codec.name};
    for (const std::string& link : results.link_names) {
      const LinkRun* run = results.Find(codec, link);
      const auto verdict = run == nullptr ? std::nullopt : results.VerdictOf(*run);
      line.push_back(verdict.has_value() ? VerdictText(*verdict)
                     : run != nullptr && codec.is_fp32()
                         ? absl::StrFormat("%.1f ms", run->StepSeconds() * 1e3)
                         : kNoFigure);
    }
    const LearningRun* best = results.Best(codec);
    const std::optional<bool> as_well = results.LearnsAsWell(codec);
    if (as_well.has_value()) {
      const double over = *results.LossOverFp32(codec);
      line.push_back(absl::StrCat(*as_well ? "as well" : "not as well",
                                  std::isfinite(over) ? absl::StrFormat(", %+.4f", over) : ""));
    } else {
      line.push_back(best == nullptr ? kNoFigure : NumberText(FinalLoss(best->figures), 4));
    }
    table.push_back(std::move(line));
  }
  return table;
}

Table LinkTable(const CompressionResults& results) {
  Table table = {{"link", "codec", "step, ms", "speed-up", "waits, ms", "encode, ms", "decode, ms",
                  "pushed, kB", "of fp32", "pulled, kB", "of fp32", "sockets push", "pull"}};
  for (const std::string& link : results.link_names) {
    for (const CodecCase& codec : results.codecs) {
      const LinkRun* run = results.Find(codec, link);
      if (run != nullptr) table.push_back(LinkLine(results, *run));
    }
  }
  return table;
}

Table LearningTable(const CompressionResults& results) {
  Table table = {{"codec", "learning rate", "final loss", "over fp32", "pushed, MB", "of fp32",
                  "pulled, MB", "of fp32", "seconds"}};
  for (const LearningRun& run : results.learning) table.push_back(LearningLine(results, run));
  return table;
}

std::vector<std::string> Findings(const CompressionResults& results) {
  std::vector<std::string> findings;
  for (const CodecCase& codec : results.codecs) {
    std::vector<std::string> parts;
    for (const std::string& link : results.link_names) {
      const LinkRun* run = results.Find(codec, link);
      const auto verdict = run == nullptr ? std::nullopt : results.VerdictOf(*run);
      if (verdict.has_value()) parts.push_back(LinkFinding(link, *verdict));
    }
    if (std::string learning = LearningFinding(results, codec); !learning.empty()) {
      parts.push_back(std::move(learning));
    }
    if (!parts.empty()) {
      findings.push_back(absl::StrCat(codec.name, ": ", absl::StrJoin(parts, "; ")));
    }
  }
  return findings;
}

std::string ResultsMarkdown(const CompressionResults& results) {
  std::string text = absl::StrCat("## Verdicts\n\n", MarkdownTable(VerdictTable(results)), "\n");
  for (const std::string& finding : Findings(results)) absl::StrAppend(&text, "- ", finding, "\n");
  if (!results.links.empty()) {
    absl::StrAppend(&text, "\n## On links\n\n", MarkdownTable(LinkTable(results)));
  }
  if (!results.learning.empty()) {
    absl::StrAppend(&text, "\n## Learning\n\n", MarkdownTable(LearningTable(results)));
  }
  return text;
}

Json ResultsJson(const CompressionResults& results) {
  Json json = {{"command", results.command},    {"settings", Json::object()},
               {"least_gain", kLeastGain},      {"loss_margin", results.loss_margin},
               {"findings", Findings(results)}, {"links", Json::array()},
               {"learning", Json::array()}};
  for (const auto& [name, value] : results.settings) json["settings"][name] = value;
  for (const LinkRun& run : results.links) json["links"].push_back(AsJson(results, run));
  for (const LearningRun& run : results.learning) json["learning"].push_back(AsJson(results, run));
  return json;
}

}  // namespace tug
