// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/coordinator_options.h"

#include "proto/journal.pb.h"

namespace tug {

JournalBegin BeginOf(const CoordinatorOptions& options) {
  JournalBegin begin;
  begin.set_job(options.job);
  begin.set_fingerprint(options.fingerprint);
  *begin.mutable_config() = options.config;
  *begin.mutable_blocks() = options.layout.blocks;
  begin.mutable_segment_bytes()->Assign(options.layout.segment_bytes.begin(),
                                        options.layout.segment_bytes.end());
  begin.set_run_dir(options.run_dir);
  begin.set_timeline(options.start.number);
  begin.set_start_version(options.start.version);
  begin.set_restore_path(options.start.restore_path);
  begin.mutable_start_clocks()->Assign(options.start.clocks.begin(), options.start.clocks.end());
  begin.mutable_start_residuals()->Assign(options.start.residuals.begin(),
                                          options.start.residuals.end());
  for (const EvalMetrics& eval : options.past_evals) {
    PastEvaluation* past = begin.add_past_evals();
    past->set_version(eval.version);
    past->set_loss(eval.loss);
    past->set_accuracy(eval.accuracy);
    past->set_targets(eval.targets);
    past->set_final(eval.final);
  }
  if (options.best.has_value()) {
    begin.mutable_best()->set_version(options.best->version);
    begin.mutable_best()->set_loss(options.best->loss);
  }
  begin.set_predicts_steps(options.predicts_steps);
  begin.set_data_notice(options.data_notice);
  begin.mutable_changed_settings()->Assign(options.changed_settings.begin(),
                                           options.changed_settings.end());
  return begin;
}

CoordinatorOptions OptionsOf(const JournalBegin& begin) {
  CoordinatorOptions options;
  options.config = begin.config();
  options.fingerprint = begin.fingerprint();
  options.layout = {begin.blocks(), {begin.segment_bytes().begin(), begin.segment_bytes().end()}};
  options.job = begin.job();
  options.run_dir = begin.run_dir();
  options.start = {.number = begin.timeline(),
                   .version = begin.start_version(),
                   .restore_path = begin.restore_path(),
                   .clocks = {begin.start_clocks().begin(), begin.start_clocks().end()},
                   .residuals = {begin.start_residuals().begin(), begin.start_residuals().end()}};
  for (const PastEvaluation& past : begin.past_evals()) {
    options.past_evals.push_back({.version = past.version(),
                                  .loss = past.loss(),
                                  .accuracy = past.accuracy(),
                                  .targets = past.targets(),
                                  .final = past.final()});
  }
  if (begin.has_best()) options.best = {begin.best().version(), begin.best().loss()};
  options.predicts_steps = begin.predicts_steps();
  options.data_notice = begin.data_notice();
  options.changed_settings = {begin.changed_settings().begin(), begin.changed_settings().end()};
  return options;
}

}  // namespace tug
