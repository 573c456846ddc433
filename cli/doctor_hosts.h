#ifndef TUG_CLI_DOCTOR_HOSTS_H_
#define TUG_CLI_DOCTOR_HOSTS_H_

// Hosts that `tug doctor` looks at: it starts `tug probe` on each (cli/doctor_probe.h) and asks.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/doctor_checks.h"
#include "cli/launcher.h"
#include "cli/pipe.h"
#include "cli/ssh_hosts.h"

namespace tug {

// Not thread-safe. REQUIRES: the process has one thread, and ignores SIGPIPE.
class ProbedHosts {
 public:
  // `folder`: for what probes say on stderr.
  explicit ProbedHosts(std::string folder) : folder_(std::move(folder)) {}

  // The probe is program `argv`. `address`: by which we reach its host.
  absl::Status Add(const std::string& name, const std::vector<std::string>& argv,
                   const std::string& address, const std::vector<std::string>& interfaces);
  size_t size() const { return hosts_.size(); }
  const std::string& name(size_t host) const { return hosts_[host].name; }

  // Of all hosts at once, in order. Errors: UNAVAILABLE, naming the host, and CANCELLED by an
  // interrupt, here and below.
  absl::StatusOr<std::vector<HostFacts>> ReadFacts(const FactsWanted& wanted);

  // Whether a file that `writer` makes in its `folder` is seen by the other hosts `readers`.
  absl::StatusOr<std::vector<Finding>> CheckSharedFolder(size_t writer, const std::string& folder,
                                                         const std::vector<size_t>& readers);

  // Every two hosts one after the other, `each` of a stream each way; `begins` is called before.
  // What cannot connect becomes a finding.
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
    std::vector<std::string> heard;  // answers that nobody has taken
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

#endif  // TUG_CLI_DOCTOR_HOSTS_H_
