// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tug {
namespace {

// Optimal string alignment distance. Rows of the table: prefixes of `a`; columns: of `b`.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_before, before(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) before[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool differ = a[i - 1] != b[j - 1];
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + differ});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
    two_before = before;
    before = row;
  }
  return before[b.size()];
}

}  // namespace

std::string NearestName(std::string_view word, std::span<const std::string> names) {
  const std::string lower = absl::AsciiStrToLower(std::string(word));
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string& name : names) {
    const size_t distance = Distance(lower, absl::AsciiStrToLower(name));
    if (distance >= least || distance >= name.size()) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> names) {
  const std::string nearest = NearestName(word, names);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

}  // namespace tug
