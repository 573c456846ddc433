// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_COLLECTED_PASS_H_
#define TUG_MODEL_BACKEND_COLLECTED_PASS_H_

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/fields.h"

namespace tug {

// Operations of a pass with their arguments, collected before the first of them is queued.
class CollectedPass {
 public:
  struct Operation {
    absl::string_view name;  // must be a literal
    std::function<absl::Status()> queue;
  };

  // `queue(arguments...)` queues the operation. It must depend on no other mutable state.
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
  // Passes with equal keys queue the same operations with the same arguments.
  const std::string& key() const { return key_; }

 private:
  // Its address identifies an operation and the types of its arguments: every lambda has its own
  // type.
  template <typename Queue, typename... Arguments>
  static inline char kIdentity = 0;

  // Appends scalars and pointers as bytes, and structures field by field, which excludes padding.
  template <typename Value>
  void Write(const Value& value) {
    if constexpr (std::is_scalar_v<Value>) {
      key_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else {
      kernels::WithFields(value, [this](const auto&... fields) { (Write(fields), ...); });
    }
  }

  std::string key_;
  std::vector<Operation> operations_;
};

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_COLLECTED_PASS_H_
