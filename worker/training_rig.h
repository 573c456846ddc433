// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_TRAINING_RIG_H_
#define TUG_WORKER_TRAINING_RIG_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/cpu/thread_pool.h"
#include "blocks/segment_table.h"
#include "config/job_config.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "model/job_model.h"
#include "model/model.h"
#include "model/transformer/create_model.h"
#include "proto/job.pb.h"

namespace tug {

// For tests: small jobs, and what a TrainingLoop needs except the exchange.

// Fills all fields, and writes the text that the job reads. A small decoder without dropout, with
// an untied head; two micro-batches of one sample per step and virtual worker, evaluations of six
// samples every other step, partitions of one segment.
inline JobConfig SmallJob(uint32_t virtual_workers, uint64_t segment_elements) {
  JobConfig config;
  const std::string text = testing::TempDir() + "/text.txt";
  std::ofstream out(text);
  for (int i = 0; i < 600; ++i) out << "word " << i * i % 97 << (i % 7 == 0 ? ".\n" : ", ");
  config.mutable_data()->set_path(text);
  config.set_seed(5);
  config.mutable_cluster()->set_virtual_workers(virtual_workers);
  config.mutable_cluster()->set_compute_threads(1);
  ModelConfig& model = *config.mutable_model();
  model.set_layers(1);
  model.set_heads(2);
  model.set_width(16);
  model.set_context(8);
  model.set_tied_head(false);
  TrainConfig& train = *config.mutable_train();
  train.set_global_batch(2 * virtual_workers);
  train.set_micro_batch(1);
  train.set_eval_interval(2);
  train.set_eval_samples(6);
  CommConfig& comm = *config.mutable_comm();
  comm.set_segment_elements(segment_elements);
  comm.set_partition_bytes(segment_elements * sizeof(float));
  FillDefaults(config, 1);
  return config;
}

// Data and model of a job, as a worker makes them. One at a time: all write the same file.
class TrainingRig {
 public:
  explicit TrainingRig(JobConfig config) : pool_(1) {
    const std::string path = testing::TempDir() + "/tokens.bin";
    const auto info = PrepareTokenFile(config.data(), path, TextFormOf(config.model()));
    TUG_CHECK_OK(info);
    info->Resolve(*config.mutable_data());
    options_ = ModelOptionsOf(config);
    tokens_ = *TokenFile::Open(path);
    auto sampler = MakeSampler(config, &*tokens_);
    TUG_CHECK_OK(sampler);
    sampler_ = *std::move(sampler);
    auto model = CreateModel(ModelOptionsOf(config), pool_);
    TUG_CHECK_OK(model);
    model_ = *std::move(model);
    table_ = *SegmentTable::Create(model_->blocks(), config.comm().segment_elements());
  }

  const ModelOptions& model_options() const { return options_; }
  const Sampler& sampler() const { return *sampler_; }
  Model& model() { return *model_; }
  const SegmentTable& table() const { return *table_; }

 private:
  ThreadPool pool_;
  ModelOptions options_;
  std::optional<TokenFile> tokens_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Model> model_;
  std::optional<SegmentTable> table_;
};

}  // namespace tug

#endif  // TUG_WORKER_TRAINING_RIG_H_
