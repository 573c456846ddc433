#ifndef TUG_CLI_DOCTOR_PROBE_H_
#define TUG_CLI_DOCTOR_PROBE_H_

// The end of `tug doctor` that is on a host: `tug probe`. A request is a line of JSON at stdin, the
// answer a line at stdout behind kProbePrefix, since a login shell may print too:
//
//   {"do": "facts", "run_dir", "text"}           HostFacts (cli/doctor_facts.h)
//   {"do": "listen", "peers", "interfaces"}      {"address", "port"}: by which peers reach it
//   {"do": "answer"}                             {}, after one AskLink (cli/link_probe.h)
//   {"do": "ask", "address", "port", "seconds"}  a LinkReport
//   {"do": "write", "folder"}                    {"path"} of a new file
//   {"do": "sees", "path"}                       {"sees"}
//   {"do": "remove", "path"}                     {}
//
// What fails is answered by {"error"}. It ends with its stdin.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/doctor_facts.h"
#include "cli/link_probe.h"

namespace tug {

inline constexpr char kProbePrefix[] = "tug-probe ";
inline constexpr absl::Duration kLinkPatience = absl::Seconds(5);

// Reads requests from `in` and answers them at `out` until the end of `in`. Errors: those of
// reading and writing. REQUIRES: SIGPIPE is ignored.
absl::Status Probe(int in, int out, const std::function<GpuFacts()>& gpus,
                   const FactsPlaces& places);

nlohmann::json ToJson(const LinkReport& report);
absl::StatusOr<LinkReport> LinkReportOf(const nlohmann::json& json);

}  // namespace tug

#endif  // TUG_CLI_DOCTOR_PROBE_H_
