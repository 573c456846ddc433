// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/nearest_name.h"
#include "base/standard_error.h"
#include "cli/command_tree.h"
#include "google/protobuf/stubs/logging.h"
#include "process/last_words.h"
#include "process/log_format.h"
#include "process/number_options.h"
#include "process/standard_streams.h"
#include "process/version.h"

namespace tug {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int Fail(const std::string& message, int code) {
  ReportError(message);
  return code;
}

// Extends a failed command's message if the working folder is gone, since relative paths then fail.
std::string WithLostFolder(absl::string_view message) {
  std::error_code error;
  const bool known = !std::filesystem::current_path(error).empty();
  if (known || error != std::errc::no_such_file_or_directory) return std::string(message);
  return absl::StrCat(message,
                      "; the working directory of this process was deleted: cd to one that exists");
}

int RunChosen(const Command& chosen) {
  try {
    const absl::Status status = chosen();
    if (status.ok()) return 0;
    return status.message().empty() ? kFailed : Fail(WithLostFolder(status.message()), kFailed);
  } catch (...) {
    return Fail(WhyItEnds(std::current_exception()), kFailed);
  }
}

// The command or option that the first unknown word probably stands for: "; did you mean train?".
std::string MeantWord(const CLI::App& command, const std::string& word) {
  const bool is_option = word[0] == '-';
  return DidYouMean(word.substr(0, word.find('=')),
                    is_option ? OptionNames(command) : CommandNames(command));
}

// `word`: the first argument.
int Usage(const CLI::App& app, const CLI::ParseError& error, const std::string& word) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  std::string help = "tug";
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    absl::StrAppend(&help, " ", command->get_name());
  }
  std::string what = error.what();
  if (command == &app && word[0] != '-') {
    what = absl::StrCat("unknown command '", word, "'", MeantWord(app, word));
  } else if (const auto unknown = command->remaining(); !unknown.empty()) {
    what += MeantWord(*command, unknown.front());
  }
  return Fail(absl::StrCat(what, "; see ", help, " --help"), kWrongUsage);
}

int Run(int argc, char** argv, AddCommands add) {
  // Silence the messages of gRPC and protobuf; a user who wants gRPC's sets the variable.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  google::protobuf::SetLogHandler(nullptr);
  // Debian's Abseil checks the lock order for cycles, under a global lock, whenever a lock is
  // taken. Tests keep that check.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);

  if (const absl::Status chosen = ChooseLogFormat(); !chosen.ok()) {
    return Fail(std::string(chosen.message()), kWrongUsage);
  }

  Command chosen;
  CLI::App app{"Tugboat: trains a GPT through sharded parameter servers.", "tug"};
  app.footer(
      "Examples:\n"
      "  tug train deploy/jobs/quickstart.textproto\n"
      "  tug status runs/quickstart-1\n"
      "  tug sample --from runs/quickstart-1 --prompt \"In the beginning\"\n"
      "Each command has its own --help. With TUG_LOG_FORMAT=json in the environment, processes "
      "log\n"
      "JSON, one object per line.");
  app.set_version_flag("--version", VersionText());
  app.require_subcommand(1);
  add(app, chosen);
  CheckNumbers(app);
  if (argc < 2) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Usage(app, error, argv[1]);
  }

  return RunChosen(chosen);
}

}  // namespace

int RunProgram(int argc, char** argv, AddCommands add) {
  PrepareStandardStreams();
  ReportUncaughtExceptions();
  int code = Run(argc, argv, add);
  if (code == 0) {
    const absl::Status written = FlushResults();
    if (!written.ok()) code = Fail(std::string(written.message()), kFailed);
  }
  FlushStandardError();
  return code;
}

}  // namespace tug
