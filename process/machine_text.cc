// SPDX-License-Identifier: Apache-2.0
#include "process/machine_text.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cpu/cpu_affinity.h"

namespace tug {
namespace {

// Output of a command; empty if it fails.
std::string OutputOf(const char* command) {
  std::FILE* pipe = popen(command, "re");
  if (pipe == nullptr) return "";
  std::string output;
  char buffer[512];
  for (size_t count; (count = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    output.append(buffer, count);
  }
  if (pclose(pipe) != 0) return "";
  return std::string(absl::StripAsciiWhitespace(output));
}

}  // namespace

std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string MachineText() {
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  utsname system{};
  uname(&system);
  return absl::StrFormat("%s, %d cores, %.0f GB, %s %s", CpuModel(), ReadCpuBudget().usable,
                         memory * 1e-9, system.sysname, system.release);
}

std::string CheckoutCommit() {
  const std::string root = OutputOf("git rev-parse --show-toplevel 2>/dev/null");
  std::error_code error;
  if (root.empty() || !std::filesystem::exists(root + "/proto/job.proto", error)) return "";
  const std::string commit = OutputOf("git rev-parse --short=12 HEAD 2>/dev/null");
  if (commit.empty()) return "";
  const std::string changes = OutputOf("git status --porcelain --untracked-files=no 2>/dev/null");
  return changes.empty() ? commit : absl::StrCat(commit, " + changes");
}

}  // namespace tug
