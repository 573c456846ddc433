// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_NET_SAME_SECRET_H_
#define TUG_BASE_NET_SAME_SECRET_H_

#include "absl/strings/string_view.h"

namespace tug {

// Constant-time comparison: takes equally long for any two texts of the same length.
bool SameSecret(absl::string_view one, absl::string_view other);

}  // namespace tug

#endif  // TUG_BASE_NET_SAME_SECRET_H_
