#ifndef TUG_MODEL_COLLECTED_PASS_H_
#define TUG_MODEL_COLLECTED_PASS_H_

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/linear_cuda.h"

namespace tug {

// Operations of a pass, collected with their arguments before the first of them is queued.
class CollectedPass {
 public:
  struct Operation {
    absl::string_view name;  // of a literal
    std::function<absl::Status()> queue;
  };

  // `queue(arguments...)` queues the operation; it depends on nothing else that changes.
  template <typename Queue, typename... Arguments>
  void Add(absl::string_view name, Queue queue, const Arguments&... arguments) {
    Write(&kIdentity<Queue, Arguments...>);
    (Write(arguments), ...);
    operations_.push_back({name, [=] { return queue(arguments...); }});
  }
  void Clear() {
    key_.clear();
    operations_.clear();
  }

  const std::vector<Operation>& operations() const { return operations_; }
  // Two passes with the same key queue the same, argument by argument.
  const std::string& key() const { return key_; }

 private:
  // Its address stands for an operation and the types of its arguments: a lambda has a type of its
  // own.
  template <typename Queue, typename... Arguments>
  static inline char kIdentity = 0;

  // Scalars and pointers as they are in memory; structures by their fields, which leaves out
  // what is between them.
  template <typename Scalar>
  requires std::is_scalar_v<Scalar>
  void Write(const Scalar& value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Write(const kernels::AttentionShape& s) {
    WriteAll(s.batch, s.queries, s.keys, s.heads, s.head_dim, s.causal, s.key_counts);
  }
  template <typename T>
  void Write(const kernels::AttentionOperands<T>& o) {
    WriteAll(o.q, o.k, o.v, o.q_stride, o.kv_stride);
  }
  template <typename T>
  void Write(const kernels::cuda::LinearWeights<T>& w) {
    WriteAll(w.in, w.out, w.order, w.data);
  }
  void Write(const kernels::DropoutKey& k) { WriteAll(k.seed, k.step, k.sample, k.site); }
  void Write(const kernels::Objective& o) { WriteAll(o.label_smoothing, o.z_loss); }
  template <typename... Values>
  void WriteAll(const Values&... values) {
    (Write(values), ...);
  }

  std::string key_;
  std::vector<Operation> operations_;
};

}  // namespace tug

#endif  // TUG_MODEL_COLLECTED_PASS_H_
