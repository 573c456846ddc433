// SPDX-License-Identifier: Apache-2.0
// Mistakes of users and failures of the machine: each gives one line, "tug: error: ...", that names
// the cause and the remedy, and a non-zero exit code, and leaves neither a process nor a run
// folder.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A port of 127.0.0.1 held by the test: it accepts connections without a reply, or refuses them.
class TakenPort {
 public:
  explicit TakenPort(bool listening) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_, generic, size), 0);
    EXPECT_EQ(getsockname(fd_, generic, &size), 0);
    if (listening) {
      EXPECT_EQ(listen(fd_, 8), 0);
    }
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  ~TakenPort() { close(fd_); }

  const std::string& address() const { return address_; }

 private:
  const int fd_;
  std::string address_;
};

class BadInputTest : public DaemonTest {
 protected:
  // Replaces $ROOT by the test's folder; $REFUSING, $SILENT by the addresses of the two ports.
  Texts Fill(const Texts& texts) const {
    Texts filled;
    for (const std::string& text : texts) {
      filled.push_back(absl::StrReplaceAll(text, {{"$ROOT", Path("")},
                                                  {"$REFUSING", refusing_.address()},
                                                  {"$SILENT", silent_.address()}}));
    }
    return filled;
  }

  void ExpectRefused(Process& process, const Texts& parts) {
    SCOPED_TRACE(process.command());
    ASSERT_TRUE(process.WaitForEnd(After(kPatience)));
    const std::string err = process.err();
    EXPECT_THAT(err, StartsWith("tug: error: "));
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
    EXPECT_EQ(process.out(), "");
    ExpectErrorLine(process, Fill(parts));
  }

  TakenPort refusing_{false};
  TakenPort silent_{true};
};

// ---- command line, job file, data ----

struct BadInput {
  const char* name;
  Texts arguments;
  Texts parts;  // parts of the error line
};
std::ostream& operator<<(std::ostream& out, const BadInput& bad) { return out << bad.name; }
std::string NameOf(const ::testing::TestParamInfo<BadInput>& info) { return info.param.name; }

Texts TrainWith(const Texts& settings) {
  return Texts{"train", "job.textproto", "--run-dir", "run"} + Set(settings);
}

class RefusedInput : public BadInputTest, public ::testing::WithParamInterface<BadInput> {
 protected:
  RefusedInput() {
    Write("unknown.textproto", "name: 'a' data { path: 'text.txt' }\ntrain { stepps: 5 }");
    Write("syntax.textproto", "name: 'a'\ndata { path: 'text.txt'");
    Write("type.textproto", "data { path: 'text.txt' } train { steps: 'many' }");
    Write("enum.textproto", "data { path: 'text.txt' } optimizer { clip: SOMETIMES }");
    Write("empty.txt", "");
    Write("short.txt", "To be, or not to be.");
    Write("latin1.txt", std::string(5000, 'a') + "caf\xE9 " + std::string(5000, 'b'));
    fs::create_directories(Path("no_text"));
    fs::create_directories(Path("used"));
    Write("used/notes.txt", "mine");
  }
};

TEST_P(RefusedInput, IsOneLineWithARemedyAndLeavesNothing) {
  ExpectRefused(Start(Fill(GetParam().arguments)), GetParam().parts);
  EXPECT_FALSE(fs::exists(Path("run"))) << "the same command would now fail for another reason";
  ExpectNobodyLeft();
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, RefusedInput,
    ::testing::Values(
        BadInput{"UnknownCommand", {"trian", "job.textproto"}, {"trian", "tug --help"}},
        BadInput{
            "UnknownFlag", {"train", "job.textproto", "--fast"}, {"--fast", "tug train --help"}},
        BadInput{"NoJob", {"train"}, {"no job given", "--resume RUN"}},
        BadInput{
            "MissingJobFile", {"train", "gone.textproto"}, {"gone.textproto", "check the path"}},
        BadInput{"AFolderAsJobFile", {"train", "no_text"}, {"no_text", "not a folder"}},
        BadInput{"StatusOfNothing", {"status"}, {"--coordinator HOST:PORT"}},
        BadInput{"StatusOfAnotherFolder", {"status", "no_text"}, {"no_text", "not a run folder"}},
        BadInput{
            "NotAnAddress", {"worker", "--coordinator", "somewhere"}, {"somewhere", "HOST:PORT"}},
        BadInput{"NotAPort", {"server", "--coordinator", "a:99999"}, {"a:99999", "HOST:PORT"}},
        BadInput{"UnknownHost",
                 {"stop", "--coordinator", "no-such-host.invalid:7070"},
                 {"no-such-host.invalid:7070", "if it is not running"}},
        BadInput{"NoSuchRun", {"sample", "--from", "gone"}, {"gone"}},
        BadInput{"BadSampleOption",
                 {"sample", "--from", "gone", "--temperature", "hot"},
                 {"--temperature", "tug sample --help"}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    JobFile, RefusedInput,
    ::testing::Values(
        BadInput{"UnknownField",
                 {"train", "unknown.textproto"},
                 {"unknown.textproto:2:", "stepps", "global_batch"}},
        BadInput{"UnclosedBrace", {"train", "syntax.textproto"}, {"syntax.textproto:2:"}},
        BadInput{"WrongType", {"train", "type.textproto"}, {"type.textproto:1:", "many"}},
        BadInput{
            "UnknownEnumName", {"train", "enum.textproto"}, {"enum.textproto:1:", "SOMETIMES"}},
        BadInput{
            "SetWithoutValue", TrainWith({"train.steps"}), {"train.steps", "path.to.field=value"}},
        BadInput{"SetOfUnknownField", TrainWith({"train.stepps=5"}), {"stepps", "steps"}},
        BadInput{"SetOfWrongType", TrainWith({"train.steps=many"}), {"train.steps", "many"}},
        BadInput{"SetOfUnknownEnumName",
                 TrainWith({"optimizer.clip=SOMETIMES"}),
                 {"optimizer.clip", "PER_BLOCK"}},
        BadInput{"TooSmall", TrainWith({"model.layers=0"}), {"model.layers = 0", "1..256"}},
        BadInput{"TooLarge", TrainWith({"model.dropout=1.5"}), {"model.dropout = 1.5", "[0, 1)"}},
        BadInput{
            "NotANumber", TrainWith({"optimizer.learning_rate=nan"}), {"optimizer.learning_rate"}},
        BadInput{"Negative", TrainWith({"train.steps=-1"}), {"train.steps", "-1"}},
        BadInput{"BatchAndWorkers",
                 TrainWith({"train.global_batch=5"}),
                 {"train.global_batch = 5", "cluster.virtual_workers = 2", "multiple"}},
        BadInput{"WidthAndHeads",
                 TrainWith({"model.heads=3"}),
                 {"model.width = 32", "model.heads = 3", "multiple"}},
        BadInput{"WorkersAndVirtualWorkers",
                 TrainWith({"cluster.workers=3"}),
                 {"cluster.workers = 3", "cluster.virtual_workers = 2"}},
        BadInput{"WarmUpAndSteps",
                 TrainWith({"optimizer.warmup_steps=50"}),
                 {"optimizer.warmup_steps = 50", "train.steps = 50"}},
        BadInput{"HeartbeatAndTimeout",
                 TrainWith({"fault.failure_timeout_ms=50"}),
                 {"fault.failure_timeout_ms = 50", "fault.heartbeat_ms = 20"}},
        BadInput{"SegmentNotAPowerOfTwo",
                 TrainWith({"comm.segment_elements=5000"}),
                 {"comm.segment_elements = 5000", "power of two"}},
        BadInput{"MoreLanesThanSegments",
                 TrainWith({"cluster.lanes_per_server=7"}),
                 {"14 lanes", "12 segments", "fewer lanes or smaller segments"}},
        BadInput{"ResolvedByHand",
                 TrainWith({"data.resolved_symbols=9"}),
                 {"data.resolved_symbols", "remove it"}},
        BadInput{"RunFolderInUse",
                 {"train", "job.textproto", "--run-dir", "used"},
                 {"used", "--run-dir"}},
        BadInput{"RunFolderIsAFile",
                 {"train", "job.textproto", "--run-dir", "short.txt"},
                 {"short.txt", "--run-dir"}},
        BadInput{"RunFolderNotUtf8",
                 {"train", "job.textproto", "--run-dir", "caf\xE9"},
                 {"the run folder", "caf\\xe9", "UTF-8"}},
        BadInput{"ResumeFromNowhere", TrainWith({}) + Texts{"--resume", "gone"}, {"gone"}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Data, RefusedInput,
    ::testing::Values(
        BadInput{"MissingText", TrainWith({"data.path=gone.txt"}), {"data.path", "gone.txt"}},
        BadInput{
            "EmptyText", TrainWith({"data.path=empty.txt"}), {"empty.txt is empty", "data.path"}},
        BadInput{"FolderWithoutText", TrainWith({"data.path=no_text"}), {"no_text", "data.path"}},
        BadInput{"PathNotUtf8",
                 TrainWith({"data.path=te\xE9xt.txt"}),
                 {"data.path", "te\\xe9xt.txt", "UTF-8"}},
        BadInput{"TextTooShort",
                 TrainWith({"data.path=short.txt"}),
                 {"short.txt", "20 tokens", "model.context"}},
        BadInput{"ContextTooLong",
                 TrainWith({"model.context=65536"}),
                 {"text.txt", "200000 tokens", "model.context 65536"}},
        BadInput{"NotUtf8",
                 TrainWith({"data.path=latin1.txt", "data.tokenizer=CHARACTER"}),
                 {"latin1.txt", "UTF-8", "5003"}}),
    NameOf);

// ---- addresses ----

TEST_F(BadInputTest, ACoordinatorCannotListenOnAPortInUse) {
  ExpectRefused(
      Start({"coordinator", job(), "--listen", silent_.address(), "--run-dir", Path("run")}),
      {silent_.address(), "in use", "--listen"});
  EXPECT_FALSE(fs::exists(Path("run")));
}

TEST_F(BadInputTest, ACoordinatorCannotListenOnAnotherHostsAddress) {
  // The error line follows a warning that such an address is exposed.
  const Process& process =
      Run({"coordinator", job(), "--listen", "192.0.2.1:0", "--run-dir", Path("run")});
  ExpectErrorLine(process, {"192.0.2.1", "--listen"});
  EXPECT_FALSE(fs::exists(Path("run")));
}

TEST_F(BadInputTest, ACoordinatorThatCannotBeReachedIsNamed) {
  const std::vector<Texts> commands = {{"server"}, {"server", "--spare"}, {"worker"}, {"status"},
                                       {"stop"},   {"drain", "worker-0"}};
  std::vector<Process*> started;
  for (const TakenPort* port : {&refusing_, &silent_}) {
    for (const Texts& command : commands) {
      started.push_back(&Start(command + Texts{"--coordinator", port->address()}));
    }
  }
  for (size_t i = 0; i < started.size(); ++i) {
    const std::string at = i < commands.size() ? "$REFUSING" : "$SILENT";
    ExpectRefused(*started[i], {"cannot reach the coordinator at " + at, "if it is not running",
                                "tug coordinator JOB --listen " + at});
  }
}

TEST_F(BadInputTest, AWorkerWithAnotherConfigurationIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartCoordinator({}));
  ExpectRefused(Start({"worker", "--coordinator", address(), "--job", job(), "--set", "seed=2"}),
                {"configuration", "differs from the coordinator's", "--job"});
  // A worker with the same configuration is accepted, and the job is unharmed.
  StartServers(2);
  StartWorkers(2, {"--job", job()});
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
  for (Process* node : nodes_) {
    ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
    EXPECT_EQ(node->exit_code(), 0) << node->err();
  }
}

TEST_F(BadInputTest, TheRunFolderOfAJobThatIsRunningIsNotResumed) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "run"));
  ExpectRefused(
      Start(Texts{"train", job(), "--resume", Path("run")} + Set({"train.steps=100000000"})),
      {"is running in", "tug stop"});
  EXPECT_FALSE(train.WaitForEnd(absl::Now())) << "the job was harmed";
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  EXPECT_EQ(train.exit_code(), 0);
}

// ---- checkpoints ----

class BadCheckpointTest : public BadInputTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Train("good", {"train.steps=4", "optimizer.warmup_steps=1",
                                           "checkpoint.interval=2", "train.eval_interval=0"}));
  }

  // Copies the run, so that its newest checkpoint, of step 4, can be damaged.
  std::string Copy(const std::string& name) {
    fs::copy(Path("good"), Path(name), fs::copy_options::recursive);
    return Path(name);
  }
  static std::string Newest(const std::string& run) { return run + "/checkpoints/step-00000004"; }

  // Every command that reads checkpoints refuses it, naming file and remedy.
  void ExpectAllRefuse(const std::string& run, const Texts& parts) {
    const Texts settings = Set({"train.steps=8", "optimizer.warmup_steps=1"});
    ExpectRefused(Start(Texts{"train", job(), "--resume", run} + settings), parts);
    ExpectRefused(Start(Texts{"train", job(), "--resume", Newest(run), "--run-dir", Path("other")} +
                        settings),
                  parts);
    EXPECT_FALSE(fs::exists(Path("other")));
    ExpectRefused(Start({"sample", "--from", run}), parts);
    ExpectRefused(Start({"eval", "--from", Newest(run)}), parts);
    ExpectNobodyLeft();
  }

  static void FlipBit(const std::string& file, double where) {
    std::string bytes = ReadText(file);
    ASSERT_FALSE(bytes.empty()) << file;
    bytes[std::min(static_cast<size_t>(where * static_cast<double>(bytes.size())),
                   bytes.size() - 1)] ^= 0x10;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
};

TEST_F(BadCheckpointTest, FlippedBitsAreFound) {
  for (const char* file : {"lane-000.safetensors", "lane-001.safetensors", "manifest.textproto"}) {
    for (const double where : {0.0, 0.001, 0.5, 1.0}) {
      SCOPED_TRACE(absl::StrCat(file, " at ", where));
      const std::string run = Copy(absl::StrCat(file, where));
      FlipBit(Newest(run) + "/" + file, where);
      ExpectRefused(Start({"sample", "--from", run}),
                    {file, "damaged", "checkpoints/step-00000002"});
    }
  }
}

TEST_F(BadCheckpointTest, ADamagedLaneFileIsRefusedByAll) {
  const std::string run = Copy("damaged");
  FlipBit(Newest(run) + "/lane-001.safetensors", 0.7);
  ExpectAllRefuse(run, {"lane-001.safetensors", "damaged", "use the next older complete checkpoint",
                        "step-00000002"});
  // The suggested remedy works.
  EXPECT_EQ(Run({"sample", "--from", run + "/checkpoints/step-00000002"}).exit_code(), 0);
  const Process& resumed = Run(Texts{"train", job(), "--resume", run + "/checkpoints/step-00000002",
                                     "--run-dir", Path("way_out")} +
                               Set({"train.steps=4", "optimizer.warmup_steps=1"}));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err();
}

TEST_F(BadCheckpointTest, ATruncatedLaneFileIsRefusedByAll) {
  const std::string run = Copy("truncated");
  const std::string file = Newest(run) + "/lane-000.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  ExpectAllRefuse(run, {"lane-000.safetensors", "truncated", "step-00000002"});
}

TEST_F(BadCheckpointTest, ATruncatedManifestIsRefusedByAll) {
  const std::string run = Copy("truncated");
  const std::string file = Newest(run) + "/manifest.textproto";
  fs::resize_file(file, fs::file_size(file) / 2);
  ExpectAllRefuse(run, {"manifest.textproto", "truncated", "step-00000002"});
}

TEST_F(BadCheckpointTest, AMissingLaneFileIsRefusedByAll) {
  const std::string run = Copy("missing");
  fs::remove(Newest(run) + "/lane-000.safetensors");
  ExpectAllRefuse(run, {"lane-000.safetensors", "is missing", "step-00000002"});
}

TEST_F(BadCheckpointTest, ACheckpointOfAnotherJobIsRefused) {
  const auto resume = [this](const Texts& settings) -> Process& {
    return Start(Texts{"train", job(), "--resume", Path("good"), "--run-dir", Path("other")} +
                 Set(Texts{"train.steps=8"} + settings));
  };
  ExpectRefused(resume({"model.width=64"}), {"model.width", "32", "64", "--set model.width=32"});
  ExpectRefused(resume({"seed=2"}), {"seed", "--set seed=1"});
  ExpectRefused(resume({"cluster.virtual_workers=4"}), {"cluster.virtual_workers"});
  ExpectRefused(resume({"data.validation_fraction=0.2"}), {"data.validation_fraction"});
  Write("text.txt", std::string(200'000, 'x'));
  ExpectRefused(resume({}), {"data.path", "text"});
  EXPECT_FALSE(fs::exists(Path("other")));
}

TEST_F(BadCheckpointTest, AJobThatHasAllItsStepsIsDone) {
  Process& resumed = Run({"train", job(), "--resume", Path("good"), "--set", "train.steps=4",
                          "--set", "optimizer.warmup_steps=1"});
  EXPECT_EQ(resumed.exit_code(), 0);
  EXPECT_THAT(resumed.err(), HasSubstr("has all 4 steps of train.steps: the job is complete"));
  EXPECT_THAT(resumed.err(), HasSubstr("--set train.steps=8"));
}

TEST_F(BadCheckpointTest, ARefusedResumeLeavesTheRunAsItWas) {
  const std::string text = ReadText(Path("text.txt"));
  const std::string tokens = ReadText(Path("good/data/tokens.bin"));
  const std::string config = ReadText(Path("good/config.textproto"));
  const auto resume = [this](const Texts& settings) -> Process& {
    return Start(Texts{"train", job(), "--resume", Path("good")} +
                 Set(Texts{"train.steps=8"} + settings));
  };
  Write("other.txt", std::string(200'000, 'x'));
  ExpectRefused(resume({"data.path=other.txt"}), {"data.path", "text"});
  ExpectRefused(resume({"data.tokenizer=CHARACTER"}), {"--set data.tokenizer=BYTE"});
  Write("text.txt", text + "and one more line\n");
  ExpectRefused(resume({}), {"data.path", "text"});
  EXPECT_TRUE(ReadText(Path("good/data/tokens.bin")) == tokens);
  EXPECT_EQ(ReadText(Path("good/config.textproto")), config);
  EXPECT_EQ(Run({"eval", "--from", Path("good")}).exit_code(), 0);
  Write("text.txt", text);
  Process& resumed = resume({});
  ASSERT_TRUE(resumed.WaitForEnd(After(kPatience)));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err();
}

// ---- disk ----

TEST_F(BadInputTest, AFileThatCannotBeWrittenWholeIsNamed) {
  // The tokens of the text take 200 kB.
  ExpectRefused(StartLimited({"train", job(), "--run-dir", Path("run")}, RLIMIT_FSIZE, 100'000),
                {"tokens.bin", "ulimit -f"});
  EXPECT_FALSE(fs::exists(Path("run")));
  ExpectNobodyLeft();
}

TEST_F(BadInputTest, AStartThatFailsDeletesNothingThatWasThere) {
  fs::create_directories(Path("disk/sub"));
  fs::create_directory_symlink("disk/sub", Path("link"));
  const auto start = [this](const std::string& run) -> Process& {
    return Start(Texts{"train", job(), "--run-dir", run} + Set({"data.path=gone.txt"}));
  };
  // link/../used is "used" as text, but disk/used for the kernel.
  fs::create_directories(Path("used"));
  Write("used/notes.txt", "mine");
  ExpectRefused(start("link/../used"), {"gone.txt"});
  EXPECT_EQ(ReadText(Path("used/notes.txt")), "mine");
  EXPECT_FALSE(fs::exists(Path("disk/used")));
  fs::create_directories(Path("disk/used"));
  Write("disk/used/notes.txt", "mine");
  ExpectRefused(start("link/../used"), {"link/../used is not empty"});

  fs::create_directories(Path("disk/empty"));
  fs::create_directory_symlink("disk/empty", Path("out"));
  ExpectRefused(start("out"), {"gone.txt"});
  EXPECT_TRUE(fs::is_symlink(Path("out")));
  EXPECT_TRUE(fs::is_directory(Path("disk/empty")));
}

TEST_F(BadInputTest, AFolderThatCannotBeMadeIsNamed) {
  ExpectRefused(Start({"train", job(), "--run-dir", "/proc/run"}), {"/proc/run"});
}

}  // namespace
}  // namespace tug
