// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_facts.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Removes root's capabilities from this thread for its lifetime.
class WithoutCapabilities {
 public:
  WithoutCapabilities() {
    TUG_CHECK(syscall(SYS_capget, &header_, sets_) == 0);
    __user_cap_data_struct less[_LINUX_CAPABILITY_U32S_3] = {sets_[0], sets_[1]};
    less[0].effective = less[1].effective = 0;
    TUG_CHECK(syscall(SYS_capset, &header_, less) == 0);
  }
  ~WithoutCapabilities() { TUG_CHECK(syscall(SYS_capset, &header_, sets_) == 0); }
  WithoutCapabilities(const WithoutCapabilities&) = delete;
  WithoutCapabilities& operator=(const WithoutCapabilities&) = delete;

 private:
  __user_cap_header_struct header_ = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets_[_LINUX_CAPABILITY_U32S_3] = {};
};

class DoctorFactsTest : public ::testing::Test {
 protected:
  DoctorFactsTest() : root_(fs::path(::testing::TempDir()) / "doctor_facts") {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  HostFacts Read(const FactsWanted& wanted = {}) const {
    return ReadHostFacts(wanted, {}, {.root = root_.string(), .home = root_.string()});
  }
  TextFacts ReadTextOf(const std::string& name) const { return ReadText((root_ / name).string()); }
  const fs::path root_;
};

TEST_F(DoctorFactsTest, ReadsMemoryAndWhatGroupsLeave) {
  Write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n");
  EXPECT_EQ(Read().memory_bytes, 1000u << 10);
  EXPECT_EQ(Read().free_memory_bytes, 600u << 10);
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/memory.max", "400000\n");
  Write("sys/fs/cgroup/a/memory.current", "100000\n");
  Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(Read().free_memory_bytes, 300000u);
}

TEST_F(DoctorFactsTest, ReadsHowManyMayLogIn) {
  EXPECT_EQ(Read().logins_at_once, 0) << "there is no such file";
  Write("etc/ssh/sshd_config", "Port 22\n#MaxStartups 3\n");
  EXPECT_EQ(Read().logins_at_once, 10);
  Write("etc/ssh/sshd_config", "maxstartups 30:50:60\n");
  EXPECT_EQ(Read().logins_at_once, 30);
}

TEST_F(DoctorFactsTest, ReadsTheDriver) {
  EXPECT_EQ(Read().driver, "");
  Write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1  Tue\n");
  EXPECT_EQ(Read().driver, "535.1");
}

TEST_F(DoctorFactsTest, FindsTheFolderAboveOneThatIsNotThere) {
  const FolderFacts folder = ReadFolder((root_ / "a/b/c").string());
  EXPECT_EQ(folder.path, (root_ / "a/b/c").string());
  EXPECT_EQ(folder.there, root_.string());
  EXPECT_EQ(folder.error, "");
  EXPECT_GT(folder.free_bytes, 0u);
  EXPECT_TRUE(fs::is_empty(root_)) << "nothing is left there";
  EXPECT_NE(ReadFolder("/proc/none").error, "");
}

TEST_F(DoctorFactsTest, LooksAtTheFolderThatTheKernelFinds) {
  fs::create_directories(root_ / "disk/sub");
  fs::create_directory_symlink("disk/sub", root_ / "link");
  EXPECT_EQ(ReadFolder((root_ / "link/../a").string()).path,
            (fs::canonical(root_ / "disk") / "a").string());
}

TEST_F(DoctorFactsTest, TellsTextsApart) {
  Write("one", "a text");
  Write("same", "a text");
  Write("other", "a tex!");
  EXPECT_EQ(ReadTextOf("one").bytes, 6u);
  EXPECT_EQ(ReadTextOf("one").error, "");
  EXPECT_EQ(ReadTextOf("one").hash, ReadTextOf("same").hash);
  EXPECT_NE(ReadTextOf("one").hash, ReadTextOf("other").hash);
  EXPECT_NE(ReadTextOf("none").error, "");
  Write("folder/a", "x");
  const uint64_t before = ReadTextOf("folder").hash;
  Write("folder/b", "");
  EXPECT_NE(ReadTextOf("folder").hash, before);
}

TEST_F(DoctorFactsTest, RefusesTheTextsThatAJobRefuses) {
  Write("nothing", "");
  EXPECT_THAT(ReadTextOf("nothing").error, HasSubstr("is empty"));
  fs::create_directory(root_ / "folder");
  EXPECT_THAT(ReadTextOf("folder").error, HasSubstr("contains no regular files"));
  Write("folder/a", "x");
  EXPECT_EQ(ReadTextOf("folder").error, "");
  fs::create_symlink("gone", root_ / "folder/b");
  EXPECT_THAT(ReadTextOf("folder").error, HasSubstr("folder/b"));
}

TEST_F(DoctorFactsTest, SaysWhatItMayNotRead) {
  const WithoutCapabilities as_others_are;  // so that the test also works for root
  Write("locked/a", "x");
  fs::permissions(root_ / "locked/a", fs::perms::none);
  EXPECT_THAT(ReadTextOf("locked").error, HasSubstr("locked/a"));
  fs::permissions(root_ / "locked", fs::perms::none);
  EXPECT_THAT(ReadTextOf("locked").error, HasSubstr("read the folder"));
  fs::permissions(root_ / "locked", fs::perms::owner_all);
}

TEST_F(DoctorFactsTest, HashesSoManyBytesOfAllFilesTogether) {
  Write("folder/a", "");
  fs::resize_file(root_ / "folder/a", kHashedTextBytes - 1);  // sparse
  Write("folder/b", "xy");
  const TextFacts first = ReadTextOf("folder");
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(first.bytes, kHashedTextBytes + 1);
  Write("folder/b", "xz");
  EXPECT_EQ(ReadTextOf("folder").hash, first.hash) << "it is beyond them";
  Write("folder/b", "yy");
  EXPECT_NE(ReadTextOf("folder").hash, first.hash) << "it is the last of them";
}

TEST_F(DoctorFactsTest, SurviveTheirWay) {
  Write("text", "a text");
  HostFacts facts = Read({.run_dir = (root_ / "run").string(), .text = (root_ / "text").string()});
  facts.locked_limit_bytes = kNoLimit;
  facts.gpus.names = {"an H200"};
  const auto again = HostFactsOf(nlohmann::json::parse(ToJson(facts).dump()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToJson(*again), ToJson(facts));
  EXPECT_FALSE(facts.glibc.empty() || facts.instructions.empty());
  EXPECT_GT(facts.cores, 0);
  EXPECT_FALSE(HostFactsOf(nlohmann::json::parse("{\"glibc\": 1}")).ok());
}

}  // namespace
}  // namespace tug
