// SPDX-License-Identifier: Apache-2.0
#include "config/job_help.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(JobHelp, ListsEveryFieldWithItsDefault) {
  EXPECT_THAT(JobHelp(), AllOf(HasSubstr("optional uint64 steps"), HasSubstr("Default 1000"),
                               Not(HasSubstr("syntax =")), Not(HasSubstr("(rule)"))));
}

TEST(FieldHelp, DescribesOneField) {
  EXPECT_EQ(*FieldHelp("train.steps"),
            "train.steps: optional uint64\n"
            "// Optimizer steps of the whole job. Default 1000, range 1..1e9 optimizer steps.\n");
  EXPECT_EQ(*FieldHelp("model.mlp_width"),
            "model.mlp_width: optional uint32\n"
            "// Width of the MLP. Default 4 x `width`. Range 8..65536 elements.\n");
  EXPECT_EQ(*FieldHelp("optimizer.sgd.momentum"),
            "optimizer.sgd.momentum: optional double\n// Default 0.9, range [0, 1).\n");
  EXPECT_EQ(*FieldHelp("model.bias"),
            "model.bias: optional bool\n"
            "// Biases in linear layers and LayerNorm. Default true.\n");
  EXPECT_THAT(*FieldHelp("comm.partition_bytes"),
              HasSubstr("Default 4194304 (4 MiB), range 4096..268435456 bytes."));
  EXPECT_THAT(*FieldHelp("data.tokenizer"),
              AllOf(StartsWith("data.tokenizer: Tokenizer\n// Tokenizer of the text."),
                    HasSubstr("\nenum Tokenizer {\n"), HasSubstr("GPT2_BPE = 4"),
                    Not(HasSubstr("tokenizer_path = "))));
  EXPECT_THAT(*FieldHelp("device"), HasSubstr("CUDA = "));
  EXPECT_THAT(*FieldHelp("comm.scheduler"),
              HasSubstr("WFBP = 1;           // another name of FIFO"));
  EXPECT_THAT(*FieldHelp("train"), AllOf(StartsWith("train: TrainConfig\nmessage TrainConfig {\n"),
                                         HasSubstr("label_smoothing = 9;\n")));
}

TEST(FieldHelp, KnowsEveryField) {
  const std::function<void(const google::protobuf::Descriptor&, const std::string&, int)> visit =
      [&](const google::protobuf::Descriptor& type, const std::string& prefix, int depth) {
        for (int i = 0; i < type.field_count(); ++i) {
          const std::string path = prefix + type.field(i)->name();
          const auto help = FieldHelp(path);
          ASSERT_TRUE(help.ok()) << path << ": " << help.status();
          EXPECT_THAT(*help, StartsWith(path + ": ")) << path;
          const auto* group = type.field(i)->message_type();
          if (group != nullptr && depth < 6) {
            visit(*group, path + ".", depth + 1);
          }
        }
      };
  visit(*JobConfig::descriptor(), "", 0);
}

TEST(FieldHelp, SuggestsTheFieldThatWasMeant) {
  EXPECT_THAT(FieldHelp("train.stesp").status().message(), HasSubstr("did you mean train.steps?"));
  EXPECT_THAT(FieldHelp("trian.steps").status().message(), HasSubstr("did you mean train.steps?"));
  EXPECT_THAT(FieldHelp("steps").status().message(), HasSubstr("did you mean train.steps?"));
  EXPECT_THAT(FieldHelp("banana").status().message(), Not(HasSubstr("did you mean")));
}

}  // namespace
}  // namespace tug
