// SPDX-License-Identifier: Apache-2.0
#include "optimizer/optimizer.h"

#include "base/check.h"
#include "optimizer/adamw.h"
#include "optimizer/sgd.h"

namespace tug {
namespace {

template <typename T>
std::unique_ptr<const Optimizer> Make(const OptimizerConfig& config) {
  return std::make_unique<const T>(config);
}

struct OptimizerRow {
  OptimizerConfig::Algorithm algorithm;
  std::unique_ptr<const Optimizer> (*make)(const OptimizerConfig& config);
};

constexpr OptimizerRow kOptimizers[] = {
    {OptimizerConfig::ALGORITHM_DEFAULT, Make<AdamW>},
    {OptimizerConfig::ADAMW, Make<AdamW>},
    {OptimizerConfig::SGD, Make<Sgd>},
};

}  // namespace

std::unique_ptr<const Optimizer> MakeOptimizer(const OptimizerConfig& config) {
  for (const OptimizerRow& row : kOptimizers) {
    if (row.algorithm == config.algorithm()) return row.make(config);
  }
  TUG_CHECK(false) << "optimizer " << config.algorithm();
  return nullptr;
}

std::unique_ptr<const Optimizer> MakeLaneOptimizer(const OptimizerConfig& optimizer,
                                                   const SyncConfig& sync) {
  if (sync.local_steps() <= 1) return MakeOptimizer(optimizer);
  OptimizerConfig outer;
  outer.set_algorithm(OptimizerConfig::SGD);
  outer.set_schedule(OptimizerConfig::CONSTANT);
  outer.set_learning_rate(sync.outer().learning_rate());
  outer.mutable_sgd()->set_momentum(sync.outer().momentum());
  outer.mutable_sgd()->set_nesterov(sync.outer().nesterov());
  return MakeOptimizer(outer);
}

}  // namespace tug
