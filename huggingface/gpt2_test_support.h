#ifndef TUG_HUGGINGFACE_GPT2_TEST_SUPPORT_H_
#define TUG_HUGGINGFACE_GPT2_TEST_SUPPORT_H_

// A small GPT-2, huggingface/testdata/tiny_gpt2, whose weights and logits are PyTorch's
// (deploy/compare/make_gpt2_fixture.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "huggingface/gpt2_config.h"
#include "huggingface/gpt2_export.h"
#include "huggingface/weights_source.h"
#include "model/layout.h"
#include "proto/job_config.h"

namespace tug {

inline constexpr char kTiny[] = "huggingface/testdata/tiny_gpt2";
inline constexpr uint32_t kBytes = 256;  // symbols of the BYTE tokenizer

inline std::string Contents(const std::string& path) {
  auto bytes = ReadWholeFile(path, 1 << 22);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *std::move(bytes);
}

// A resolved job with the fixture's model.
inline JobConfig TinyJob() {
  JobConfig job;
  job.mutable_data()->set_path("text");
  job.mutable_data()->set_resolved_symbols(kBytes);
  const auto model = ReadHfConfig(kTiny);
  EXPECT_TRUE(model.ok()) << model.status();
  *job.mutable_model() = *model;
  FillDefaults(job, 1);
  return job;
}

inline BlockTable LayoutOf(const JobConfig& job) {
  return ModelLayout(job.model(), job.data().resolved_symbols(), 0);
}

// All weights, by block, read in ranges that end anywhere.
inline std::vector<std::vector<float>> ReadAll(const WeightsSource& source,
                                               const BlockTable& blocks) {
  std::vector<std::vector<float>> weights;
  for (const BlockSpec& block : blocks.blocks()) {
    std::vector<float>& values = weights.emplace_back(ElementCount(block));
    const uint64_t step = 37 + values.size() / 5;
    for (uint64_t begin = 0; begin < values.size(); begin += step) {
      const uint64_t end = std::min<uint64_t>(values.size(), begin + step);
      const auto out = std::span(values).subspan(begin, end - begin);
      EXPECT_TRUE(source.ReadRange(block, begin, end, out).ok());
    }
  }
  return weights;
}

class HuggingFaceTest : public testing::Test {
 protected:
  HuggingFaceTest()
      : folder_((std::filesystem::path(testing::TempDir()) /
                 testing::UnitTest::GetInstance()->current_test_info()->name())
                    .lexically_normal()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

  // A copy of the fixture with fields of its config.json changed.
  std::string Changed(const nlohmann::json& fields) {
    std::filesystem::create_directories(Path("changed"));
    for (const std::string name : {"/config.json", "/model.safetensors"}) {
      if (std::filesystem::exists(Path("changed") + name)) continue;
      std::ofstream(Path("changed") + name, std::ios::binary) << Contents(kTiny + name);
    }
    nlohmann::json config = nlohmann::json::parse(Contents(Path("changed") + "/config.json"));
    config.merge_patch(fields);
    std::ofstream(Path("changed") + "/config.json") << config.dump();
    return Path("changed");
  }

  // A checkpoint with the fixture's weights.
  std::string WriteCheckpoint(const JobConfig& job) {
    const BlockTable blocks = LayoutOf(job);
    const auto source = WeightsSource::Open(kTiny);
    EXPECT_TRUE(source.ok()) << source.status();
    auto weights = ReadAll(*source, blocks);
    weights[0][0] = first_weight_.value_or(weights[0][0]);
    std::vector<std::vector<float>> zeros;
    std::vector<SegmentPart> parts;
    for (int i = 0; i < blocks.blocks_size(); ++i) {
      zeros.emplace_back(weights[i].size());
      parts.push_back(
          {blocks.blocks(i).name(), 0, weights[i].size(), weights[i], zeros.back(), zeros.back()});
    }
    std::filesystem::create_directories(Path("run"));
    const auto file = WriteLanePart(Path("run"), 3, 0, parts);
    EXPECT_TRUE(file.ok()) << file.status();
    Manifest manifest;
    *manifest.mutable_config() = job;
    *manifest.mutable_blocks() = blocks;
    manifest.set_version(3);
    ManifestFile& entry = *manifest.add_files();
    entry.set_name(file->name);
    entry.set_size_bytes(file->size_bytes);
    entry.set_xxh3(file->xxh3);
    const auto committed = CommitCheckpoint(Path("run"), manifest, Retention{.keep = 1});
    EXPECT_TRUE(committed.ok()) << committed.status();
    return *committed;
  }

  absl::StatusOr<ExportedGpt2> Export(const JobConfig& job, const std::string& name) {
    auto checkpoint = CheckpointReader::Open(WriteCheckpoint(job));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return ExportGpt2(*checkpoint, Path(name));
  }

  std::string ErrorOfCheck(const std::string& folder, const JobConfig& job) {
    const auto source = WeightsSource::Open(folder);
    if (!source.ok()) return std::string(source.status().message());
    return std::string(source->Check(job, LayoutOf(job)).message());
  }

  const std::string folder_;
  std::optional<float> first_weight_;  // of checkpoints, in place of the fixture's
};

}  // namespace tug

#endif  // TUG_HUGGINGFACE_GPT2_TEST_SUPPORT_H_
