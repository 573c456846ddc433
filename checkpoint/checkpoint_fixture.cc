// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint_fixture.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "base/philox.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr char kKinds[] = {'w', 'm', 'v'};

std::vector<float> Values(size_t block, char kind, const TestCheckpoint& what) {
  std::vector<float> values(TestBlocks()[block].elements);
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = TestValue(block, kind, i, what.version, what.salt);
  }
  return values;
}

}  // namespace

const std::vector<TestBlock>& TestBlocks() {
  static const auto* blocks =
      new std::vector<TestBlock>{{"layer/0", 5000}, {"layer/1", 77}, {"bias", 1}};
  return *blocks;
}

float TestValue(size_t block, char kind, uint64_t element, uint64_t version, uint32_t salt) {
  const auto bits = Philox4x32({static_cast<uint32_t>(element), static_cast<uint32_t>(block),
                                static_cast<uint32_t>(kind), static_cast<uint32_t>(version)},
                               {salt, 0});
  return UniformFromBits(bits[0]);
}

absl::StatusOr<Manifest> WriteTestParts(const std::string& run_dir, const TestCheckpoint& what) {
  std::mt19937_64 random(what.seed);
  std::vector<std::vector<float>> values;  // storage that the segments point into
  values.reserve(3 * TestBlocks().size());
  std::vector<std::vector<SegmentPart>> lanes(what.lanes);
  Manifest manifest;
  manifest.set_version(what.version);
  manifest.set_timeline(what.salt);
  manifest.mutable_config()->set_name("test");
  for (size_t b = 0; b < TestBlocks().size(); ++b) {
    const TestBlock& block = TestBlocks()[b];
    manifest.mutable_blocks()->add_blocks()->set_name(block.name);
    for (const char kind : kKinds) values.push_back(Values(b, kind, what));
    for (uint64_t begin = 0; begin < block.elements;) {
      const uint64_t size =
          std::min<uint64_t>(1 + random() % (block.elements / 3 + 1), block.elements - begin);
      const auto slice = [&](size_t kind) {
        return std::span<const float>(values[3 * b + kind]).subspan(begin, size);
      };
      lanes[random() % what.lanes].push_back(
          {block.name, begin, begin + size, slice(0), slice(1), slice(2)});
      begin += size;
    }
  }
  for (uint32_t lane = 0; lane < what.lanes; ++lane) {
    ASSIGN_OR_RETURN(const PartFile part, WriteLanePart(run_dir, what.version, lane, lanes[lane]));
    ManifestFile& file = *manifest.add_files();
    file.set_name(part.name);
    file.set_size_bytes(part.size_bytes);
    file.set_xxh3(part.xxh3);
  }
  return manifest;
}

absl::StatusOr<std::string> WriteTestCheckpoint(const std::string& run_dir,
                                                const TestCheckpoint& what) {
  ASSIGN_OR_RETURN(const Manifest manifest, WriteTestParts(run_dir, what));
  return CommitCheckpoint(run_dir, manifest, {.keep = what.keep});
}

absl::StatusOr<Manifest> VerifyTestCheckpoint(const std::string& folder) {
  ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(folder));
  const Manifest& manifest = reader.manifest();
  for (size_t b = 0; b < TestBlocks().size(); ++b) {
    const TestBlock& block = TestBlocks()[b];
    for (const char kind : kKinds) {
      std::vector<float> found(block.elements);
      RETURN_IF_ERROR(reader.ReadRange(block.name, 0, block.elements, kind, found));
      for (uint64_t i = 0; i < found.size(); ++i) {
        if (found[i] != TestValue(b, kind, i, manifest.version(), manifest.timeline())) {
          return absl::InternalError(absl::StrCat("element ", i, " of ", block.name));
        }
      }
    }
  }
  return manifest;
}

}  // namespace tug
