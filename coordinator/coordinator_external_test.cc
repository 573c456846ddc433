// SPDX-License-Identifier: Apache-2.0
// Tests blocks declared by workers (model.external).

#include <string>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

RegisterRequest Declaring(RegisterRequest request, uint64_t elements) {
  for (const char* name : {"weights", "bias"}) {
    BlockSpec* block = request.mutable_blocks()->add_blocks();
    block->set_name(name);
    TensorSpec* tensor = block->add_tensors();
    tensor->set_name(name);
    tensor->add_shape(elements);
  }
  return request;
}

CoordinatorOptions ExternalJob(uint32_t workers) {
  CoordinatorOptions options = JobUnderTest::Options(1, workers, 10, 0, workers);
  options.config.mutable_model()->set_external(true);
  options.config.mutable_comm()->set_segment_elements(1024);
  options.layout = {};
  return options;
}

std::string RefusalOf(Coordinator& coordinator, const RegisterRequest& request) {
  const absl::Status refused = coordinator.OnRegister(request, absl::UnixEpoch()).status();
  EXPECT_FALSE(refused.ok());
  return std::string(refused.message());
}

TEST(ExternalModel, TheViewHasTheBlocksOfTheFirstWorker) {
  JobUnderTest job(ExternalJob(2));
  const uint32_t server = job.Join(SERVER, 1);
  EXPECT_FALSE(job.Send(job.Beat(server)).has_view());
  for (const uint64_t incarnation : {7, 8}) {
    const auto request = Declaring(job.Request(WORKER, incarnation), 2000);
    ASSERT_TRUE(job.coordinator().OnRegister(request, job.now()).ok());
    ASSERT_TRUE(job.coordinator().OnRegister(request, job.now()).ok()) << "repeated";
  }
  const HeartbeatReply reply = job.Send(job.Beat(server));
  ASSERT_TRUE(reply.has_view());
  ASSERT_EQ(reply.view().blocks().blocks_size(), 2);
  EXPECT_EQ(reply.view().blocks().blocks(1).name(), "bias");
  EXPECT_EQ(reply.view().lane_of_segment_size(), 4);  // 2000 elements: two segments
  EXPECT_EQ(reply.view().workers_size(), 2);
}

TEST(ExternalModel, RefusesOtherBlocksThanTheFirstWorkers) {
  JobUnderTest job(ExternalJob(2));
  ASSERT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 7), 2000), job.now()).ok());
  EXPECT_THAT(RefusalOf(job.coordinator(), Declaring(job.Request(WORKER, 8), 2001)),
              HasSubstr("block 0 is 'weights' of 2001 elements"));
  // It can register again with the right blocks.
  EXPECT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 8), 2000), job.now()).ok());
}

TEST(ExternalModel, AWorkerThatIsLostTakesItsBlocksAlong) {
  JobUnderTest job(ExternalJob(2));
  ASSERT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 7), 2000), job.now()).ok());
  job.Pass(absl::Seconds(6));
  EXPECT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 8), 5000), job.now()).ok());
}

TEST(ExternalModel, AWorkerThatIsRefusedLeavesNothing) {
  JobUnderTest job(ExternalJob(2));
  RegisterRequest request = Declaring(job.Request(WORKER, 7), 2000);
  request.add_lane_endpoints("tcp://h:1");
  EXPECT_THAT(RefusalOf(job.coordinator(), request), HasSubstr("has no lanes"));
  EXPECT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 8), 5000), job.now()).ok());
}

TEST(ExternalModel, CheckpointsHoldTheBlocksAndAFailureSaysHowToGoOn) {
  JobUnderTest job(ExternalJob(1));
  const uint32_t server = job.Join(SERVER, 1);
  const auto worker =
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 7), 2000), job.now());
  ASSERT_TRUE(worker.ok());
  job.Send(job.ReadyBeat(server));
  job.Send(job.ReadyBeat(worker->node_id()));
  job.Send(WithPart(WithPart(job.ReadyBeat(server), 0, 5), 1, 5));
  const auto commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].manifest.blocks().blocks_size(), 2);
  job.coordinator().OnCheckpointCommitted(5, absl::OkStatus(), job.now());
  job.Pass(absl::Seconds(6));
  EXPECT_THAT(job.Send(job.Beat(server)).failure(),
              HasSubstr("resume with: tug coordinator --resume"));
}

}  // namespace
}  // namespace tug
