// SPDX-License-Identifier: Apache-2.0
// Writes and opens one lane's file of a 10.8M-parameter model (weights, m, v: 130 MB) and of a
// model eight times as large. "bytes_per_second" counts the file: writing ends with fsync, opening
// reads the file from memory.

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/files/test_folder.h"
#include "benchmark/benchmark.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_fixture.h"

namespace tug {
namespace {

constexpr uint64_t kSegmentElements = 1 << 18;

struct Lane {
  explicit Lane(uint64_t elements) : values(elements, 0.5f) {
    for (uint64_t begin = 0; begin < elements; begin += kSegmentElements) {
      const uint64_t end = std::min(elements, begin + kSegmentElements);
      const auto part = std::span<const float>(values).subspan(begin, end - begin);
      segments.push_back({"block", begin, end, part, part, part});
    }
  }
  std::vector<float> values;
  std::vector<SegmentPart> segments;
};

void BM_WriteLanePart(benchmark::State& state) {
  const TestFolder run;
  const Lane lane(static_cast<uint64_t>(state.range(0)));
  uint64_t size_bytes = 0;
  for (auto _ : state) {
    const auto part = WriteLanePart(run.path(), 1, 0, lane.segments);
    TUG_CHECK_OK(part);
    size_bytes += part->size_bytes;
  }
  state.SetBytesProcessed(static_cast<int64_t>(size_bytes));
}
BENCHMARK(BM_WriteLanePart)
    ->Arg(10'800'000)
    ->Arg(86'400'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void BM_OpenAndVerify(benchmark::State& state) {
  const TestFolder run;
  const Lane lane(static_cast<uint64_t>(state.range(0)));
  const auto part = WriteLanePart(run.path(), 1, 0, lane.segments);
  TUG_CHECK_OK(part);
  Manifest manifest;
  manifest.set_version(1);
  ManifestFile& file = *manifest.add_files();
  file.set_name(part->name);
  file.set_size_bytes(part->size_bytes);
  file.set_xxh3(part->xxh3);
  TUG_CHECK_OK(CommitCheckpoint(run.path(), manifest, {.keep = 1}));
  for (auto _ : state) TUG_CHECK_OK(CheckpointReader::Open(run.path()));
  state.SetBytesProcessed(static_cast<int64_t>(part->size_bytes * state.iterations()));
}
BENCHMARK(BM_OpenAndVerify)
    ->Arg(10'800'000)
    ->Arg(86'400'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tug
