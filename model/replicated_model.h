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
  // Of replicas, for errors: "GPU 0", "GPU 1". As many as there are replicas.
  std::vector<std::string> names;
  // Makes a replica, on the thread that calls it from then on and destroys it; all replicas at the
  // same time. It takes micro-batches of no sample, and its gradients are what its caller is given
  // of the sum over all replicas: a part of what is bound, or all of it.
  std::function<absl::StatusOr<std::unique_ptr<Model>>(int replica)> make;
  // Connects it with the others, on the same thread, when all are made.
  std::function<absl::Status(int replica)> join;
  // Lets none of them wait for another any more. Called from any thread, behind the first error.
  std::function<void()> abort;
  // For what the caller waits for; a pass of a micro-batch may be part of that.
  absl::Duration timeout = absl::Minutes(5);
};

// One model, several replicas of it that share a micro-batch: the data parallelism of one worker,
// of which nobody else knows.
//
//   1. Start cuts the s samples into as many contiguous parts as there are replicas, n; the first s
//      mod n of them have a sample more, and with s < n some have none. Dropout names samples as in
//      the whole, so that the same elements are dropped.
//   2. Each replica has a thread, which makes the calls that this model is given, one after
//      another. So it queues (Model::queues) whatever the replicas do: Forward and Backward return
//      at once.
//   3. What has a result waits for all replicas. Losses are added in the order of replicas; how
//      gradients are, replicas know among themselves.
//
// Weights and gradients that are bound are bound to every replica. Logits are the first one's.
// The first error of a replica is the model's, with the replica's name, and ends what the others
// wait for of it. DEADLINE_EXCEEDED: it took longer than `timeout`; that ends it too.
//
// Errors: those of `make` and `join`, of the first replica that has one, with its name.
absl::StatusOr<std::unique_ptr<Model>> NewReplicatedModel(ReplicatedModelOptions options);

}  // namespace tug

#endif  // TUG_MODEL_REPLICATED_MODEL_H_
