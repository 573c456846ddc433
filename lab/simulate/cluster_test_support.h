// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_CLUSTER_TEST_SUPPORT_H_
#define TUG_LAB_SIMULATE_CLUSTER_TEST_SUPPORT_H_

#include <string>

#include "lab/simulate/cluster.h"
#include "proto/job.pb.h"

namespace tug {

// A small job of six virtual workers and twelve steps; below, two networks for it.
inline SimulationOptions Job(uint32_t servers, uint32_t workers, uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  ClusterConfig& cluster = *options.config.mutable_cluster();
  cluster.set_servers(servers);
  cluster.set_workers(workers);
  cluster.set_lanes_per_server(1);
  cluster.set_virtual_workers(6);
  options.config.mutable_sync()->set_replicas(1);
  options.config.set_seed(42);
  options.config.mutable_train()->set_steps(12);
  options.config.mutable_checkpoint()->set_interval(5);
  CommConfig& comm = *options.config.mutable_comm();
  comm.set_segment_elements(4096);
  comm.set_partition_bytes(32768);
  comm.set_credit_bytes(65536);
  comm.set_pull_credit_bytes(131072);
  comm.set_pull_density(0.1);
  comm.set_scheduler(CommConfig::BYTESCHEDULER);
  comm.set_resend_ms(200);
  OptimizerConfig& optimizer = *options.config.mutable_optimizer();
  optimizer.set_learning_rate(0.01);
  optimizer.set_min_learning_rate(0.001);
  optimizer.set_warmup_steps(2);
  optimizer.set_decay_steps(12);
  optimizer.set_clip(OptimizerConfig::GLOBAL);
  optimizer.set_clip_norm(1.0);
  optimizer.mutable_adamw()->set_beta1(0.9);
  optimizer.mutable_adamw()->set_beta2(0.99);
  optimizer.mutable_adamw()->set_epsilon(1e-8);
  optimizer.mutable_adamw()->set_weight_decay(0.1);
  options.config.mutable_fault()->set_failure_timeout_ms(5000);
  options.config.mutable_fault()->set_heartbeat_ms(200);
  for (uint64_t elements : {20000, 9000, 4000}) {
    BlockSpec* block = options.blocks.add_blocks();
    block->set_name("block." + std::to_string(options.blocks.blocks_size() - 1));
    TensorSpec* matrix = block->add_tensors();
    matrix->add_shape(elements);
    matrix->set_weight_decay(true);
    matrix->set_init_std(0.5f);
    TensorSpec* bias = block->add_tensors();
    bias->add_shape(77);
    bias->set_init_mean(1.0f);
  }
  return options;
}

inline SimulatedNetwork::Options Quiet() {
  return {absl::Microseconds(50), absl::Microseconds(50), 0, 0};
}

inline SimulatedNetwork::Options Rough() {
  return {absl::Microseconds(50), absl::Milliseconds(20), 0.1, 0.05};
}

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_CLUSTER_TEST_SUPPORT_H_
