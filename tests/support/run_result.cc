// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_result.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/observe/metrics_log.h"
#include "coordinator/observe/run_folder.h"
#include "gtest/gtest.h"
#include "model/layout.h"

namespace tug {
namespace {

void ExpectSameValues(const std::string& name, const std::map<uint64_t, double>& expected,
                      const std::map<uint64_t, double>& actual) {
  EXPECT_EQ(expected.size(), actual.size()) << name << ": number of losses";
  for (const auto& [step, loss] : expected) {
    const auto found = actual.find(step);
    if (found == actual.end()) {
      ADD_FAILURE() << name << " loss of step " << step << " is missing";
      return;
    }
    if (std::bit_cast<uint64_t>(loss) == std::bit_cast<uint64_t>(found->second)) continue;
    ADD_FAILURE() << name << " loss of step " << step
                  << " is the first that differs: " << absl::StrCat(loss, " and ", found->second);
    return;
  }
}

}  // namespace

absl::StatusOr<CheckpointState> ReadState(const std::string& path) {
  ASSIGN_OR_RETURN(const FoundCheckpoint found, FindCheckpoint(path));
  ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(found.folder));
  CheckpointState state;
  state.version = reader.manifest().version();
  for (const BlockSpec& block : reader.manifest().blocks().blocks()) {
    for (const char kind : {'w', 'm', 'v'}) {
      std::vector<float> values(ElementCount(block));
      RETURN_IF_ERROR(reader.ReadRange(block.name(), 0, values.size(), kind, values));
      std::vector<uint32_t>& bits =
          state.bits[absl::StrCat(block.name(), "/", std::string(1, kind))];
      for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
    }
  }
  return state;
}

absl::StatusOr<Losses> ReadLosses(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const LossCurve curve, ReadLossCurve(absl::StrCat(run_dir, "/", kMetricsFile)));
  Losses losses;
  for (const auto& [step, loss] : curve.training) losses.training[step] = loss;
  for (const auto& [step, loss] : curve.validation) losses.validation[step] = loss;
  return losses;
}

Losses LossesAfter(const Losses& losses, uint64_t step) {
  return {{losses.training.upper_bound(step), losses.training.end()},
          {losses.validation.upper_bound(step), losses.validation.end()}};
}

void ExpectSameState(const CheckpointState& expected, const CheckpointState& actual) {
  EXPECT_EQ(expected.version, actual.version);
  ASSERT_EQ(expected.bits.size(), actual.bits.size());
  for (const auto& [name, bits] : expected.bits) {
    const auto found = actual.bits.find(name);
    ASSERT_NE(found, actual.bits.end()) << name;
    ASSERT_EQ(bits.size(), found->second.size()) << name;
    size_t different = 0, first = 0;
    for (size_t i = bits.size(); i-- > 0;) {
      if (bits[i] == found->second[i]) continue;
      ++different;
      first = i;
    }
    EXPECT_EQ(different, 0u) << name << ": of " << bits.size() << " elements; the first is "
                             << first << ": " << std::bit_cast<float>(bits[first]) << " and "
                             << std::bit_cast<float>(found->second[first]);
  }
}

void ExpectSameState(const std::string& expected, const std::string& actual) {
  const absl::StatusOr<CheckpointState> expected_state = ReadState(expected);
  const absl::StatusOr<CheckpointState> actual_state = ReadState(actual);
  ASSERT_TRUE(expected_state.ok()) << expected_state.status();
  ASSERT_TRUE(actual_state.ok()) << actual_state.status();
  ExpectSameState(*expected_state, *actual_state);
}

void ExpectSameLosses(const Losses& expected, const Losses& actual) {
  ExpectSameValues("training", expected.training, actual.training);
  ExpectSameValues("validation", expected.validation, actual.validation);
}

}  // namespace tug
