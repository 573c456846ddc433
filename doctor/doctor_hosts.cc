// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_hosts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "doctor/doctor_probe.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kFactsPatience = absl::Seconds(60);  // probes read texts
constexpr absl::Duration kPatience = absl::Seconds(15);

// Last words of a probe after ": "; empty if it printed nothing.
std::string LastWordsOf(const std::string& log_path) {
  const std::string words = LastWords(log_path);
  if (words.empty()) return "";
  return absl::StrCat(": ", absl::StripPrefix(words, "tug: error: "));
}

}  // namespace

absl::Status ProbedHosts::Add(const std::string& name, const std::vector<std::string>& argv,
                              const std::string& address,
                              const std::vector<std::string>& interfaces) {
  Host host{.name = name, .address = address, .interfaces = interfaces};
  host.log_path = absl::StrCat(folder_, "/probe-", hosts_.size(), ".log");
  ASSIGN_OR_RETURN(Pipe requests, NewPipe());
  ASSIGN_OR_RETURN(Pipe answers, NewPipe());
  const FileDescriptor log(open(host.log_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Program program;
  program.name = name;
  program.argv = argv;
  program.input_fd = requests.read_end.get();
  program.output_fd = answers.write_end.get();
  program.error_fd = log.get();
  RETURN_IF_ERROR(launcher_.Start(program).status());
  host.requests = std::move(requests.write_end);
  host.answers = std::move(answers.read_end);
  hosts_.push_back(std::move(host));
  return absl::OkStatus();
}

absl::Status ProbedHosts::Tell(size_t host, const Json& request) {
  const std::string line = request.dump() + "\n";  // fits the pipe's buffer
  if (write(hosts_[host].requests.get(), line.data(), line.size()) ==
      static_cast<ssize_t>(line.size())) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("the probe on ", hosts_[host].name, " has ended",
                                             LastWordsOf(hosts_[host].log_path)));
}

absl::StatusOr<Json> ProbedHosts::Hear(size_t number, absl::Duration patience) {
  Host& host = hosts_[number];
  const absl::Time deadline = launcher_.Now() + patience;
  const auto on_line = [&](const std::string& line) {
    absl::string_view answer = line;
    if (absl::ConsumePrefix(&answer, kProbePrefix)) host.heard.emplace_back(answer);
  };
  while (host.heard.empty()) {
    if (launcher_.Wait(deadline, {host.answers.get()}).interrupted) {
      return absl::CancelledError("interrupted");
    }
    PassLines(host.answers, host.lines, on_line);
    if (!host.answers.valid() && host.heard.empty()) {
      return absl::UnavailableError(
          absl::StrCat("the connection to ", host.name, " is lost", LastWordsOf(host.log_path)));
    }
    if (host.heard.empty() && launcher_.Now() >= deadline) {
      return absl::UnavailableError(
          absl::StrCat(host.name, " has not replied for ", absl::FormatDuration(patience)));
    }
  }
  const std::string line = host.heard.front();
  host.heard.erase(host.heard.begin());
  const Json answer = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    return absl::UnavailableError(absl::StrCat(host.name,
                                               " sent an invalid answer: run the same version of "
                                               "tug there (docs/launch.md, What a host needs)"));
  }
  if (answer.contains("error") && answer["error"].is_string()) {
    return absl::FailedPreconditionError(answer["error"].get<std::string>());
  }
  return answer;
}

absl::StatusOr<Json> ProbedHosts::Ask(size_t host, const Json& request, absl::Duration patience) {
  RETURN_IF_ERROR(Tell(host, request));
  return Hear(host, patience);
}

absl::StatusOr<std::vector<HostFacts>> ProbedHosts::ReadFacts(const FactsWanted& wanted) {
  const Json request = {{"do", "facts"}, {"run_dir", wanted.run_dir}, {"text", wanted.text}};
  for (size_t host = 0; host < size(); ++host) RETURN_IF_ERROR(Tell(host, request));
  std::vector<HostFacts> facts;
  for (size_t host = 0; host < size(); ++host) {
    ASSIGN_OR_RETURN(const Json answer, Hear(host, kFactsPatience));
    ASSIGN_OR_RETURN(facts.emplace_back(), HostFactsOf(answer));
  }
  return facts;
}

absl::StatusOr<std::vector<Finding>> ProbedHosts::CheckSharedFolder(
    size_t writer, const std::string& folder, const std::vector<size_t>& readers) {
  ASSIGN_OR_RETURN(const Json written,
                   Ask(writer, {{"do", "write"}, {"folder", folder}}, kPatience));
  const Json path = written.value("path", "");
  const auto remove = [&] { return Ask(writer, {{"do", "remove"}, {"path", path}}, kPatience); };
  std::vector<Finding> findings;
  for (const size_t reader : readers) {
    const absl::StatusOr<Json> answer = Ask(reader, {{"do", "sees"}, {"path", path}}, kPatience);
    if (!answer.ok()) {
      remove().status().IgnoreError();
      return answer.status();
    }
    Finding finding{FindingLevel::kOk, name(reader), kSharedRunCheck,
                    absl::StrCat("sees files that ", name(writer), " writes in ", folder), ""};
    if (!answer->value("sees", false)) {
      finding.level = FindingLevel::kProblem;
      finding.what = absl::StrCat("does not see files that ", name(writer), " writes in ", folder);
      finding.remedy = "mount the same storage (such as NFS) at this path on both hosts";
    }
    findings.push_back(std::move(finding));
  }
  RETURN_IF_ERROR(remove().status());
  return findings;
}

absl::StatusOr<LinkReport> ProbedHosts::MeasureLink(size_t from, size_t to, absl::Duration each) {
  ASSIGN_OR_RETURN(const Json listening, Ask(to,
                                             {{"do", "listen"},
                                              {"peers", {hosts_[from].address, hosts_[to].address}},
                                              {"interfaces", hosts_[to].interfaces}},
                                             kPatience));
  RETURN_IF_ERROR(Tell(to, {{"do", "answer"}}));
  const absl::Duration patience = kPatience + 3 * each;
  const absl::StatusOr<Json> report = Ask(from,
                                          {{"do", "ask"},
                                           {"address", listening.value("address", "")},
                                           {"port", listening.value("port", 0)},
                                           {"seconds", absl::ToDoubleSeconds(each)}},
                                          patience);
  // Read its reply in any case: otherwise the next request would get it.
  const absl::StatusOr<Json> answered = Hear(to, patience);
  RETURN_IF_ERROR(report.status());
  RETURN_IF_ERROR(answered.status());
  return LinkReportOf(*report);
}

absl::StatusOr<ProbedHosts::Links> ProbedHosts::MeasureLinks(
    absl::Duration each,
    const std::function<void(const std::string& from, const std::string& to)>& begins) {
  Links links;
  for (size_t from = 0; from < size(); ++from) {
    for (size_t to = from + 1; to < size(); ++to) {
      begins(name(from), name(to));
      const absl::StatusOr<LinkReport> report = MeasureLink(from, to, each);
      if (absl::IsCancelled(report.status()) || absl::IsUnavailable(report.status())) {
        return report.status();
      }
      if (report.ok()) {
        links.measured.push_back({name(from), name(to), *report});
        continue;
      }
      links.findings.push_back({FindingLevel::kProblem, absl::StrCat(name(from), " -> ", name(to)),
                                kConnectionCheck, std::string(report.status().message()),
                                "open all TCP ports between the hosts (firewall), or choose the "
                                "network with interface=NAME in the hosts file"});
    }
  }
  return links;
}

}  // namespace tug
