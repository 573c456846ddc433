// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_HOSTS_KUBERNETES_H_
#define TUG_LAUNCH_HOSTS_KUBERNETES_H_

// Renders a job as Kubernetes objects (docs/kubernetes.md) from its configuration:
//
//   ConfigMap    the job file, byte for byte
//   Service      the coordinator's address, constant during the job
//   Service      headless, of the servers
//   Job          the coordinator; after a crash it recovers its job from the run folder
//   StatefulSet  servers, including spare ones
//   Job          workers, completionMode Indexed; with a placement that pairs servers with workers,
//                each pod has both
//
// Source: Kubernetes API reference, v1.25 and newer (batch/v1, apps/v1, v1).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/hosts/yaml_text.h"
#include "proto/job.pb.h"

namespace tug {

struct KubernetesOptions {
  std::string image = "tugboat";
  std::string name;         // of the objects; empty: made from the job's
  std::string name_space;   // empty: kubectl's default
  std::string run_claim;    // PersistentVolumeClaim of run folders; empty: NAME-runs
  std::string text_claim;   // PersistentVolumeClaim of the text; empty: NAME-text
  std::string keys_secret;  // empty: NAME-keys
  uint32_t cpus = 4;        // per worker, if the job leaves compute_threads open
  uint32_t gpus = 1;        // per worker, with device: CUDA
};

struct KubernetesJob {
  std::string file_name;               // for comments
  std::string text;                    // content of the job file
  std::vector<std::string> overrides;  // from the command line
  std::string run_dir;                 // its last part names the folder in the claim; may be empty
  std::string resume;                  // path in the containers; may be empty
  JobConfig config;                    // text and overrides, as loaded by LoadJobConfig
};

inline constexpr int kKubernetesControlPort = 7070;
inline constexpr int kKubernetesMetricsPort = 9464;
inline constexpr int kKubernetesPagePort = 8080;

// Overrides for the containers, in addition to the job file and the command line: paths in the
// containers, fields that would otherwise depend on the coordinator's machine, fixed ports, and
// security.mode TOKEN instead of NONE, since pods have addresses that others can reach. Pure.
std::vector<std::string> KubernetesOverrides(const JobConfig& config);

// Errors: INVALID_ARGUMENT, one line with the remedy: an invalid Kubernetes name, a job file that
// is not UTF-8 or too large for a ConfigMap. Pure.
absl::StatusOr<std::vector<YamlDocument>> RenderKubernetes(const KubernetesJob& job,
                                                           const KubernetesOptions& options);

}  // namespace tug

#endif  // TUG_LAUNCH_HOSTS_KUBERNETES_H_
