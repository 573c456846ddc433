// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/ssh_hosts.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/files/file.h"
#include "base/files/shell_word.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "launch/launcher.h"
#include "launch/own_bundle.h"
#include "process/version.h"

namespace tug {
namespace {

constexpr uint64_t kOutputLimitBytes = uint64_t{1} << 20;
constexpr int kConnectSeconds = 10;
constexpr int kAliveProbes = 3;  // without a reply, before a connection counts as lost

// Scripts for sh on one line without single quotes, because csh accepts no other word. $1 is a
// path, or the name of a bundle's folder. The initial `echo` completes a line that the shell's
// startup files may have left unfinished.
constexpr char kTellConnection[] = R"sh(echo; echo "tug-connection $SSH_CONNECTION"; )sh";
constexpr char kFindProgram[] = "p=$1; ";
constexpr char kFindBundle[] =
    "c=${XDG_CACHE_HOME:-$HOME/.cache}/tugboat; p=$c/$1/tug/bin/tug; "
    R"sh(if [ -x "$p" ]; then touch "$c/$1"; fi; )sh";
// $2: tar's decompression option. If two unpack at once, one of them renames. tar accepts an
// archive cut off between two files as complete; running the program detects the missing libraries.
constexpr char kUnpack[] =
    R"sh(set -e; mkdir -p "$c"; t=$(mktemp -d "$c/part.XXXXXX"); trap "rm -rf \"$t\"" EXIT; )sh"
    R"sh(tar $2 --no-same-owner -xf - -C "$t"; chmod 755 "$t"; )sh"
    R"sh("$t/tug/bin/tug" --version > /dev/null; )sh"
    R"sh(if mv -T "$t" "$c/$1" 2> /dev/null; then )sh"
    // Keep the newest three and those used within a week: a running job may need them again.
    R"sh({ ls "$c" | grep "^part" || :; ls -t "$c" | grep -v "^part" | tail -n +4; } | )sh"
    R"sh(while read -r d; do )sh"
    R"sh(find "$c/$d" -maxdepth 0 -mtime +6 -exec rm -rf "{}" ";"; done; )sh"
    R"sh(else [ -x "$p" ]; fi; )sh";
constexpr char kTell[] = R"sh(if [ -x "$p" ]; then echo "tug-program $p"; )sh"
                         R"sh(echo "tug-version $("$p" --version 2>&1 | tail -n 1)"; fi)sh";

std::string ShellLine(const std::string& script, const std::vector<std::string>& arguments) {
  std::string line = absl::StrCat("exec sh -c ", Quoted(script), " tug");
  for (const std::string& argument : arguments) absl::StrAppend(&line, " ", Quoted(argument));
  return line;
}

// Rest of the line that begins with `key`.
std::optional<std::string> Told(const std::string& output, const std::string& key) {
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    if (absl::ConsumePrefix(&line, key)) return std::string(absl::StripSuffix(line, "\r"));
  }
  return std::nullopt;
}

std::string DecompressionOf(const std::string& archive) {
  if (absl::EndsWith(archive, ".xz")) return "-J";
  return absl::EndsWith(archive, ".zst") ? "--zstd" : "";
}

class Preparation {
 public:
  // `goes_on`: continue with the other hosts if one cannot be prepared.
  Preparation(const std::vector<LaunchHost>& hosts, const SshOptions& options,
              const std::string& folder, bool goes_on)
      : hosts_(hosts),
        options_(options),
        folder_(folder),
        goes_on_(goes_on),
        ready_(hosts.size()),
        statuses_(hosts.size()) {}

  // Result by host. Errors: those that concern all hosts; with goes_on false, the first host's.
  absl::StatusOr<std::vector<absl::StatusOr<ReadyHost>>> Run() {
    std::vector<size_t> all(hosts_.size());
    std::iota(all.begin(), all.end(), 0);
    if (!options_.program.empty()) {
      RETURN_IF_ERROR(RunOn(
          all, ShellLine(absl::StrCat(kTellConnection, kFindProgram, kTell), {options_.program})));
      return Checked();
    }
    std::vector<BundledFile> files = OwnBundle();
    if (!options_.bundle.empty()) files = {{"bundle", options_.bundle}};
    ASSIGN_OR_RETURN(const std::string hash, HashOfFiles(files));
    RETURN_IF_ERROR(
        RunOn(all, ShellLine(absl::StrCat(kTellConnection, kFindBundle, kTell), {hash})));
    std::vector<size_t> without;
    for (const size_t host : all) {
      if (statuses_[host].ok() && ready_[host].program.empty()) without.push_back(host);
    }
    if (!without.empty()) RETURN_IF_ERROR(Copy(files, hash, without));
    return Checked();
  }

 private:
  absl::Status Copy(const std::vector<BundledFile>& files, const std::string& hash,
                    const std::vector<size_t>& to) {
    std::string archive = options_.bundle;
    if (archive.empty()) {
      ASSIGN_OR_RETURN(archive, PackFiles(files, folder_));
    }
    std::error_code ignored;
    PrintLineToStderr(
        absl::StrFormat("copying tug (%.0f MB) to %d of %d hosts",
                        static_cast<double>(std::filesystem::file_size(archive, ignored)) / 1e6,
                        to.size(), hosts_.size()));
    const absl::Status copied = RunOn(to,
                                      ShellLine(absl::StrCat("echo; ", kFindBundle, kUnpack, kTell),
                                                {hash, DecompressionOf(archive)}),
                                      archive);
    if (archive != options_.bundle) std::filesystem::remove(archive, ignored);
    return copied;
  }

  // Runs a line on each of these hosts concurrently. `input`: a file; empty: none.
  absl::Status RunOn(const std::vector<size_t>& on, const std::string& line,
                     const std::string& input = "") {
    Launcher launcher;
    for (const size_t host : on) {
      Program program;
      program.name = std::to_string(host);
      program.argv = SshCommand(options_, hosts_[host], line);
      program.log_path = OutputOf(host);
      std::error_code ignored;
      std::filesystem::remove(program.log_path, ignored);
      FileDescriptor archive;
      if (!input.empty()) {
        ASSIGN_OR_RETURN(archive, OpenForReading(input));
      }
      program.input_fd = archive.get();
      RETURN_IF_ERROR(launcher.Start(program).status());
    }
    while (launcher.running_count() > 0) {
      const LaunchEvent event = launcher.Wait(absl::InfiniteFuture());
      if (event.interrupted) return absl::CancelledError("interrupted before the job had started");
      if (!event.ended.has_value()) continue;
      const size_t host = std::stoul(event.ended->name);
      statuses_[host] = Look(host, *event.ended);
      if (!goes_on_) RETURN_IF_ERROR(statuses_[host]);
    }
    return absl::OkStatus();
  }

  absl::Status Look(size_t host, const Ended& ended) {
    if (!ended.exited_with_zero()) return NotReached(host, ended);
    ASSIGN_OR_RETURN(const std::string output, ReadWholeFile(ended.log_path, kOutputLimitBytes));
    if (const auto connection = Told(output, "tug-connection ")) {
      // Format: "CLIENT PORT SERVER PORT"
      const std::vector<std::string> parts = absl::StrSplit(*connection, ' ');
      if (parts.size() == 4) ready_[host].address = parts[2];
      if (absl::StrContains(ready_[host].address, ":")) {
        return absl::FailedPreconditionError(
            absl::StrCat(hosts_[host].name, " was reached at the IPv6 address ",
                         ready_[host].address, ", but daemons use IPv4 only: remove AddressFamily ",
                         "from --ssh, or write an IPv4 address in line ", hosts_[host].line,
                         " of the hosts file"));
      }
    }
    const auto version = Told(output, "tug-version ");
    ready_[host].program = Told(output, "tug-program ").value_or("");
    if (version.has_value() && *version != VersionText()) {
      return absl::FailedPreconditionError(
          absl::StrCat(ready_[host].program, " on ", hosts_[host].name, " reports '", *version,
                       "', but this program is '", VersionText(), "': install this build there"));
    }
    return absl::OkStatus();
  }

  absl::Status NotReached(size_t host, const Ended& ended) const {
    constexpr int kSshFailed = 255;
    const LaunchHost& of = hosts_[host];
    const std::string last_words = WordsOfTar(ended.log_path);
    absl::string_view said = last_words;
    absl::ConsumePrefix(&said, "tug: error: ");
    if (ended.killed_by_signal() || WEXITSTATUS(ended.wait_status) == kSshFailed) {
      return absl::UnavailableError(
          absl::StrCat("cannot reach ", of.name, " (line ", of.line, " of the hosts file): ", said,
                       "; make sure that `", options_.ssh[0], " ", of.destination,
                       " true` works without a password"));
    }
    return absl::FailedPreconditionError(absl::StrCat("cannot prepare ", of.name, ": ", said));
  }

  absl::StatusOr<ReadyHost> Checked(size_t host) const {
    RETURN_IF_ERROR(statuses_[host]);
    if (ready_[host].program.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("no executable ", options_.program, " on ",
                                                        hosts_[host].name,
                                                        ": install it there, or omit --program"));
    }
    if (ready_[host].address.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "sshd of ", hosts_[host].name, " did not report its address (SSH_CONNECTION)"));
    }
    return ready_[host];
  }

  std::vector<absl::StatusOr<ReadyHost>> Checked() const {
    std::vector<absl::StatusOr<ReadyHost>> checked;
    for (size_t host = 0; host < ready_.size(); ++host) checked.push_back(Checked(host));
    return checked;
  }

  std::string OutputOf(size_t host) const { return absl::StrCat(folder_, "/host-", host, ".out"); }

  const std::vector<LaunchHost>& hosts_;
  const SshOptions& options_;
  const std::string folder_;
  const bool goes_on_;
  std::vector<ReadyHost> ready_;
  std::vector<absl::Status> statuses_;  // by host: outcome of the last command there
};

}  // namespace

std::vector<std::string> SshCommand(const SshOptions& options, const LaunchHost& host,
                                    const std::string& line) {
  const int64_t seconds =
      std::max<int64_t>(1, absl::ToInt64Seconds(options.silence) / kAliveProbes);
  // ssh uses the first of two values of an option: the user's come first.
  std::vector<std::string> argv = options.ssh;
  for (const std::string& option : {std::string("BatchMode=yes"), std::string("AddressFamily=inet"),
                                    absl::StrCat("ConnectTimeout=", kConnectSeconds),
                                    absl::StrCat("ServerAliveInterval=", seconds),
                                    absl::StrCat("ServerAliveCountMax=", kAliveProbes)}) {
    argv.push_back("-o");
    argv.push_back(option);
  }
  argv.push_back("-T");
  if (host.port != 0) {
    argv.push_back("-p");
    argv.push_back(std::to_string(host.port));
  }
  argv.push_back(host.destination);
  argv.push_back(line);
  return argv;
}

absl::StatusOr<std::vector<ReadyHost>> PrepareHosts(const std::vector<LaunchHost>& hosts,
                                                    const SshOptions& options,
                                                    const std::string& folder) {
  ASSIGN_OR_RETURN(const auto prepared,
                   Preparation(hosts, options, folder, /*goes_on=*/false).Run());
  std::vector<ReadyHost> ready;
  for (const absl::StatusOr<ReadyHost>& host : prepared) {
    RETURN_IF_ERROR(host.status());
    ready.push_back(*host);
  }
  return ready;
}

absl::StatusOr<std::vector<absl::StatusOr<ReadyHost>>> PrepareEachHost(
    const std::vector<LaunchHost>& hosts, const SshOptions& options, const std::string& folder) {
  return Preparation(hosts, options, folder, /*goes_on=*/true).Run();
}

}  // namespace tug
