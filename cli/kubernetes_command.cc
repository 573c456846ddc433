// SPDX-License-Identifier: Apache-2.0
#include "cli/kubernetes_command.h"

#include <cstdio>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "launch/job_source.h"

namespace tug {

void KubernetesArguments::AddTo(CLI::App& launch) {
  CLI::Option* flag = launch.add_flag(
      "--kubernetes", wanted,
      "Start nothing: write the Kubernetes objects of the job to stdout, for kubectl apply -f");
  for (const char* other : {"--hosts", "--slurm", "--detach", "--keys", "--interface", "--ssh",
                            "--program", "--bundle"}) {
    flag->excludes(launch.get_option(other));
  }
  const auto add = [&](const char* name, auto& value, const char* type, const char* description) {
    launch.add_option(name, value, description)
        ->type_name(type)
        ->needs(flag)
        ->group("With --kubernetes");
  };
  add("--image", options.image, "NAME", "Container image that has tug [tugboat]");
  add("--name", options.name, "NAME", "Name of the objects [derived from the job's name]");
  add("--namespace", options.name_space, "NAME", "Namespace of the objects [kubectl's]");
  add("--run-claim", options.run_claim, "NAME",
      "PersistentVolumeClaim for run folders, mounted at /runs [NAME-runs]");
  add("--text-claim", options.text_claim, "NAME",
      "PersistentVolumeClaim that holds the job's text and tokenizer under their file names, "
      "mounted at /text [NAME-text]");
  add("--keys-secret", options.keys_secret, "NAME", "Secret with the job's key file [NAME-keys]");
  add("--cpus", options.cpus, "UINT", "CPUs per worker if cluster.compute_threads is not set [4]");
  add("--gpus", options.gpus, "UINT", "GPUs per worker, with device: CUDA [1]");
}

absl::Status PrintKubernetes(const JobArguments& job, const KubernetesArguments& arguments) {
  KubernetesJob rendered;
  rendered.file_name = job.job_file.empty() ? "job.textproto" : job.job_file;
  rendered.overrides = job.Overrides();
  rendered.run_dir = job.run_dir;
  rendered.resume = job.resume;
  ASSIGN_OR_RETURN(const JobSource source, ReadJob(job));
  rendered.text = source.text;
  ASSIGN_OR_RETURN(rendered.config,
                   ParseJobToStart(rendered.text, source.name, rendered.overrides));
  ASSIGN_OR_RETURN(const std::vector<YamlDocument> documents,
                   RenderKubernetes(rendered, arguments.options));
  const std::string text = YamlText(documents);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

}  // namespace tug
