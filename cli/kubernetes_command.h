// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_KUBERNETES_COMMAND_H_
#define TUG_CLI_KUBERNETES_COMMAND_H_

#include "absl/status/status.h"
#include "launch/hosts/kubernetes.h"
#include "process/job_arguments.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// Kubernetes options of `tug launch`.
struct KubernetesArguments {
  bool wanted = false;
  KubernetesOptions options;

  // --kubernetes --image --name --namespace --run-claim --text-claim --keys-secret --cpus --gpus;
  // they exclude options for other hosts and for ssh.
  void AddTo(CLI::App& launch);
};

// Prints the job's objects to stdout. Errors: those of LoadJobConfig and RenderKubernetes.
absl::Status PrintKubernetes(const JobArguments& job, const KubernetesArguments& arguments);

}  // namespace tug

#endif  // TUG_CLI_KUBERNETES_COMMAND_H_
