// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files/test_folder.h"
#include "checkpoint/best_checkpoint.h"
#include "checkpoint/checkpoint_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Checkpoint, ReadsAnyElementRangeWithAnySegments) {
  const uint64_t seed = 20240522;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  for (uint64_t version = 1; version <= 12; ++version) {
    const TestFolder run;
    const TestCheckpoint what{.version = version,
                              .salt = static_cast<uint32_t>(random()),
                              .lanes = 1 + static_cast<uint32_t>(random() % 7),
                              .seed = random()};
    const auto folder = WriteTestCheckpoint(run.path(), what);
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_TRUE(VerifyTestCheckpoint(*folder).ok());
    const auto reader = CheckpointReader::Open(*folder);
    for (int trial = 0; trial < 100; ++trial) {
      const size_t b = random() % TestBlocks().size();
      const uint64_t begin = random() % (TestBlocks()[b].elements + 1);
      const uint64_t end = begin + random() % (TestBlocks()[b].elements - begin + 1);
      const char kind = "wmv"[random() % 3];
      std::vector<float> out(end - begin);
      ASSERT_TRUE(reader->ReadRange(TestBlocks()[b].name, begin, end, kind, out).ok());
      for (uint64_t i = begin; i < end; ++i) {
        ASSERT_EQ(out[i - begin], TestValue(b, kind, i, version, what.salt));
      }
    }
  }
}

TEST(Checkpoint, HoldsTheConfigurationToTheLimitsOfAJob) {
  const auto refusal = [](void (*change)(JobConfig&)) {
    const TestFolder run;
    auto manifest = WriteTestParts(run.path(), {.version = 5});
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    change(*manifest->mutable_config());
    EXPECT_TRUE(CommitCheckpoint(run.path(), *manifest, {.keep = 1}).ok());
    return std::string(
        FindCheckpoint(run.path() + "/checkpoints/step-00000005").status().message());
  };
  EXPECT_THAT(refusal([](JobConfig& config) { config.mutable_model()->set_layers(20'000'000); }),
              AllOf(HasSubstr("manifest.textproto"), HasSubstr("model.layers = 20000000")));
  EXPECT_THAT(
      refusal([](JobConfig& config) { config.mutable_data()->set_resolved_symbols(4294967295); }),
      HasSubstr("data.resolved_symbols"));
  EXPECT_EQ(refusal([](JobConfig& config) { config.mutable_model()->set_layers(7); }), "");
}

TEST(Checkpoint, KeepsTheManifestAsItWas) {
  const TestFolder run;
  auto manifest = WriteTestParts(run.path(), {.version = 500, .salt = 7});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  manifest->mutable_config()->set_name("a name with \"quotes\"\n# xxh3 0000000000000000\n");
  manifest->set_validation_loss(0.1);
  const auto folder = CommitCheckpoint(run.path() + "/", *manifest, {.keep = 2});
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(*folder, run.path() + "/checkpoints/step-00000500");
  EXPECT_THAT(Names(*folder), ElementsAre("lane-000.safetensors", "lane-001.safetensors",
                                          "lane-002.safetensors", "manifest.textproto"));
  for (const std::string& path : {run.path(), run.path() + "/", *folder, *folder + "//"}) {
    const auto found = FindCheckpoint(path);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->folder, *folder);
    manifest->set_format_version(1);
    EXPECT_EQ(found->manifest.SerializeAsString(), manifest->SerializeAsString());
  }
}

TEST(Checkpoint, ReportsElementsThatNoFileHolds) {
  const TestFolder run;
  const auto folder = WriteTestCheckpoint(run.path(), {});
  const auto reader = CheckpointReader::Open(*folder);
  std::vector<float> out(3);
  const absl::Status beyond = reader->ReadRange("layer/1", 75, 78, 'w', out);
  EXPECT_TRUE(absl::IsNotFound(beyond));
  EXPECT_THAT(Message(beyond),
              AllOf(HasSubstr(*folder), HasSubstr("element 77"), HasSubstr("layer/1")));
  EXPECT_THAT(Message(reader->ReadRange("layer/2", 0, 3, 'm', out)), HasSubstr("layer/2"));
}

absl::StatusOr<std::string> CommitOnePart(const std::string& run_dir,
                                          std::span<const SegmentPart> segments) {
  const auto part = WriteLanePart(run_dir, 1, 0, segments);
  if (!part.ok()) return part.status();
  Manifest manifest;
  manifest.set_version(1);
  ManifestFile& file = *manifest.add_files();
  file.set_name(part->name);
  file.set_size_bytes(part->size_bytes);
  file.set_xxh3(part->xxh3);
  return CommitCheckpoint(run_dir, manifest, {.keep = 1});
}

TEST(Checkpoint, KeepsTheClocksOfSegmentsThatHaveSome) {
  const TestFolder run;
  const std::vector<float> values(9, 1.0f);
  const std::vector<uint64_t> first = {7, 3, 4}, second = {uint64_t{1} << 40, 5, 0};
  const auto of = [&](uint64_t begin, uint64_t end, const std::vector<uint64_t>& clocks) {
    const auto part = std::span(values).first(end - begin);
    return SegmentPart{"a/b", begin, end, part, part, part, clocks};
  };
  const SegmentPart segments[] = {of(0, 5, first), of(5, 9, second)};
  const auto folder = CommitOnePart(run.path(), segments);
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto reader = CheckpointReader::Open(*folder);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(reader->has_clocks());
  EXPECT_EQ(*reader->ReadClocks("a/b", 0, 5), first);
  EXPECT_EQ(*reader->ReadClocks("a/b", 5, 9), second);
  EXPECT_TRUE(absl::IsNotFound(reader->ReadClocks("a/b", 0, 9).status()));
  std::vector<float> out(9);
  EXPECT_TRUE(reader->ReadRange("a/b", 0, 9, 'v', out).ok());
  EXPECT_EQ(out, values);
}

TEST(Checkpoint, HoldsNoMomentsThatAreNotKept) {
  const TestFolder run;
  const std::vector<float> values(9, 1.0f);
  const SegmentPart segments[] = {{"b", 0, 9, values, values, {}}};
  const auto folder = CommitOnePart(run.path(), segments);
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto reader = CheckpointReader::Open(*folder);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_FALSE(reader->has_clocks());
  std::vector<float> out(9);
  EXPECT_TRUE(reader->ReadRange("b", 0, 9, 'm', out).ok());
  const absl::Status missing = reader->ReadRange("b", 0, 9, 'v', out);
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(Message(missing), HasSubstr("another model or optimizer"));
}

TEST(Checkpoint, RefusesElementsThatAreThereTwice) {
  const TestFolder run;
  const std::vector<float> values(8, 1.0f);
  const SegmentPart segments[] = {
      {"b", 0, 8, values, values, values},
      {"b", 7, 8, std::span(values).first(1), std::span(values).first(1),
       std::span(values).first(1)},
  };
  Manifest manifest;
  manifest.set_version(1);
  for (uint32_t lane = 0; lane < 2; ++lane) {
    const auto part = WriteLanePart(run.path(), 1, lane, std::span(segments).subspan(lane, 1));
    ASSERT_TRUE(part.ok()) << part.status();
    ManifestFile& file = *manifest.add_files();
    file.set_name(part->name);
    file.set_size_bytes(part->size_bytes);
    file.set_xxh3(part->xxh3);
  }
  const auto folder = CommitCheckpoint(run.path(), manifest, {.keep = 1});
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto reader = CheckpointReader::Open(*folder);
  EXPECT_TRUE(absl::IsDataLoss(reader.status()));
  EXPECT_THAT(Message(reader.status()), AllOf(HasSubstr(*folder), HasSubstr("twice")));
}

TEST(Checkpoint, LanesWriteAtOnce) {
  const TestFolder run;
  const std::vector<float> values(50'000, 0.25f);
  std::vector<PartFile> parts(8);
  std::vector<std::thread> threads;
  for (uint32_t lane = 0; lane < parts.size(); ++lane) {
    threads.emplace_back([&, lane] {
      const SegmentPart segment{
          "b", lane * values.size(), (lane + 1) * values.size(), values, values, values};
      auto part = WriteLanePart(run.path(), 3, lane, {&segment, 1});
      ASSERT_TRUE(part.ok()) << part.status();
      parts[lane] = *std::move(part);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Manifest manifest;
  manifest.set_version(3);
  for (const PartFile& part : parts) {
    ManifestFile& file = *manifest.add_files();
    file.set_name(part.name);
    file.set_size_bytes(part.size_bytes);
    file.set_xxh3(part.xxh3);
  }
  ASSERT_TRUE(CommitCheckpoint(run.path(), manifest, {.keep = 1}).ok());
  const auto reader = CheckpointReader::Open(run.path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<float> out(8 * values.size());
  EXPECT_TRUE(reader->ReadRange("b", 0, out.size(), 'v', out).ok());
  EXPECT_EQ(out, std::vector<float>(out.size(), 0.25f));
}

std::vector<uint64_t> VersionsIn(const std::string& run_dir) {
  std::vector<uint64_t> versions;
  for (uint64_t version = 1; version < 100; ++version) {
    const std::string folder = absl::StrCat(
        run_dir, absl::StrCat("/checkpoints/step-", absl::Dec(version, absl::kZeroPad8)));
    if (FindCheckpoint(folder).ok()) versions.push_back(version);
  }
  return versions;
}

TEST(Checkpoint, TheBestOneStaysBesideTheNewestAndHasAName) {
  TestFolder run;
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1, .keep = 2}).ok());
  EXPECT_EQ(FindCheckpoint(run.path() + "/best").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadBest(run.path()).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteBest(run.path(), {1, 1.0 / 3}).ok());
  EXPECT_EQ(ReadBest(run.path())->loss, 1.0 / 3);
  for (uint64_t version = 2; version <= 5; ++version) {
    ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = version, .keep = 2}).ok());
  }
  EXPECT_EQ(VersionsIn(run.path()), (std::vector<uint64_t>{1, 4, 5}));
  EXPECT_EQ(FindCheckpoint(run.path() + "/best/")->manifest.version(), 1u);
  EXPECT_EQ(FindCheckpoint(run.path())->manifest.version(), 5u);

  ASSERT_TRUE(WriteBest(run.path(), {4, 0.25}).ok());
  const uint64_t held[] = {5};
  ASSERT_TRUE(TrimCheckpoints(run.path(), {.keep = 1, .held = held}).ok());
  EXPECT_EQ(VersionsIn(run.path()), (std::vector<uint64_t>{4, 5}));
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 6, .keep = 1}).ok());
  EXPECT_EQ(VersionsIn(run.path()), (std::vector<uint64_t>{4, 6}));
}

TEST(Checkpoint, ADamagedBestFileIsNamedWithTheRemedy) {
  TestFolder run;
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1}).ok());
  std::ofstream(run.path() + "/best") << "checkpoints/step-0000";
  const absl::Status status = FindCheckpoint(run.path() + "/best").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(std::string(status.message()).find("best is damaged: delete it"), std::string::npos);
  EXPECT_TRUE(FindCheckpoint(run.path()).ok());
}

TEST(Checkpoint, ADamagedBestFileKeepsEveryCheckpoint) {
  TestFolder run;
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1, .keep = 1}).ok());
  std::ofstream(run.path() + "/best") << "checkpoints/step-0000";
  for (uint64_t version = 2; version <= 4; ++version) {
    ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = version, .keep = 1}).ok());
  }
  EXPECT_EQ(TrimCheckpoints(run.path(), {.keep = 1}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(VersionsIn(run.path()), (std::vector<uint64_t>{1, 2, 3, 4}));
  ASSERT_TRUE(RemoveBest(run.path()).ok());
  ASSERT_TRUE(TrimCheckpoints(run.path(), {.keep = 1}).ok());
  EXPECT_EQ(VersionsIn(run.path()), std::vector<uint64_t>{4});
}

TEST(Checkpoint, KeepsTheNewestAndRemovesUnfinishedOnes) {
  const TestFolder run;
  for (uint64_t version = 1; version <= 5; ++version) {
    ASSERT_TRUE(WriteTestParts(run.path(), {.version = version * 10 - 1}).ok());  // never committed
    ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = version * 10, .keep = 3}).ok());
  }
  ASSERT_TRUE(WriteTestParts(run.path(), {.version = 60}).ok());  // being written
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 51, .keep = 2}).ok());
  EXPECT_THAT(Names(run.path() + "/checkpoints"),
              ElementsAre("step-00000050", "step-00000051", "step-00000060.tmp"));
  ASSERT_TRUE(DiscardUnfinished(run.path()).ok());
  EXPECT_THAT(Names(run.path() + "/checkpoints"), ElementsAre("step-00000050", "step-00000051"));
}

TEST(Checkpoint, NeverRemovesTheOneJustCommitted) {
  const TestFolder run;
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1000, .keep = 1}).ok());
  const auto folder = WriteTestCheckpoint(run.path(), {.version = 600, .keep = 1});
  ASSERT_TRUE(folder.ok());
  EXPECT_TRUE(VerifyTestCheckpoint(*folder).ok());
}

TEST(Checkpoint, ADamagedOneIsNotCountedAmongThoseKept) {
  const TestFolder run;
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1}).ok());
  const auto damaged = WriteTestCheckpoint(run.path(), {.version = 2});
  std::filesystem::resize_file(*damaged + "/lane-001.safetensors", 100);
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 3}).ok());
  EXPECT_THAT(Names(run.path() + "/checkpoints"),
              ElementsAre("step-00000001", "step-00000002", "step-00000003"));
}

TEST(Checkpoint, ReplacesOneOfTheSameVersionAndItsStrayFiles) {
  const TestFolder run;
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 5, .salt = 1, .keep = 1}).ok());
  ASSERT_TRUE(WriteTestParts(run.path(), {.version = 5, .salt = 2, .lanes = 6}).ok());
  const auto folder =
      WriteTestCheckpoint(run.path(), {.version = 5, .salt = 3, .lanes = 2, .keep = 1});
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_THAT(Names(run.path() + "/checkpoints"), ElementsAre("step-00000005"));
  EXPECT_THAT(Names(*folder),
              ElementsAre("lane-000.safetensors", "lane-001.safetensors", "manifest.textproto"));
  const auto manifest = VerifyTestCheckpoint(*folder);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->timeline(), 3u);
}

TEST(Checkpoint, FindsTheOldOneWhereAReplacementWasCutShort) {
  const TestFolder run;
  const auto folder = WriteTestCheckpoint(run.path(), {.version = 5});
  std::filesystem::rename(*folder, *folder + ".old");
  ASSERT_TRUE(DiscardUnfinished(run.path()).ok());
  EXPECT_TRUE(VerifyTestCheckpoint(run.path()).ok());
  ASSERT_TRUE(TrimCheckpoints(run.path(), {.keep = 1}).ok());
  EXPECT_TRUE(VerifyTestCheckpoint(run.path()).ok()) << "the only copy";
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 6, .keep = 2}).ok());
  EXPECT_THAT(Names(run.path() + "/checkpoints"),
              ElementsAre("step-00000005.old", "step-00000006"));
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 7, .keep = 2}).ok());
  EXPECT_THAT(Names(run.path() + "/checkpoints"), ElementsAre("step-00000006", "step-00000007"));
}

TEST(Checkpoint, AnOldOneBesideItsReplacementGoes) {
  const TestFolder run;
  const auto folder = WriteTestCheckpoint(run.path(), {.version = 5, .salt = 1});
  std::filesystem::copy(*folder, *folder + ".old");
  ASSERT_TRUE(TrimCheckpoints(run.path(), {.keep = 2}).ok());
  EXPECT_THAT(Names(run.path() + "/checkpoints"), ElementsAre("step-00000005"));
}

TEST(Checkpoint, DoesNotCommitWithoutEveryFileWhole) {
  const TestFolder run;
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1}).ok());
  const auto manifest = WriteTestParts(run.path(), {.version = 2});
  const std::string lane = run.path() + "/checkpoints/step-00000002.tmp/lane-001.safetensors";
  std::filesystem::resize_file(lane, 8);
  absl::Status status = CommitCheckpoint(run.path(), *manifest, {.keep = 1}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr(lane), HasSubstr("8 bytes")));
  std::filesystem::remove(lane);
  status = CommitCheckpoint(run.path(), *manifest, {.keep = 1}).status();
  EXPECT_THAT(Message(status), AllOf(HasSubstr(lane), HasSubstr("missing")));
  EXPECT_EQ(FindCheckpoint(run.path())->manifest.version(), 1u);
}

TEST(Checkpoint, SaysWhereItLookedWhenThereIsNone) {
  const TestFolder run;
  const std::string nowhere = run.path() + "/nowhere";
  const absl::Status none = FindCheckpoint(nowhere).status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(Message(none), AllOf(HasSubstr(nowhere), HasSubstr("; name a run folder")));
  EXPECT_TRUE(absl::IsNotFound(WriteLanePart(nowhere, 1, 0, {}).status()));
  EXPECT_THAT(Message(FindCheckpoint(run.path()).status()), HasSubstr(run.path()));
  ASSERT_TRUE(WriteTestParts(run.path(), {.version = 2}).ok());
  const absl::Status unfinished = FindCheckpoint(run.path()).status();
  EXPECT_TRUE(absl::IsNotFound(unfinished));
  EXPECT_THAT(Message(unfinished), HasSubstr(run.path() + "/checkpoints; "));
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1}).ok());
  const std::string tmp = run.path() + "/checkpoints/step-00000002.tmp";
  EXPECT_THAT(Message(FindCheckpoint(tmp).status()),
              AllOf(HasSubstr(tmp), EndsWith("checkpoints/step-00000001")));
}

}  // namespace
}  // namespace tug
