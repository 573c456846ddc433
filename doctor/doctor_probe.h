// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DOCTOR_DOCTOR_PROBE_H_
#define TUG_DOCTOR_DOCTOR_PROBE_H_

// The end of `tug doctor` on a host: `tug probe`. A request is a line of JSON on stdin, the reply a
// line on stdout after kProbePrefix, since a login shell may print too:
//
//   {"do": "facts", "run_dir", "text"}           HostFacts (doctor/doctor_facts.h)
//   {"do": "listen", "peers", "interfaces"}      {"address", "port"}: for connections of peers
//   {"do": "answer"}                             {}, after one AskLink (doctor/link_probe.h)
//   {"do": "ask", "address", "port", "seconds"}  a LinkReport
//   {"do": "write", "folder"}                    {"path"} of a new file
//   {"do": "sees", "path"}                       {"sees"}
//   {"do": "remove", "path"}                     {}
//
// A failed request is answered with {"error"}. The probe exits at the end of stdin.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "doctor/doctor_facts.h"
#include "doctor/link_probe.h"

namespace tug {

inline constexpr char kProbePrefix[] = "tug-probe ";
inline constexpr absl::Duration kLinkPatience = absl::Seconds(5);

// Reads requests from `in` and writes replies to `out` until the end of `in`. Errors: those of
// reading and writing. REQUIRES: SIGPIPE is ignored.
absl::Status Probe(int in, int out, const std::function<GpuFacts()>& gpus,
                   const FactsPlaces& places);

nlohmann::json ToJson(const LinkReport& report);
absl::StatusOr<LinkReport> LinkReportOf(const nlohmann::json& json);

}  // namespace tug

#endif  // TUG_DOCTOR_DOCTOR_PROBE_H_
