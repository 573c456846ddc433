// SPDX-License-Identifier: Apache-2.0
#include "plan/link_rate.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tug {

absl::StatusOr<double> ParseLinkRate(const std::string& text) {
  absl::string_view rest = text;
  double unit = 0;
  for (const auto& [name, bits] :
       {std::pair{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1.0}}) {
    if (!absl::ConsumeSuffix(&rest, name)) continue;
    unit = bits;
    break;
  }
  uint32_t number = 0;
  const bool digits = std::all_of(rest.begin(), rest.end(), absl::ascii_isdigit);
  if (unit == 0 || rest.size() > 6 || !digits || !absl::SimpleAtoi(rest, &number) || number == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--link ", text, " is not a rate: write for example 100mbit or 1gbit"));
  }
  return number * unit;
}

double PayloadBytesPerSecond(double bits_per_second) { return bits_per_second / 8 * 1448 / 1514; }

}  // namespace tug
