// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/resume_check.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "config/field_path.h"
#include "config/job_config.h"
#include "config/sync_mode.h"
#include "google/protobuf/util/message_differencer.h"

namespace tug {
namespace {

constexpr const char* kMatchingSettings[] = {
    "compute",
    "model.external",
    "model.family",
    "model.layers",
    "model.width",
    "model.heads",
    "model.context",
    "model.dropout",
    "model.tied_head",
    "model.bias",
    "model.norm",
    "model.activation",
    "model.mlp_width",
    "model.classes",
    "data.tokenizer",
    "data.random.samples",
    "data.random.symbols",
    "data.validation_fraction",
    "seed",
    "cluster.virtual_workers",
    "train.global_batch",
    "optimizer.algorithm",
};

constexpr const char* kMatchingText[] = {
    "data.resolved_symbols",
    "data.resolved_alphabet",
    "data.resolved_fingerprint",
};

std::string FieldText(const JobConfig& config, const char* path) {
  const absl::StatusOr<FieldRef> field = FindField(config, path);
  TUG_CHECK_OK(field);
  return field->Text();
}

absl::Status Differs(const std::string& folder, const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat("cannot resume from ", folder, ": ", what));
}

absl::Status MustMatch(const JobConfig& trained, const JobConfig& config, const std::string& folder,
                       const std::string& path, const std::string& why = "") {
  const std::string then = FieldText(trained, path.c_str());
  const std::string now = FieldText(config, path.c_str());
  if (then == now) return absl::OkStatus();
  return Differs(folder, absl::StrCat(path, " is ", then, " in the checkpoint but ", now,
                                      " in this job", why, "; pass --set ", path, "=", then,
                                      ", or start a new run without --resume"));
}

// Configuration that a checkpoint was made with.
JobConfig TrainedWith(const Manifest& manifest) {
  JobConfig trained = manifest.config();
  FillDefaults(trained, /*cores=*/1);  // for fields newer than the checkpoint
  return trained;
}

// The meaning of a version, and so whether a lane's state can be continued, depends on the policy.
absl::Status CheckSync(const JobConfig& trained, const JobConfig& config,
                       const std::string& folder) {
  const uint32_t clocks = CountedClocks(config);
  if (CountedClocks(trained) != clocks) {
    return MustMatch(trained, config, folder, "sync.policy");
  }
  if ((trained.sync().local_steps() > 1) != (config.sync().local_steps() > 1)) {
    return MustMatch(trained, config, folder, "sync.local_steps");
  }
  if (clocks == 0) return absl::OkStatus();
  // Clocks are counted by segment.
  return MustMatch(trained, config, folder, "comm.segment_elements",
                   ", and SSP and ASP need the same value");
}

// Without what a start of the job or a machine determines.
JobConfig Comparable(JobConfig config) {
  config.clear_name();
  config.clear_trace();
  config.clear_watch();
  config.clear_security();
  config.mutable_cluster()->clear_lanes_per_server();
  config.mutable_cluster()->clear_compute_threads();
  config.mutable_cluster()->clear_pin_threads();
  config.mutable_train()->clear_init_from();
  config.mutable_replay()->clear_resolved_profile();
  config.mutable_data()->clear_resolved_alphabet();
  config.mutable_data()->clear_resolved_symbols();
  config.mutable_data()->clear_resolved_fingerprint();
  config.mutable_data()->clear_resolved_tokenizer();
  config.mutable_data()->clear_resolved_labels();
  return config;
}

// Whether a change is only that of the job's length, which decay_steps follows.
bool IsLength(const std::string& change) {
  return change.starts_with("train.steps ") || change.starts_with("optimizer.decay_steps ");
}

}  // namespace

std::vector<std::string> ChangedSettings(const Manifest& manifest, const JobConfig& config) {
  std::string report;  // "modified: train.steps: 300 -> 600", a line each
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&report);
  differencer.Compare(Comparable(TrainedWith(manifest)), Comparable(config));
  std::vector<std::string> changes;
  for (const absl::string_view line : absl::StrSplit(report, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> kind =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (kind.first == "modified") {
      changes.push_back(absl::StrReplaceAll(kind.second, {{": ", " "}}));
    } else {
      changes.push_back(absl::StrCat(kind.second, " (", kind.first, ")"));
    }
  }
  std::ranges::stable_partition(changes,
                                [](const std::string& change) { return !IsLength(change); });
  return changes;
}

absl::Status CheckResumedSettings(const Manifest& manifest, const std::string& folder,
                                  const JobConfig& config) {
  const JobConfig trained = TrainedWith(manifest);
  for (const char* path : kMatchingSettings) {
    RETURN_IF_ERROR(MustMatch(trained, config, folder, path));
  }
  return absl::OkStatus();
}

absl::Status CheckResumedText(const Manifest& manifest, const std::string& folder,
                              const JobConfig& config) {
  const JobConfig trained = TrainedWith(manifest);
  for (const char* path : kMatchingText) {
    if (MustMatch(trained, config, folder, path).ok()) continue;
    return Differs(folder,
                   "the text differs from the one that the run was trained on: set data.path to "
                   "the same, unchanged text (if it is unchanged, this version of tug tokenizes it "
                   "differently: resume with the version that started the run)");
  }
  return absl::OkStatus();
}

absl::Status CheckResume(const Manifest& manifest, const std::string& folder,
                         const JobConfig& config, const BlockTable& blocks) {
  RETURN_IF_ERROR(CheckResumedSettings(manifest, folder, config));
  RETURN_IF_ERROR(CheckResumedText(manifest, folder, config));
  RETURN_IF_ERROR(CheckSync(TrainedWith(manifest), config, folder));
  if (!google::protobuf::util::MessageDifferencer::Equals(manifest.blocks(), blocks)) {
    if (config.compute() == JobConfig::REPLAY) {
      return Differs(folder,
                     "its blocks differ from those of this replay: use the same replay.profile and "
                     "replay.size_scale, or start a new run without --resume");
    }
    return Differs(folder,
                   "a different version of tug with another parameter layout wrote it; resume with "
                   "that version (tug --version)");
  }
  if (manifest.version() >= config.train().steps()) {
    return absl::OutOfRangeError(absl::StrCat(folder, " has all ", config.train().steps(),
                                              " steps of train.steps: the job is complete; to "
                                              "continue training, raise it with --set train.steps=",
                                              2 * manifest.version()));
  }
  return absl::OkStatus();
}

}  // namespace tug
