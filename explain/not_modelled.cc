// SPDX-License-Identifier: Apache-2.0
#include "explain/not_modelled.h"

#include "config/placement_mode.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

bool Replays(const JobConfig& config) { return config.compute() == JobConfig::REPLAY; }

// Whether only the embedding rows that a step touches are sent.
bool SendsRows(const JobConfig& config) {
  const ModelConfig& model = config.model();
  const bool tied = model.family() != ModelConfig::ENCODER && model.tied_head();
  return !Replays(config) && !tied && config.comm().sparse_embeddings();
}

bool Impairs(const JobConfig& config) {
  const ImpairConfig& impair = config.comm().impair();
  return impair.delay_ms() > 0 || impair.jitter_ms() > 0 || impair.loss() > 0 ||
         impair.rate_mbit() > 0;
}

// The size of a block is that of its pulls, unless a profile has it.
bool HidesBlockSizes(const JobConfig& config) {
  const CommConfig::Format format = config.comm().pull_format();
  return !Replays(config) && format != CommConfig::FP32 && format != CommConfig::BF16;
}

struct NotModelledRow {
  NotModelled setting;
  bool (*in)(const JobConfig&);
};

// Settings that are valid only with another one of the table follow it.
constexpr NotModelledRow kNotModelledRows[] = {
    {{"sync.policy other than BSP", "sync.policy=BSP"},
     [](const JobConfig& c) { return c.sync().policy() != SyncConfig::BSP; }},
    {{"sync.record", "sync.record=OFF"},
     [](const JobConfig& c) { return c.sync().record() == SyncConfig::ORDER; }},
    {{"sync.delay_compensation", "sync.delay_compensation=0"},
     [](const JobConfig& c) { return c.sync().delay_compensation() > 0; }},
    {{"exchange ALL_REDUCE", "exchange=PUSH_PULL"},
     [](const JobConfig& c) { return AllReduces(c); }},
    {{"placement.kind other than SERVERS", "placement.kind=SERVERS"},
     [](const JobConfig& c) { return c.placement().kind() != PlacementConfig::SERVERS; }},
    {{"placement.host_weight_cache", "placement.host_weight_cache=false"},
     [](const JobConfig& c) { return c.placement().host_weight_cache(); }},
    {{"sync.replicas", "sync.replicas=1"},
     [](const JobConfig& c) { return c.sync().replicas() > 1; }},
    {{"sync.local_steps", "sync.local_steps=1"},
     [](const JobConfig& c) { return c.sync().local_steps() > 1; }},
    {{"comm.impair (give hosts links instead: deploy/testbed)", "comm.impair={}"}, Impairs},
    {{"comm.push_codec.auto, which chooses at run time", "comm.push_codec={}"},
     [](const JobConfig& c) { return c.comm().push_codec().has_auto_(); }},
    {{"comm.pull_format PULL_AUTO, which chooses at run time", "comm.pull_format=FP32"},
     [](const JobConfig& c) { return c.comm().pull_format() == CommConfig::PULL_AUTO; }},
    {{"comm.pull_format other than FP32 and BF16, which hides the sizes of blocks",
      "comm.pull_format=FP32"},
     [](const JobConfig& c) {
       return HidesBlockSizes(c) && c.comm().pull_format() != CommConfig::PULL_AUTO;
     }},
    {{"comm.scheduler AUTO", "comm.scheduler=BYTESCHEDULER"},
     [](const JobConfig& c) { return c.comm().scheduler() == CommConfig::AUTO; }},
    {{"comm.sparse_embeddings", "comm.sparse_embeddings=false"}, SendsRows},
};

}  // namespace

std::vector<NotModelled> NotModelledIn(const JobConfig& config) {
  std::vector<NotModelled> found;
  for (const NotModelledRow& row : kNotModelledRows) {
    if (row.in(config)) found.push_back(row.setting);
  }
  return found;
}

}  // namespace tug
