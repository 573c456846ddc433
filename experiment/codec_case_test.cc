#include "experiment/codec_case.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

CodecCase Parsed(const std::string& text) {
  const auto codec = ParseCodecCase(text);
  EXPECT_TRUE(codec.ok()) << codec.status();
  return codec.value_or(CodecCase{});
}

PushCodecConfig PushOf(const std::string& text) {
  PushCodecConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(Parsed(text).push_text, &config));
  return config;
}

TEST(CodecCase, NamesPushFeedbackAndPull) {
  EXPECT_TRUE(Parsed("fp32").is_fp32());
  EXPECT_EQ(Parsed("fp32/fp32"), Parsed("fp32"));
  EXPECT_EQ(Parsed("fp32/bf16").pull, CommConfig::BF16);
  EXPECT_FALSE(Parsed("fp32/bf16").is_fp32());
  EXPECT_EQ(Parsed("INT8/Int8").name, "int8/int8");
  EXPECT_TRUE(PushOf("int8/int8").has_int8());
  EXPECT_FALSE(PushOf("int8").has_error_feedback()) << "as the job has it by default";
  EXPECT_FALSE(PushOf("top_k").top_k().has_density());
  const CodecCase top_k = Parsed("top_k:0.01-ef/int8");
  EXPECT_EQ(top_k.name, "top_k:0.01-ef/int8");
  EXPECT_EQ(top_k.pull, CommConfig::INT8);
  EXPECT_EQ(PushOf("top_k:0.01-ef").top_k().density(), 0.01);
  EXPECT_TRUE(PushOf("top_k:0.01-ef").has_error_feedback());
  EXPECT_FALSE(PushOf("top_k:0.01-ef").error_feedback());
  EXPECT_TRUE(PushOf("bf16+ef").error_feedback());
  EXPECT_EQ(PushOf("qsgd:15").qsgd().levels(), 15u);
  EXPECT_EQ(PushOf("dgc:0.001").dgc().density(), 0.001);
  EXPECT_EQ(PushOf("power_sgd:8").power_sgd().rank(), 8u);
  const CodecCase changes = Parsed("int8/changes:0.05");
  EXPECT_EQ(changes.name, "int8/changes:0.05");
  EXPECT_EQ(changes.pull, CommConfig::CHANGES);
  EXPECT_EQ(changes.pull_density, 0.05);
  EXPECT_EQ(Parsed("int8/changes").pull_density, 0);
}

TEST(CodecCase, NamesWhatWorkersChooseThemselves) {
  EXPECT_EQ(Parsed("auto/auto").name, "auto/auto");
  EXPECT_EQ(Parsed("auto/auto").pull, CommConfig::PULL_AUTO);
  EXPECT_TRUE(PushOf("auto/auto").has_auto_());
  EXPECT_FALSE(Parsed("fp32/auto").is_fp32());
}

TEST(CodecCase, IsKnownForEveryCodecOfTheJobFile) {
  const auto& codecs = *PushCodecConfig::descriptor()->FindOneofByName("codec");
  for (int i = 0; i < codecs.field_count(); ++i) {
    const std::string name = codecs.field(i)->name();
    EXPECT_EQ(static_cast<int>(PushOf(name).codec_case()), codecs.field(i)->number()) << name;
  }
}

TEST(CodecCase, IsRefusedWithWhatIsKnown) {
  for (const char* text :
       {"", "zip", "top_k:", "top_k:x", "int8:3", "fp32:1", "fp32+ef", "fp32/int4", "fp32/",
        "fp32/int8:3", "fp32/auto:3", "int8/pull_auto", "auto:8", "fp32/changes:", "fp32/changes:x",
        "int8/format_default", "error_feedback", "top_k:0.01+ef-ef", "int8/int8/int8"}) {
    const auto codec = ParseCodecCase(text);
    ASSERT_FALSE(codec.ok()) << text;
    EXPECT_THAT(std::string(codec.status().message()), HasSubstr("top_k_int8")) << text;
  }
}

}  // namespace
}  // namespace tug
