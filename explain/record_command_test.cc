// SPDX-License-Identifier: Apache-2.0
#include "explain/record_command.h"

#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

JobConfig Config() {
  JobConfig config;
  config.mutable_trace()->set_first_step(10);
  return config;
}

TEST(RecordCommand, IsAShortRunOfTheSameJob) {
  EXPECT_EQ(RecordCommand("runs/a", Config(), 1, {}),
            "tug train runs/a/config.textproto --set train.steps=40 --trace");
  EXPECT_EQ(RecordCommand("my runs", Config(), 0, {"comm.impair={}"}),
            "tug train 'my runs/config.textproto' --set 'comm.impair={}' --set train.steps=40 "
            "--trace");
}

TEST(RecordCommand, ShortensAWarmUpThatWouldNotEnd) {
  JobConfig config = Config();
  config.mutable_optimizer()->set_warmup_steps(100);
  config.mutable_trace()->set_first_step(4);
  EXPECT_EQ(RecordCommand("r", config, 1, {}),
            "tug train r/config.textproto --set train.steps=34 --set optimizer.warmup_steps=0 "
            "--trace");
}

TEST(RecordCommand, StartsTheJobAsItRan) {
  EXPECT_EQ(RecordCommand("r", Config(), 2, {}),
            "tug launch r/config.textproto --hosts HOSTS --set train.steps=40 --trace");
  JobConfig external = Config();
  external.mutable_model()->set_external(true);
  EXPECT_EQ(RecordCommand("r", external, 2, {}),
            "tug coordinator r/config.textproto --set train.steps=40 --trace");
}

}  // namespace
}  // namespace tug
