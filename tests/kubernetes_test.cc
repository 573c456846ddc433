// SPDX-License-Identifier: Apache-2.0
// `tug launch --kubernetes`: kubectl decodes its output (--local: without a cluster), which fails
// for a value of the wrong type and drops unknown fields. Skipped without kubectl of version 1.25
// or newer.

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/tug_test.h"
#include "yaml-cpp/yaml.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr char kKubectl[] = "/usr/bin/kubectl";

class KubernetesTest : public TugTest {
 protected:
  std::string Render(const Texts& more) {
    const Process& process = Run(Texts{"launch", job(), "--kubernetes"} + more);
    EXPECT_EQ(process.exit_code(), 0) << process.err();
    return process.out();
  }
  // Expects all our fields in the object decoded by kubectl; `where` is the path for messages.
  static void ExpectKnown(const YAML::Node& ours, const Json& known, const std::string& where) {
    if (ours.IsMap()) {
      ASSERT_TRUE(known.is_object()) << where;
      for (const auto& member : ours) {
        const auto key = member.first.as<std::string>();
        ASSERT_TRUE(known.contains(key)) << where << " has no field " << key;
        ExpectKnown(member.second, known[key], absl::StrCat(where, ".", key));
      }
    } else if (ours.IsSequence()) {
      ASSERT_TRUE(known.is_array() && known.size() == ours.size()) << where;
      for (size_t i = 0; i < ours.size(); ++i) {
        ExpectKnown(ours[i], known[i], absl::StrCat(where, "[", i, "]"));
      }
    } else if (known.is_string() && !absl::StrContains(where, "resources") &&
               !absl::StrContains(where, "sizeLimit") &&  // amounts are formatted differently
               !absl::EndsWith(where, ".image")) {
      EXPECT_EQ(ours.as<std::string>(), known.get<std::string>()) << where;
    }
  }
  // kubectl decodes an object when it changes it.
  void ExpectKubectlKnows(const std::string& text) {
    const YAML::Node object = YAML::Load(text);
    const auto kind = object["kind"].as<std::string>();
    if (kind == "ConfigMap") return;
    Texts change = {"image", "*=some/image:2"};
    if (kind == "Service") change = {"selector"};
    Write("object.yaml", text);
    Texts arguments = {"set", change[0], "--local", "-o", "json", "-f", Path("object.yaml")};
    arguments.push_back(kind == "Service" ? "app.kubernetes.io/component=server" : change[1]);
    Process& kubectl = StartProgram(kKubectl, arguments);
    ASSERT_TRUE(kubectl.WaitForEnd(After(kPatience)));
    ASSERT_EQ(kubectl.exit_code(), 0) << kubectl.err() << text;
    const Json known = Json::parse(kubectl.out(), nullptr, /*allow_exceptions=*/false);
    YAML::Node ours = object;
    if (kind == "Service") ours["spec"].remove("selector");  // replaced as a whole
    ExpectKnown(ours, known, kind);
  }
};

TEST_F(KubernetesTest, WritesWhatKubernetesKnows) {
  if (!std::filesystem::exists(kKubectl)) GTEST_SKIP() << "skipped: no kubectl";
  Process& version = StartProgram(kKubectl, {"version", "--client", "--output=json"});
  ASSERT_TRUE(version.WaitForEnd(After(kPatience)));
  const Json said = Json::parse(version.out(), nullptr, /*allow_exceptions=*/false);
  const std::string minor = said.is_object() ? said["clientVersion"].value("minor", "0") : "0";
  if (std::atoi(minor.c_str()) < 25) GTEST_SKIP() << "skipped: kubectl is older than 1.25";
  const Texts jobs[] = {{},
                        {"--set", "placement.kind=ZERO3", "--namespace", "training"},
                        {"--set", "watch.metrics=true", "--set", "cluster.spare_servers=1", "--set",
                         "device=CUDA", "--gpus", "2", "--resume", "/runs/a $(b)"}};
  for (const Texts& more : jobs) {
    const std::string text = Render(more + Texts{"--image", "some/image:1"});
    for (const absl::string_view object : absl::StrSplit(text, "\n---\n")) {
      ExpectKubectlKnows(std::string(object));
    }
  }
}

TEST_F(KubernetesTest, TellsHowToBeginAndKeepsTheJobFile) {
  const std::string text = Render({"--name", "a", "--run-claim", "shared"});
  EXPECT_THAT(text,
              StartsWith("---\n# Job a, from job.textproto, written by tug launch --kubernetes."));
  EXPECT_THAT(text, HasSubstr("kubectl create secret generic a-keys --from-file=job.keys"));
  EXPECT_THAT(text, HasSubstr("PersistentVolumeClaim shared (ReadWriteMany"));
  EXPECT_EQ(YAML::LoadAll(text)[0]["data"]["job.textproto"].as<std::string>(), ReadText(job()));
}

TEST_F(KubernetesTest, SaysInOneLineWhatIsWrong) {
  const auto expect = [&](const Texts& arguments, const Texts& parts) {
    ExpectErrorLine(Run(Texts{"launch", job()} + arguments), parts);
  };
  expect({}, {"--hosts"});
  expect({"--image", "a"}, {"--kubernetes"});
  expect({"--kubernetes", "--hosts", job()}, {"--kubernetes", "--hosts"});
  for (const std::string other : {"--interface", "--ssh", "--program", "--bundle"}) {
    expect({"--kubernetes", other, job()}, {"--kubernetes", other});
  }
  expect({"--kubernetes", "--name", "A_B"}, {"'A_B' is not a valid Kubernetes name"});
  expect({"--kubernetes", "--set", "train.steps=x"}, {"train.steps"});
}

}  // namespace
}  // namespace tug
