// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_sizes.h"

#include <bit>
#include <cctype>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/byte_size.h"

namespace tug {
namespace {

constexpr uint64_t kSmallestPartition = uint64_t{4} << 10;
constexpr uint64_t kLargestPartition = uint64_t{256} << 20;

// Bits to shift by for a unit after the digits; -1 if it is not a unit.
int ShiftOf(const std::string& unit) {
  if (unit.empty() || unit == "B") return 0;
  if (unit.size() > 1 && unit.substr(1) != "iB" && unit.substr(1) != "B") return -1;
  switch (std::toupper(static_cast<unsigned char>(unit[0]))) {
    case 'K':
      return 10;
    case 'M':
      return 20;
    case 'G':
      return 30;
    default:
      return -1;
  }
}

}  // namespace

absl::StatusOr<uint64_t> ParseByteSize(const std::string& text) {
  size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
  uint64_t number = 0;
  const int shift = ShiftOf(text.substr(digits));
  if (!absl::SimpleAtoi(text.substr(0, digits), &number) || shift < 0 ||
      number > std::numeric_limits<uint64_t>::max() >> shift) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a size: write bytes, or 4K, 1M, 2G"));
  }
  return number << shift;
}

absl::StatusOr<bool> ParseOnOrOff(const std::string& option, const std::string& text) {
  if (text == "on" || text == "off") return text == "on";
  return absl::InvalidArgumentError(
      absl::StrCat(option, " ", text, " is invalid: write on or off"));
}

absl::Status CheckPartitionBytes(uint64_t bytes) {
  if (std::has_single_bit(bytes) && bytes >= kSmallestPartition && bytes <= kLargestPartition) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--bytes ", bytes, " is not a valid partition size: give a power of two from ",
                   ByteSizeText(kSmallestPartition), " to ", ByteSizeText(kLargestPartition)));
}

uint64_t ServerMemoryLine(uint64_t parameters, bool bf16_pulls, uint64_t granted_credit_bytes) {
  const uint64_t bytes_per_parameter = 12 + 4 + 4 + (bf16_pulls ? 2 : 0);
  return parameters * bytes_per_parameter + granted_credit_bytes + (uint64_t{64} << 20);
}

}  // namespace tug
