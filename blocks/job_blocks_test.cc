// SPDX-License-Identifier: Apache-2.0
#include "blocks/job_blocks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobConfig Config(bool external, uint32_t lanes) {
  JobConfig config;
  config.mutable_model()->set_external(external);
  config.mutable_cluster()->set_servers(1);
  config.mutable_cluster()->set_lanes_per_server(lanes);
  config.mutable_comm()->set_segment_elements(1024);
  return config;
}

RegisterRequest Worker(const std::vector<uint64_t>& elements) {
  RegisterRequest request;
  request.set_kind(WORKER);
  for (size_t i = 0; i < elements.size(); ++i) {
    BlockSpec* block = request.mutable_blocks()->add_blocks();
    block->set_name("block." + std::to_string(i));
    block->add_tensors()->add_shape(elements[i]);
  }
  return request;
}

std::string Refusal(JobBlocks& blocks, const RegisterRequest& request, absl::StatusCode code) {
  const absl::Status refused = blocks.Admit(request);
  EXPECT_EQ(refused.code(), code) << refused;
  return std::string(refused.message());
}

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(JobBlocks, TakesWhatTheFirstWorkerDeclares) {
  const JobConfig config = Config(true, 2);
  JobBlocks blocks(config, {});
  RegisterRequest server;
  server.set_kind(SERVER);
  EXPECT_TRUE(blocks.Admit(server).ok());
  EXPECT_TRUE(blocks.layout().blocks.blocks().empty());
  EXPECT_TRUE(blocks.Admit(Worker({1500, 10})).ok());
  EXPECT_THAT(blocks.layout().segment_bytes, ElementsAre(4096, 476 * 4, 40));
  EXPECT_TRUE(blocks.Admit(Worker({1500, 10})).ok());
  EXPECT_THAT(Refusal(blocks, Worker({1500, 11}), kPrecondition),
              HasSubstr("than the first worker: block 1 is 'block.1' of 11 elements"));
  EXPECT_THAT(Refusal(blocks, Worker({}), kPrecondition), HasSubstr("exchange/c_api/tug.h"));
}

TEST(JobBlocks, RefusesACodecForBlocksThatAreNotThere) {
  JobConfig config = Config(true, 1);
  config.mutable_comm()->mutable_push_codec()->mutable_int8();
  config.mutable_comm()->mutable_push_codec()->set_blocks("*.1, blok.0");
  JobBlocks blocks(config, {});
  EXPECT_THAT(Refusal(blocks, Worker({10, 10}), kInvalid),
              HasSubstr("blok.0' matches none of the 2 blocks, block.0 to block.1: correct"));
  config.mutable_comm()->mutable_push_codec()->set_blocks("*.1, block.0");
  EXPECT_TRUE(blocks.Admit(Worker({10, 10})).ok());
}

TEST(JobBlocks, KeepsNothingOfADeclarationItRefuses) {
  const JobConfig config = Config(true, 2);
  JobBlocks blocks(config, {});
  EXPECT_THAT(Refusal(blocks, Worker({10}), kInvalid), HasSubstr("makes 2 lanes"));
  EXPECT_THAT(Refusal(blocks, Worker({10, 0}), kInvalid), HasSubstr("no elements"));
  EXPECT_TRUE(blocks.Admit(Worker({10, 10})).ok());
}

TEST(JobBlocks, ForgetsADeclarationButNotACheckpoint) {
  const JobConfig config = Config(true, 1);
  JobBlocks declared(config, {});
  EXPECT_TRUE(declared.Admit(Worker({10})).ok());
  declared.ForgetDeclared();
  EXPECT_TRUE(declared.Admit(Worker({20})).ok());

  JobBlocks restored(config, *LayOut(Worker({10}).blocks(), config));
  restored.ForgetDeclared();
  EXPECT_THAT(Refusal(restored, Worker({20}), kPrecondition),
              HasSubstr("different blocks than the checkpoint"));
  EXPECT_TRUE(restored.Admit(Worker({10})).ok());
}

TEST(JobBlocks, AJobWithItsOwnModelTakesNoDeclaration) {
  const JobConfig config = Config(false, 1);
  JobBlocks blocks(config, *LayOut(Worker({10}).blocks(), config));
  EXPECT_TRUE(blocks.Admit(Worker({})).ok());
  EXPECT_THAT(Refusal(blocks, Worker({10}), kPrecondition), HasSubstr("set model.external = true"));
}

}  // namespace
}  // namespace tug
