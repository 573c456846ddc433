// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_REPLICATED_MODEL_H_
#define TUG_MODEL_REPLICATED_MODEL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/model.h"

namespace tug {

struct ReplicatedModelOptions {
  // Names of the replicas, for errors: "GPU 0", "GPU 1"; one per replica.
  std::vector<std::string> names;
  // Makes a replica, on the thread that then calls it and destroys it; all replicas at the same
  // time. A replica accepts micro-batches without samples. It writes to a bound gradient its share
  // of the sum over all replicas: a part of the gradient, or all of it.
  std::function<absl::StatusOr<std::unique_ptr<Model>>(int replica)> make;
  // Connects the replica with the others, on the same thread, once all are made.
  std::function<absl::Status(int replica)> join;
  // Ends all waits of replicas for one another, now and later. Called on any thread after the first
  // error.
  std::function<void()> abort;
  // Limit of a wait of the caller, which may include a pass of a micro-batch.
  absl::Duration timeout = absl::Minutes(5);
};

// One model as several replicas that share each micro-batch: data parallelism within one worker,
// invisible to the rest of the job.
//
//   1. Start cuts the s samples into n contiguous parts, one per replica; the first s mod n parts
//      have one sample more, and with s < n some have none. Dropout numbers samples as in the
//      whole, so the same elements are dropped.
//   2. Each replica has a thread that executes this model's calls one after another. So this model
//      queues (Model::queues) whether or not replicas do: Forward and Backward return at once.
//   3. Calls with a result wait for all replicas. Losses are added in replica order; replicas add
//      gradients among themselves.
//
// Bound weights and gradients are bound to every replica. Logits are computed by the first one. The
// first error of a replica, with its name, becomes the model's and ends the others' waits for that
// replica. DEADLINE_EXCEEDED: a call took longer than `timeout`; that ends the waits too.
//
// Errors: those of `make` and `join`, of the first replica that fails, with its name.
absl::StatusOr<std::unique_ptr<Model>> NewReplicatedModel(ReplicatedModelOptions options);

}  // namespace tug

#endif  // TUG_MODEL_REPLICATED_MODEL_H_
