#ifndef TUG_CLI_KUBERNETES_H_
#define TUG_CLI_KUBERNETES_H_

// A job as objects of Kubernetes (docs/kubernetes.md), from its configuration:
//
//   ConfigMap    the job file, byte for byte
//   Service      the coordinator's address, the same for as long as the job lives
//   Service      headless, of the servers
//   Job          the coordinator; one that dies takes its job up again from the run folder
//   StatefulSet  servers, and spare ones
//   Job          workers, completionMode Indexed; with a placement that has servers beside workers
//                a pod has both
//
// Source: Kubernetes API reference, v1.25 and newer (batch/v1, apps/v1, v1).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/yaml_text.h"
#include "proto/job.pb.h"

namespace tug {

struct KubernetesOptions {
  std::string image = "tugboat";
  std::string name;         // of the objects; empty: made of the job's
  std::string name_space;   // empty: left to kubectl
  std::string run_claim;    // PersistentVolumeClaim of run folders; empty: NAME-runs
  std::string text_claim;   // of the text; empty: NAME-text
  std::string keys_secret;  // empty: NAME-keys
  uint32_t cpus = 4;        // of a worker whose compute_threads the job leaves open
  uint32_t gpus = 1;        // of a worker, with device: CUDA
};

struct KubernetesJob {
  std::string file_name;               // for comments
  std::string text;                    // of the job file
  std::vector<std::string> overrides;  // of the command line
  std::string run_dir;                 // its last part names the folder in the claim; may be empty
  std::string resume;                  // a path in the containers; may be empty
  JobConfig config;                    // text and overrides, as LoadJobConfig has them
};

inline constexpr int kKubernetesControlPort = 7070;
inline constexpr int kKubernetesMetricsPort = 9464;
inline constexpr int kKubernetesPagePort = 8080;

// What the job is told beside its file and the command line: paths in the containers, what would
// follow from the machine of the coordinator, and security.mode TOKEN where it is NONE, since pods
// have addresses that others reach. Pure.
std::vector<std::string> KubernetesOverrides(const JobConfig& config);

// Errors: INVALID_ARGUMENT, one line with the remedy: a name that is none in Kubernetes, a job file
// that is not UTF-8 or too large for a ConfigMap. Pure.
absl::StatusOr<std::vector<YamlDocument>> RenderKubernetes(const KubernetesJob& job,
                                                           const KubernetesOptions& options);

}  // namespace tug

#endif  // TUG_CLI_KUBERNETES_H_
