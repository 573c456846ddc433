// SPDX-License-Identifier: Apache-2.0
// Access to a job: each security.mode gives the same bits; and while a job trains, peers without
// keys, with other keys or of another version, and bytes of no known protocol, are refused with a
// line on both sides, and change nothing.

#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/control_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire.h"
#include "security/key_file.h"
#include "tests/support/hostile_peer.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kSeed = 57721;

class SecurityTest : public DaemonTest {
 protected:
  void TearDown() override {
    unsetenv(kKeysVariable);
    DaemonTest::TearDown();
  }

  // Makes a key file in the test's folder; returns its path.
  std::string MakeKeys(const std::string& name, SecurityConfig::Mode mode) {
    const Process& made = Run({"keys", Path(name), "--mode", ModeName(mode)});
    EXPECT_EQ(made.exit_code(), 0) << made.err();
    return Path(name);
  }
  // Passes the key file to processes started from now on.
  static void GiveKeys(const std::string& path) { setenv(kKeysVariable, path.c_str(), 1); }
  static Texts ModeSetting(SecurityConfig::Mode mode) {
    return {absl::StrCat("security.mode=", SecurityConfig::Mode_Name(mode))};
  }

  // Files of a folder that contain `secret`.
  static Texts FilesWith(const std::string& folder, const std::string& secret) {
    Texts found;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file() && absl::StrContains(ReadText(entry.path()), secret)) {
        found.push_back(entry.path());
      }
    }
    return found;
  }
};

TEST_F(SecurityTest, EveryModeTrainsToTheSameBits) {
  for (const std::string shared_memory : {"true", "false"}) {
    const Texts settings = {"comm.shared_memory=" + shared_memory};
    ASSERT_NO_FATAL_FAILURE(Train("none-" + shared_memory, settings));
    for (const SecurityConfig::Mode mode : {SecurityConfig::TOKEN, SecurityConfig::CURVE}) {
      const std::string run = absl::StrCat(ModeName(mode), "-", shared_memory);
      ASSERT_NO_FATAL_FAILURE(Train(run, settings + ModeSetting(mode)));
      ExpectSameState(Path("none-" + shared_memory), Path(run));
      EXPECT_FALSE(fs::exists(Path(run + "/keys"))) << "they are of no use any more";
    }
  }
}

// Keys of a local job: tug makes them in its run folder, where tug status and replacements of
// killed processes find them.
TEST_F(SecurityTest, KeysThatAreMadeOutliveWhatIsKilled) {
  Process& train = StartTraining("run", Endless() + ModeSetting(SecurityConfig::CURVE) +
                                            Texts{"comm.shared_memory=false", "sync.replicas=2"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  struct stat file;
  ASSERT_EQ(stat(Path("run/keys").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  const JobKeys keys = ReadKeyFile(Path("run/keys")).value();
  const Process& status = Run({"status", Path("run")});
  EXPECT_EQ(status.exit_code(), 0) << status.err();
  EXPECT_THAT(status.out(),
              ::testing::ContainsRegex("live page http://127.0.0.1:[0-9]+/[0-9a-f]+/"))
      << "other users of this host cannot guess it";
  for (const char* kind : {"coordinator", "worker", "server"}) {
    const std::vector<pid_t> pids = Pids(kind);
    ASSERT_FALSE(pids.empty());
    kill(pids[0], SIGKILL);
    const auto replaced = [&] {
      const std::vector<pid_t> now = Pids(kind);
      return now.size() == pids.size() && now != pids;
    };
    ASSERT_TRUE(train.WaitUntil(replaced, After(kPatience))) << train.err();
    const uint64_t steps = ReadLosses(Path("run")).value().training.rbegin()->first;
    // By then each node has had time to reopen its call, whose end reports a death at once.
    ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", steps + 100));
  }
  for (const FoundProcess& process : FindProcesses(test_id())) {
    for (const std::string& argument : process.argv) {
      EXPECT_THAT(argument, Not(HasSubstr(keys.token)));
    }
    EXPECT_THAT(ReadText(absl::StrCat("/proc/", process.pid, "/environ")),
                Not(HasSubstr(keys.token)));
  }
  for (const std::string& secret : {keys.token, keys.curve.secret_key}) {
    EXPECT_EQ(FilesWith(Path("run"), secret), Texts{Path("run/keys")});
  }
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
  EXPECT_FALSE(fs::exists(Path("run/keys")));
}

TEST_F(SecurityTest, KeyFilesAreNeverOverwrittenNorReadableByOthers) {
  const std::string path = MakeKeys("keys", SecurityConfig::CURVE);
  const JobKeys keys = ReadKeyFile(path).value();
  ExpectErrorLine(Run({"keys", path}), {path, "never overwritten"});
  EXPECT_EQ(ReadKeyFile(path).value(), keys);
  const Process& show = Run({"keys", "--show", path});
  EXPECT_THAT(show.out(), AllOf(HasSubstr("mode curve"), HasSubstr(KeysFingerprint(keys)),
                                Not(HasSubstr(keys.token)), Not(HasSubstr(keys.curve.secret_key))));
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  ExpectErrorLine(Run({"train", job(), "--keys", path}),
                  {path, "accessible to other users", "chmod 600"});
}

TEST_F(SecurityTest, SaysWhatIsMissing) {
  const std::string token = MakeKeys("token", SecurityConfig::TOKEN);
  const Texts run = {"--run-dir", Path("run")};
  ExpectErrorLine(Run(Texts{"coordinator", job()} + run + Set({"security.mode=TOKEN"})),
                  {"security.mode is TOKEN", "tug keys FILE"});
  ExpectErrorLine(
      Run(Texts{"coordinator", job(), "--keys", token} + run + Set({"security.mode=CURVE"})),
      {"security.mode is CURVE", "the keys have mode token"});
  ExpectErrorLine(Run(Texts{"coordinator", job(), "--listen", "10.0.0.1:0"} + run),
                  {"10.0.0.1", "security.mode=TOKEN", "tug keys"});
  ExpectErrorLine(Run({"server", "--coordinator", "127.0.0.1:1", "--listen", "10.0.0.1"}),
                  {"10.0.0.1", "security.mode=TOKEN", "tug keys"});
  ExpectErrorLine(Run(Texts{"train", job(), "--keys", token} + run + Set({"security.mode=NONE"})),
                  {"security.mode is NONE", "omit them"});
  EXPECT_FALSE(fs::exists(Path("run")));
}

// Peers without valid keys, while a job trains.
class StrangerTest : public SecurityTest,
                     public ::testing::WithParamInterface<SecurityConfig::Mode> {
 protected:
  void SetUp() override {
    std::cout << "seed " << kSeed << std::endl;
    path_ = MakeKeys("keys", GetParam());
    keys_ = ReadKeyFile(path_).value();
    GiveKeys(path_);
    ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + ModeSetting(GetParam()) +
                                     Texts{"comm.shared_memory=false", "name=a_secret_name"}));
    unsetenv(kKeysVariable);
    auto client = ControlClient::Connect(address(), kPatience, keys_);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    const StatusReply status = client_->Status().value();
    for (const NodeStatus& node : status.nodes()) {
      lanes_.insert(lanes_.end(), node.lane_endpoints().begin(), node.lane_endpoints().end());
    }
    ASSERT_FALSE(lanes_.empty());
  }

  // Starts these `tug` commands for the job, concurrently: both sides report the reason, and the
  // refused processes learn nothing.
  void ExpectRefused(const std::vector<Texts>& commands, const Texts& told,
                     const std::string& noted) {
    std::vector<Process*> strangers;
    for (const Texts& arguments : commands) {
      strangers.push_back(&Start(arguments + Texts{"--coordinator", address()}));
    }
    for (Process* stranger : strangers) {
      ASSERT_TRUE(stranger->WaitForEnd(After(kPatience))) << stranger->command();
      ExpectErrorLine(*stranger, told);
      EXPECT_THAT(stranger->out() + stranger->err(), Not(HasSubstr("a_secret_name")));
    }
    ExpectNoted(coordinator(), noted);
  }
  void ExpectNoted(Process& process, const std::string& noted) {
    const auto said = [&] { return absl::StrContains(process.err(), noted); };
    EXPECT_TRUE(process.WaitUntil(said, After(kPatience))) << noted << " in:\n" << process.err();
  }
  // Expects the text in the stderr of some node.
  void ExpectNotedByALane(const std::string& noted) {
    const auto said = [&] {
      for (const Process* node : nodes_) {
        if (absl::StrContains(node->err(), noted)) return true;
      }
      return false;
    };
    EXPECT_TRUE(coordinator().WaitUntil(said, After(kPatience))) << noted << " in:\n"
                                                                 << nodes_[0]->err();
  }

  // Stops the job; its weights equal those of an undisturbed job without keys.
  void ExpectUnharmed() {
    ASSERT_FALSE(coordinator().WaitForEnd(absl::Now())) << coordinator().err();
    const uint64_t step = client_->Status().value().step();
    ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator(), "run", step + 5));
    ASSERT_TRUE(client_->Stop().ok());
    ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
    EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
    for (Process* node : nodes_) {
      ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
      EXPECT_EQ(node->exit_code(), 0) << node->err();
    }
    ExpectUndisturbedState("run");
  }

  std::string path_;
  JobKeys keys_;
  std::unique_ptr<ControlClient> client_;
  std::vector<std::string> lanes_;
};

INSTANTIATE_TEST_SUITE_P(Modes, StrangerTest,
                         ::testing::Values(SecurityConfig::TOKEN, SecurityConfig::CURVE),
                         [](const auto& mode) { return ModeName(mode.param); });

TEST_P(StrangerTest, RefusesProcessesWithoutKeysAndKeepsJobUnharmed) {
  const bool curve = GetParam() == SecurityConfig::CURVE;
  const Texts here = {"--coordinator", address()};
  ExpectRefused({{"worker"}, {"server"}, {"status"}, {"stop"}},
                {address(), "it has no keys", "--keys FILE"}, "refused 127.0.0.1: it has no keys");
  const std::string others = MakeKeys("others", GetParam());
  const std::string told = curve ? "rejected the keys" : "its keys belong to another job";
  ExpectRefused({{"worker", "--keys", others}, {"stop", "--keys", others}},
                {address(), told, "tug keys --show"},
                "refused 127.0.0.1: its keys belong to another job");
  const std::string other_mode =
      MakeKeys("other_mode", curve ? SecurityConfig::TOKEN : SecurityConfig::CURVE);
  ExpectRefused({{"status", "--keys", other_mode}},
                {address(), curve ? "for another mode" : "rejected the keys"},
                curve ? "refused 127.0.0.1: its keys are for another mode"
                      : "refused 127.0.0.1: its keys are for mode curve");
  const Process& member = Run(Texts{"status", "--keys", path_} + here);
  EXPECT_THAT(member.out(), HasSubstr("a_secret_name"));
  ExpectUnharmed();
}

TEST_P(StrangerTest, AnOldVersionIsRefusedAndTheJobUnharmed) {
  RegisterRequest old;
  old.set_protocol_version(kControlVersion - 1);
  old.set_kind(WORKER);
  const std::string refused(client_->Register(old).status().message());
  EXPECT_THAT(refused, AllOf(HasSubstr(absl::StrCat("control protocol ", kControlVersion)),
                             HasSubstr(absl::StrCat(kControlVersion - 1)),
                             HasSubstr("run the same version of tug everywhere")));
  ExpectNoted(coordinator(),
              absl::StrCat("refused 127.0.0.1: it speaks control protocol ", kControlVersion - 1,
                           ", the coordinator ", kControlVersion));
  ExpectUnharmed();
}

TEST_P(StrangerTest, RefusesUnknownTrafficAndKeepsJobUnharmed) {
  std::mt19937_64 random(kSeed);
  const auto bytes = [&](size_t size) {
    Bytes some(size);
    for (std::byte& b : some) b = static_cast<std::byte>(random());
    return some;
  };
  std::vector<std::unique_ptr<RawConnection>> silent;
  std::vector<std::unique_ptr<FramePeer>> peers;
  for (const std::string& lane : lanes_) {
    // A peer of the current version without keys; its pull would otherwise be answered.
    peers.push_back(std::make_unique<FramePeer>(lane, WorkerPeer(4711)));
    WireHeader pull;
    pull.kind = MessageKind::kPull;
    pull.job = client_->Status().value().job();
    pull.timeline = 1;
    pull.view = 1;
    pull.sender = WorkerPeer(4711);
    pull.segment_count = 1;
    peers.back()->Send({HeaderBytes(pull, {}), Bytes()});
    for (int round = 0; round < 20; ++round) {
      RawConnection(lane).Write(bytes(random() % 4096));
      RawConnection(lane).Write(ZmtpOpening(WorkerPeer(4711)) + bytes(random() % 4096));
      silent.push_back(std::make_unique<RawConnection>(lane));
    }
    RawConnection(lane).Write(BytesOf("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  }
  const Bytes preface = BytesOf("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  for (int round = 0; round < 50; ++round) {
    RawConnection(address()).Write(bytes(random() % 4096));
    RawConnection(address()).Write(preface + bytes(random() % 4096));
    RawConnection(address()).Write(BytesOf("\x16\x03\x01") + bytes(random() % 4096));
    silent.push_back(std::make_unique<RawConnection>(address()));
  }
  ExpectNoted(coordinator(), "refused 127.0.0.1: not the Tugboat control protocol");
  ExpectNotedByALane(absl::StrCat("it has no keys of mode ", ModeName(GetParam())));
  ExpectUnharmed();
  EXPECT_LT(coordinator().err().size(), 20'000u) << "lines stay few";
}

}  // namespace
}  // namespace tug
