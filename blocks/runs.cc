// SPDX-License-Identifier: Apache-2.0
#include "blocks/runs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace tug {
namespace {

static_assert(std::endian::native == std::endian::little, "runs are copied as they are");
static_assert(sizeof(ElementRun) == 2 * sizeof(uint32_t));

// Number of runs and the zero that follows it.
constexpr uint64_t kPreambleBytes = 2 * sizeof(uint32_t);

// Appends a run that begins at or after the last one's begin; merges overlapping or adjacent runs.
void Append(ElementRun run, ElementRuns& runs) {
  if (!runs.empty() && run.begin <= runs.back().end) {
    runs.back().end = std::max(runs.back().end, run.end);
  } else {
    runs.push_back(run);
  }
}

// Returns the end of the written list.
std::byte* WriteList(std::span<const ElementRun> runs, std::byte* out) {
  const uint32_t preamble[2] = {static_cast<uint32_t>(runs.size()), 0};
  std::memcpy(out, preamble, kPreambleBytes);
  if (!runs.empty()) std::memcpy(out + kPreambleBytes, runs.data(), runs.size_bytes());
  return out + kPreambleBytes + runs.size_bytes();
}

}  // namespace

ElementRuns RunsOfRows(std::span<const int32_t> rows, uint64_t row_elements,
                       uint64_t matrix_begin) {
  std::vector<int32_t> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  ElementRuns runs;
  for (const int32_t row : sorted) {
    const uint64_t begin = matrix_begin + static_cast<uint64_t>(row) * row_elements;
    const uint64_t end = begin + row_elements;
    TUG_CHECK(row >= 0 && end <= std::numeric_limits<uint32_t>::max());
    Append({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, runs);
  }
  return runs;
}

ElementRuns Merge(std::span<const ElementRun> a, std::span<const ElementRun> b) {
  ElementRuns runs;
  while (!a.empty() || !b.empty()) {
    std::span<const ElementRun>& next =
        b.empty() || (!a.empty() && a.front().begin <= b.front().begin) ? a : b;
    Append(next.front(), runs);
    next = next.subspan(1);
  }
  return runs;
}

ElementRuns Clip(std::span<const ElementRun> runs, uint64_t begin, uint64_t end) {
  ElementRuns clipped;
  auto run = std::partition_point(runs.begin(), runs.end(),
                                  [&](const ElementRun& r) { return r.end <= begin; });
  for (; run != runs.end() && run->begin < end; ++run) {
    clipped.push_back({static_cast<uint32_t>(std::max<uint64_t>(run->begin, begin) - begin),
                       static_cast<uint32_t>(std::min<uint64_t>(run->end, end) - begin)});
  }
  return clipped;
}

uint64_t ElementsOf(std::span<const ElementRun> runs) {
  uint64_t elements = 0;
  for (const ElementRun& run : runs) elements += run.end - run.begin;
  return elements;
}

uint64_t EncodedBytes(std::span<const ElementRun> runs, bool with_values) {
  return kPreambleBytes + runs.size_bytes() +
         (with_values ? ElementsOf(runs) * sizeof(float) : uint64_t{0});
}

void EncodeRuns(std::span<const ElementRun> runs, std::span<const float> elements,
                std::span<std::byte> out) {
  TUG_CHECK_EQ(out.size(), EncodedBytes(runs, true));
  std::byte* values = WriteList(runs, out.data());
  for (const ElementRun& run : runs) {
    const std::span<const float> part = elements.subspan(run.begin, run.end - run.begin);
    std::memcpy(values, part.data(), part.size_bytes());
    values += part.size_bytes();
  }
}

void EncodeRunList(std::span<const ElementRun> runs, std::span<std::byte> out) {
  TUG_CHECK_EQ(out.size(), EncodedBytes(runs, false));
  WriteList(runs, out.data());
}

std::optional<EncodedRuns> DecodeRuns(std::span<const std::byte> payload, uint64_t elements,
                                      bool with_values) {
  uint32_t preamble[2];
  if (payload.size() < kPreambleBytes) return std::nullopt;
  std::memcpy(preamble, payload.data(), kPreambleBytes);
  payload = payload.subspan(kPreambleBytes);
  const uint64_t list_bytes = uint64_t{preamble[0]} * sizeof(ElementRun);
  if (preamble[1] != 0 || list_bytes > payload.size()) return std::nullopt;

  EncodedRuns decoded;
  decoded.runs.resize(preamble[0]);  // bounded by the received bytes
  if (list_bytes > 0) std::memcpy(decoded.runs.data(), payload.data(), list_bytes);
  payload = payload.subspan(list_bytes);
  uint64_t free_from = 0;  // lowest valid begin of the next run
  for (const ElementRun& run : decoded.runs) {
    if (run.begin < free_from || run.end <= run.begin || run.end > elements) return std::nullopt;
    free_from = uint64_t{run.end} + 1;  // adjacent runs would be one run
  }
  const uint64_t value_bytes = with_values ? ElementsOf(decoded.runs) * sizeof(float) : 0;
  if (payload.size() != value_bytes) return std::nullopt;
  if (with_values) {
    decoded.values = {reinterpret_cast<const float*>(payload.data()), value_bytes / sizeof(float)};
  }
  return decoded;
}

void Scatter(const EncodedRuns& encoded, std::span<float> elements) {
  std::span<const float> values = encoded.values;
  for (const ElementRun& run : encoded.runs) {
    const size_t count = run.end - run.begin;
    std::memcpy(elements.subspan(run.begin, count).data(), values.data(), count * sizeof(float));
    values = values.subspan(count);
  }
}

}  // namespace tug
