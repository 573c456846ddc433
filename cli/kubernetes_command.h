#ifndef TUG_CLI_KUBERNETES_COMMAND_H_
#define TUG_CLI_KUBERNETES_COMMAND_H_

#include "absl/status/status.h"
#include "cli/job_arguments.h"
#include "cli/kubernetes.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// Of `tug launch`.
struct KubernetesArguments {
  bool wanted = false;
  KubernetesOptions options;

  // --kubernetes --image --name --namespace --run-claim --text-claim --keys-secret --cpus --gpus;
  // not together with what other hosts, or ssh to them, need.
  void AddTo(CLI::App& launch);
};

// Writes the job's objects to stdout. Errors: those of LoadJobConfig and RenderKubernetes.
absl::Status PrintKubernetes(const JobArguments& job, const KubernetesArguments& arguments);

}  // namespace tug

#endif  // TUG_CLI_KUBERNETES_COMMAND_H_
