// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DOCTOR_DOCTOR_HOSTS_H_
#define TUG_DOCTOR_DOCTOR_HOSTS_H_

// Hosts examined by `tug doctor`: starts `tug probe` on each (doctor/doctor_probe.h) and sends it
// requests.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "doctor/doctor_checks.h"
#include "launch/hosts/ssh_hosts.h"
#include "launch/launcher.h"
#include "process/pipe.h"

namespace tug {

// Not thread-safe. REQUIRES: the process has one thread, and ignores SIGPIPE.
class ProbedHosts {
 public:
  // `folder`: for the probes' stderr.
  explicit ProbedHosts(std::string folder) : folder_(std::move(folder)) {}

  // Starts program `argv` as a probe. `address`: by which we reach its host.
  absl::Status Add(const std::string& name, const std::vector<std::string>& argv,
                   const std::string& address, const std::vector<std::string>& interfaces);
  size_t size() const { return hosts_.size(); }
  const std::string& name(size_t host) const { return hosts_[host].name; }

  // Facts of all hosts, read concurrently, in order. Errors, here and below: UNAVAILABLE, naming
  // the host; FAILED_PRECONDITION, the probe's error; CANCELLED by an interrupt.
  absl::StatusOr<std::vector<HostFacts>> ReadFacts(const FactsWanted& wanted);

  // Checks whether the hosts `readers` see a file that `writer` creates in its `folder`.
  absl::StatusOr<std::vector<Finding>> CheckSharedFolder(size_t writer, const std::string& folder,
                                                         const std::vector<size_t>& readers);

  // Measures all pairs of hosts one after another, with a stream of length `each` in both
  // directions; calls `begins` before each. A failed connection becomes a finding.
  struct Links {
    std::vector<CheckedLink> measured;
    std::vector<Finding> findings;
  };
  absl::StatusOr<Links> MeasureLinks(
      absl::Duration each,
      const std::function<void(const std::string& from, const std::string& to)>& begins);

 private:
  struct Host {
    std::string name;
    std::string address;
    std::vector<std::string> interfaces;
    std::string log_path;
    FileDescriptor requests;
    FileDescriptor answers;
    LineReader lines;
    std::vector<std::string> heard;  // replies not yet consumed
  };

  absl::Status Tell(size_t host, const nlohmann::json& request);
  absl::StatusOr<nlohmann::json> Hear(size_t host, absl::Duration patience);
  absl::StatusOr<nlohmann::json> Ask(size_t host, const nlohmann::json& request,
                                     absl::Duration patience);
  absl::StatusOr<LinkReport> MeasureLink(size_t from, size_t to, absl::Duration each);

  const std::string folder_;
  Launcher launcher_;
  std::vector<Host> hosts_;
};

}  // namespace tug

#endif  // TUG_DOCTOR_DOCTOR_HOSTS_H_
