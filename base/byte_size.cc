// SPDX-License-Identifier: Apache-2.0
#include "base/byte_size.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tug {

std::string ByteSizeText(uint64_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, " GiB"}, {20, " MiB"}, {10, " KiB"}}) {
    if (bytes > 0 && bytes % (uint64_t{1} << shift) == 0) return absl::StrCat(bytes >> shift, unit);
  }
  return absl::StrCat(bytes, " B");
}

}  // namespace tug
