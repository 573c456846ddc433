// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/kubernetes.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "config/placement_mode.h"
#include "data/text/utf8.h"
#include "launch/job_memory.h"
#include "nlohmann/json.hpp"
#include "proto/process_name.h"

namespace tug {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr size_t kMaxConfigMapBytes = 1000000;  // Kubernetes' limit is 1 MiB including keys
constexpr size_t kMaxJobNameBytes = 40;         // pod names are longer; their limit is 63
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr double kMemoryMargin = 1.25;  // over the formulas: allocator, libraries, page tables
constexpr uint64_t kSharedMemoryBytes = uint64_t{1} << 30;  // for NCCL, between GPUs of a worker
constexpr int kGraceSeconds = 300;  // for a checkpoint, or for handing over a server's segments
constexpr int kMaxRestarts = 100;
constexpr char kJobFolder[] = "/job";
constexpr char kJobFileName[] = "job.textproto";
constexpr char kRuns[] = "/runs";
constexpr char kText[] = "/text";
constexpr char kKeys[] = "/keys";
constexpr char kKeyFile[] = "job.keys";

// Last part of a path, which may end with a slash.
std::string LastPart(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return std::filesystem::path(path).filename().string();
}

// Lower-case letters, digits and hyphens; replaces other characters by hyphens.
std::string NameOf(const std::string& text) {
  std::string name;
  for (const char c : text) name += absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '-';
  name = name.substr(0, kMaxJobNameBytes);
  const auto hyphen = [](const std::string& s) { return s.find_first_not_of('-'); };
  if (hyphen(name) == std::string::npos) return "job";
  name.erase(0, hyphen(name));
  name.erase(name.find_last_not_of('-') + 1);
  return absl::ascii_isdigit(name[0]) ? absl::StrCat("job-", name) : name;
}

absl::Status CheckName(const std::string& what, const std::string& name, size_t most) {
  const bool good = !name.empty() && name.size() <= most && absl::ascii_islower(name[0]) &&
                    name.back() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
                      return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " '", name, "' is not a valid Kubernetes name: use at most ", most,
      " lower-case letters, digits and hyphens; start with a letter and do not end with a hyphen"));
}

// Escapes $, since Kubernetes substitutes variables for $(NAME).
std::string Argument(const std::string& text) { return absl::StrReplaceAll(text, {{"$", "$$"}}); }

// Printable single line, for a comment.
std::string OneLine(std::string text) {
  for (char& c : text) {
    if (!absl::ascii_isprint(c)) c = '?';
  }
  return text;
}

std::string Mebibytes(uint64_t bytes) { return absl::StrCat((bytes + kMiB - 1) / kMiB, "Mi"); }

// The objects of one job.
class Rendering {
 public:
  Rendering(const KubernetesJob& job, const KubernetesOptions& options)
      : job_(job),
        config_(job.config),
        options_(options),
        name_(options.name),
        memory_(GuessJobMemory(job.config)),
        pairs_(StartsServersBesideWorkers(job.config)),
        metrics_(job.config.watch().metrics() && !pairs_) {}

  std::vector<YamlDocument> Documents() const {
    std::vector<YamlDocument> documents = {
        {Introduction(), JobFile()}, {"", CoordinatorService()}, {"", Coordinator()}};
    if (!pairs_) {
      documents.push_back({"", ServerService()});
      documents.push_back({"", Servers("server", config_.cluster().servers())});
      if (config_.cluster().spare_servers() > 0) {
        documents.push_back({"", Servers("spare-server", config_.cluster().spare_servers())});
      }
    }
    documents.push_back({"", Workers()});
    return documents;
  }

 private:
  std::string Introduction() const {
    std::string text =
        absl::StrCat("Job ", name_, ", from ", OneLine(LastPart(job_.file_name)),
                     ", written by tug launch --kubernetes.\n", "Needs:  PersistentVolumeClaim ",
                     options_.run_claim, " (ReadWriteMany, for run folders)");
    if (NeedsText()) {
      absl::StrAppend(&text, ",\n        PersistentVolumeClaim ", options_.text_claim, " with ",
                      OneLine(LastPart(config_.data().path())), " in it");
    }
    absl::StrAppend(&text, ",\n        Secret ", options_.keys_secret,
                    " with the key file of the job:\n  tug keys ", kKeyFile,
                    config_.security().mode() == SecurityConfig::CURVE ? " --mode curve" : "",
                    "\n  kubectl create secret generic ", options_.keys_secret,
                    " --from-file=", kKeyFile);
    if (!memory_.has_value()) {
      absl::StrAppend(
          &text, "\nThe memory of this model cannot be estimated: its pods have no memory limit.");
    }
    return text;
  }

  OrderedJson Labels(const std::string& component) const {
    return {{"app.kubernetes.io/name", "tugboat"},
            {"app.kubernetes.io/instance", name_},
            {"app.kubernetes.io/component", component}};
  }
  std::string Named(const std::string& component) const {
    return absl::StrCat(name_, "-", component);
  }
  // Common head of every object.
  OrderedJson Object(const std::string& version, const std::string& kind, const std::string& name,
                     const std::string& component) const {
    OrderedJson metadata = {{"name", name}};
    if (!options_.name_space.empty()) metadata["namespace"] = options_.name_space;
    metadata["labels"] = Labels(component);
    return {{"apiVersion", version}, {"kind", kind}, {"metadata", std::move(metadata)}};
  }

  OrderedJson JobFile() const {
    OrderedJson object = Object("v1", "ConfigMap", Named("job"), "job");
    object["data"] = {{kJobFileName, job_.text}};
    return object;
  }
  OrderedJson CoordinatorService() const {
    OrderedJson object = Object("v1", "Service", Named("coordinator"), "coordinator");
    object["spec"] = {{"selector", Labels("coordinator")},
                      {"ports", OrderedJson::array({{{"name", "control"},
                                                     {"port", kKubernetesControlPort},
                                                     {"targetPort", "control"}}})}};
    return object;
  }
  // Lanes choose their ports and the coordinator distributes them, so the service names no port.
  OrderedJson ServerService() const {
    OrderedJson object = Object("v1", "Service", Named("server"), "server");
    object["spec"] = {
        {"clusterIP", "None"}, {"publishNotReadyAddresses", true}, {"selector", Labels("server")}};
    return object;
  }

  OrderedJson Coordinator() const {
    OrderedJson arguments = {"coordinator", absl::StrCat(kJobFolder, "/", kJobFileName)};
    std::vector<std::string> overrides = job_.overrides;
    for (std::string& override : KubernetesOverrides(config_)) overrides.push_back(override);
    for (const std::string& override : overrides) {
      arguments.push_back("--set");
      arguments.push_back(Argument(override));
    }
    for (const std::string& more :
         {std::string("--listen"), absl::StrCat("0.0.0.0:", kKubernetesControlPort),
          std::string("--run-dir"), Argument(RunFolder()), std::string("--recover-or-start")}) {
      arguments.push_back(more);
    }
    if (!job_.resume.empty()) {
      arguments.push_back("--resume");
      arguments.push_back(Argument(job_.resume));
    }
    OrderedJson container = Container("coordinator", std::move(arguments));
    container["ports"] =
        OrderedJson::array({{{"name", "control"}, {"containerPort", kKubernetesControlPort}}});
    container["resources"] = {{"requests", {{"cpu", 1}, {"memory", Mebibytes(kCoordinatorBytes)}}}};
    const OrderedJson port = {{"port", "control"}};
    // The coordinator reads the text, which may be large, before it listens.
    container["startupProbe"] = {
        {"tcpSocket", port}, {"periodSeconds", 5}, {"failureThreshold", 720}};
    container["readinessProbe"] = {{"tcpSocket", port}, {"periodSeconds", 5}};
    container["livenessProbe"] = {{"exec",
                                   {{"command",
                                     {"tug", "status", "--coordinator",
                                      absl::StrCat("127.0.0.1:", kKubernetesControlPort)}}}},
                                  {"periodSeconds", 30},
                                  {"timeoutSeconds", 20},
                                  {"failureThreshold", 4}};
    OrderedJson object = Object("batch/v1", "Job", Named("coordinator"), "coordinator");
    object["spec"] = {{"backoffLimit", kMaxRestarts},
                      {"template", Pod("coordinator", {std::move(container)}, "OnFailure")}};
    return object;
  }

  OrderedJson Servers(const std::string& component, uint32_t count) const {
    OrderedJson object = Object("apps/v1", "StatefulSet", Named(component), component);
    object["spec"] = {{"serviceName", Named("server")},
                      {"replicas", count},
                      {"podManagementPolicy", "Parallel"},
                      {"selector", {{"matchLabels", Labels(component)}}},
                      {"template", Pod(component, {Server(component != "server")}, "Always")}};
    return object;
  }
  // `name`: of the process; empty: any.
  OrderedJson Server(bool spare, const std::string& name = "") const {
    OrderedJson arguments = {"server", "--coordinator", CoordinatorAddress(), "--listen",
                             "$(POD_IP)"};
    if (spare) arguments.push_back("--spare");
    if (!name.empty()) AddName(name, arguments);
    OrderedJson container = Container("server", std::move(arguments));
    std::optional<uint64_t> bytes;
    if (memory_.has_value()) bytes = memory_->server_bytes + memory_->checkpoint_bytes;
    container["resources"] = Resources(config_.cluster().lanes_per_server(), bytes, 0);
    AddMemberProbes(container);
    return container;
  }

  // Kubernetes fills in the number of the pod in its job.
  static std::string IndexedName(const char* role) {
    return absl::StrCat(role, "-$(JOB_COMPLETION_INDEX)");
  }
  static void AddName(const std::string& name, OrderedJson& arguments) {
    arguments.push_back("--name");
    arguments.push_back(name);
  }

  OrderedJson Workers() const {
    const uint32_t count = config_.cluster().workers();
    OrderedJson object = Object("batch/v1", "Job", Named("worker"), "worker");
    std::vector<OrderedJson> containers;
    if (pairs_) containers.push_back(Server(false, IndexedName(kServerRole)));
    containers.push_back(Worker());
    object["spec"] = {{"completionMode", "Indexed"},
                      {"completions", count},
                      {"parallelism", count},
                      {"backoffLimit", kMaxRestarts},
                      {"template", Pod("worker", std::move(containers), "OnFailure")}};
    return object;
  }
  OrderedJson Worker() const {
    const bool gpu = config_.device() == ClusterConfig::CUDA;
    OrderedJson arguments = {"worker", "--coordinator", CoordinatorAddress()};
    AddName(IndexedName(kWorkerRole), arguments);
    if (gpu) {
      arguments.push_back("--gpu-share");
      arguments.push_back("0/1");  // all GPUs of the container
    }
    OrderedJson container = Container("worker", std::move(arguments));
    const uint32_t threads = config_.cluster().compute_threads();
    std::optional<uint64_t> bytes;
    if (memory_.has_value()) {
      bytes = memory_->worker_bytes + (gpu ? kSharedMemoryBytes : 0);
    }
    container["resources"] =
        Resources(threads == 0 ? options_.cpus : threads + 1, bytes, gpu ? options_.gpus : 0);
    AddMemberProbes(container);
    return container;
  }

  // Limits CPU time as well: a process derives its number of cores from the limit.
  static OrderedJson Resources(uint32_t cpus, std::optional<uint64_t> bytes, uint32_t gpus) {
    OrderedJson amounts = {{"cpu", cpus}};
    if (bytes.has_value()) {
      amounts["memory"] =
          Mebibytes(static_cast<uint64_t>(static_cast<double>(*bytes) * kMemoryMargin));
    }
    if (gpus > 0) amounts["nvidia.com/gpu"] = gpus;
    return {{"requests", amounts}, {"limits", amounts}};
  }

  // A member that the coordinator knows is ready. The coordinator detects a stuck member itself
  // (fault.failure_timeout_ms); Kubernetes detects one that has exited.
  void AddMemberProbes(OrderedJson& container) const {
    container["readinessProbe"] = {
        {"exec",
         {{"command",
           {"/bin/sh", "-c",
            absl::StrCat("tug status --coordinator ", CoordinatorAddress(),
                         " | grep -qF \" on $(hostname) (pid \"")}}}},
        {"periodSeconds", 30},
        {"timeoutSeconds", 20}};
    if (!metrics_) return;
    container["ports"] =
        OrderedJson::array({{{"name", "metrics"}, {"containerPort", kKubernetesMetricsPort}}});
    container["livenessProbe"] = {{"httpGet", {{"path", "/metrics"}, {"port", "metrics"}}},
                                  {"initialDelaySeconds", 300},
                                  {"periodSeconds", 30},
                                  {"timeoutSeconds", 20},
                                  {"failureThreshold", 4}};
  }

  OrderedJson Container(const std::string& name, OrderedJson arguments) const {
    OrderedJson container = {{"name", name},
                             {"image", options_.image},
                             {"command", {"tug"}},
                             {"args", std::move(arguments)},
                             {"workingDir", kRuns}};
    container["env"] = OrderedJson::array(
        {{{"name", "TUG_KEYS"}, {"value", absl::StrCat(kKeys, "/", kKeyFile)}},
         {{"name", "POD_IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}}});
    OrderedJson mounts =
        OrderedJson::array({{{"name", "runs"}, {"mountPath", kRuns}},
                            {{"name", "keys"}, {"mountPath", kKeys}, {"readOnly", true}},
                            {{"name", "shared-memory"}, {"mountPath", "/dev/shm"}}});
    if (NeedsText()) {
      mounts.push_back({{"name", "text"}, {"mountPath", kText}, {"readOnly", true}});
    }
    if (name == "coordinator") {
      mounts.push_back({{"name", "job"}, {"mountPath", kJobFolder}, {"readOnly", true}});
    }
    container["volumeMounts"] = std::move(mounts);
    container["securityContext"] = {{"allowPrivilegeEscalation", false}};
    return container;
  }

  OrderedJson Pod(const std::string& component, std::vector<OrderedJson> containers,
                  const std::string& restart) const {
    OrderedJson volumes = OrderedJson::array(
        {{{"name", "runs"}, {"persistentVolumeClaim", {{"claimName", options_.run_claim}}}},
         {{"name", "keys"},
          {"secret", {{"secretName", options_.keys_secret}, {"defaultMode", 0400}}}},
         {{"name", "shared-memory"},
          {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", Mebibytes(kSharedMemoryBytes)}}}}});
    if (NeedsText()) {
      volumes.push_back(
          {{"name", "text"},
           {"persistentVolumeClaim", {{"claimName", options_.text_claim}, {"readOnly", true}}}});
    }
    if (component == "coordinator") {
      volumes.push_back({{"name", "job"}, {"configMap", {{"name", Named("job")}}}});
    }
    OrderedJson metadata = {{"labels", Labels(component)}};
    if (metrics_) {
      metadata["annotations"] = {{"prometheus.io/scrape", "true"},
                                 {"prometheus.io/port", std::to_string(kKubernetesMetricsPort)}};
    }
    return {{"metadata", std::move(metadata)},
            {"spec",
             {{"restartPolicy", restart},
              {"terminationGracePeriodSeconds", kGraceSeconds},
              {"automountServiceAccountToken", false},
              {"enableServiceLinks", false},
              {"containers", std::move(containers)},
              {"volumes", std::move(volumes)}}}};
  }

  bool NeedsText() const { return !config_.data().path().empty(); }
  std::string RunFolder() const {
    const std::string last = LastPart(job_.run_dir);
    return absl::StrCat(kRuns, "/", last.empty() ? name_ : last);
  }
  std::string CoordinatorAddress() const {
    return absl::StrCat(Named("coordinator"), ":", kKubernetesControlPort);
  }

  const KubernetesJob& job_;
  const JobConfig& config_;
  const KubernetesOptions& options_;
  const std::string name_;
  const std::optional<JobMemory> memory_;
  const bool pairs_;    // pairs a server with each worker
  const bool metrics_;  // served on a fixed port, impossible for two processes in one pod
};

}  // namespace

std::vector<std::string> KubernetesOverrides(const JobConfig& config) {
  std::vector<std::string> all;
  const auto in_claim = [&](const char* field, const std::string& path) {
    if (!path.empty()) all.push_back(absl::StrCat(field, "=", kText, "/", LastPart(path)));
  };
  in_claim("data.path", config.data().path());
  in_claim("data.tokenizer_path", config.data().tokenizer_path());
  all.push_back(absl::StrCat("cluster.lanes_per_server=", config.cluster().lanes_per_server()));
  if (config.security().mode() == SecurityConfig::NONE) all.push_back("security.mode=TOKEN");
  if (config.watch().page() && config.watch().page_port() == 0) {
    all.push_back(absl::StrCat("watch.page_port=", kKubernetesPagePort));
  }
  if (config.watch().metrics() && !StartsServersBesideWorkers(config)) {
    all.push_back(absl::StrCat("watch.metrics_port=", kKubernetesMetricsPort));
  }
  return all;
}

absl::StatusOr<std::vector<YamlDocument>> RenderKubernetes(const KubernetesJob& job,
                                                           const KubernetesOptions& options) {
  KubernetesOptions filled = options;
  if (filled.name.empty()) filled.name = NameOf(job.config.name());
  RETURN_IF_ERROR(CheckName("--name", filled.name, kMaxJobNameBytes));
  constexpr size_t kByteLimit = 63;
  if (!filled.name_space.empty()) {
    RETURN_IF_ERROR(CheckName("--namespace", filled.name_space, kByteLimit));
  }
  const auto claim = [&](const char* option, std::string& name, const char* end) -> absl::Status {
    if (name.empty()) name = absl::StrCat(filled.name, end);
    return CheckName(option, name, kByteLimit);
  };
  RETURN_IF_ERROR(claim("--run-claim", filled.run_claim, "-runs"));
  RETURN_IF_ERROR(claim("--text-claim", filled.text_claim, "-text"));
  RETURN_IF_ERROR(claim("--keys-secret", filled.keys_secret, "-keys"));
  for (const std::string& text : job.overrides) {
    if (!IsUtf8(text)) return absl::InvalidArgumentError("a value of --set is not UTF-8");
  }
  if (!IsUtf8(job.text)) {
    return absl::InvalidArgumentError(absl::StrCat(
        job.file_name, " is not UTF-8, and cannot be sent to Kubernetes: re-encode it"));
  }
  if (job.text.size() > kMaxConfigMapBytes) {
    return absl::InvalidArgumentError(absl::StrCat(job.file_name, " has ", job.text.size(),
                                                   " bytes: a ConfigMap holds at most ",
                                                   kMaxConfigMapBytes));
  }
  return Rendering(job, filled).Documents();
}

}  // namespace tug
