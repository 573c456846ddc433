// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/kubernetes.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "config/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "yaml-cpp/yaml.h"

namespace tug {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr char kText[] =
    "# of a test: \"quotes\", $(VARIABLES), tabs\t and caf\u00e9\n"
    "name: 'Odd_Name-1'\n"
    "data { path: 'folder/a text.txt' }\n"
    "model { layers: 2 width: 64 heads: 2 context: 32 }\n"
    "cluster { servers: 3 workers: 4 compute_threads: 2 lanes_per_server: 2 }\n";

KubernetesJob JobOf(const std::string& text, const std::vector<std::string>& overrides = {}) {
  KubernetesJob job{.file_name = "jobs/odd.textproto", .text = text, .overrides = overrides};
  const absl::StatusOr<JobConfig> config = ParseJobConfig(text, "test", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  if (config.ok()) job.config = *config;
  return job;
}

// The documents as parsed by a YAML parser, by "Kind/name".
std::map<std::string, YAML::Node> Objects(const KubernetesJob& job,
                                          const KubernetesOptions& options = {}) {
  const auto documents = RenderKubernetes(job, options);
  EXPECT_TRUE(documents.ok()) << documents.status();
  std::map<std::string, YAML::Node> objects;
  if (!documents.ok()) return objects;
  for (const YAML::Node& node : YAML::LoadAll(YamlText(*documents))) {
    const std::string key = absl::StrCat(node["kind"].as<std::string>(), "/",
                                         node["metadata"]["name"].as<std::string>());
    EXPECT_FALSE(objects.contains(key)) << key;
    objects[key] = node;
  }
  return objects;
}

using Texts = std::vector<std::string>;

bool HasPods(const YAML::Node& object) { return object["spec"] && object["spec"]["template"]; }
YAML::Node PodOf(const YAML::Node& object) { return object["spec"]["template"]["spec"]; }
Texts ArgumentsOf(const YAML::Node& container) { return container["args"].as<Texts>(); }

using Labels = std::map<std::string, std::string>;
bool Selects(const YAML::Node& selector, const YAML::Node& labels) {
  const auto wanted = selector.as<Labels>();
  const auto there = labels.as<Labels>();
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = there.find(label.first);
    return found != there.end() && found->second == label.second;
  });
}

TEST(Kubernetes, HasAnObjectForEachPart) {
  const auto objects = Objects(JobOf(kText));
  std::set<std::string> names;
  for (const auto& [name, object] : objects) names.insert(name);
  EXPECT_EQ(names,
            (std::set<std::string>{"ConfigMap/odd-name-1-job", "Service/odd-name-1-coordinator",
                                   "Service/odd-name-1-server", "Job/odd-name-1-coordinator",
                                   "StatefulSet/odd-name-1-server", "Job/odd-name-1-worker"}));
  EXPECT_EQ(objects.at("StatefulSet/odd-name-1-server")["spec"]["replicas"].as<int>(), 3);
  const YAML::Node workers = objects.at("Job/odd-name-1-worker")["spec"];
  EXPECT_EQ(workers["completionMode"].as<std::string>(), "Indexed");
  EXPECT_EQ(workers["completions"].as<int>(), 4);
  EXPECT_EQ(workers["parallelism"].as<int>(), 4);
}

TEST(Kubernetes, KeepsTheJobFileByteForByte) {
  for (const std::string& text : {std::string(kText), std::string("name: 'a'\n") + kText,
                                  std::string(kText) + "\n\n", " " + std::string(kText)}) {
    const auto job = JobOf(text.find("name: 'a'") == 0 ? std::string(kText) : text);
    KubernetesJob changed = job;
    changed.text = text;
    const YAML::Node map = Objects(changed).at("ConfigMap/odd-name-1-job");
    EXPECT_EQ(map["data"]["job.textproto"].as<std::string>(), text);
  }
}

TEST(Kubernetes, SelectsThePodsThatItMeans) {
  const auto objects = Objects(JobOf(kText, {"cluster.spare_servers=1"}));
  const std::map<std::string, std::string> pods_of_service = {
      {"Service/odd-name-1-coordinator", "Job/odd-name-1-coordinator"},
      {"Service/odd-name-1-server", "StatefulSet/odd-name-1-server"}};
  for (const auto& [service, wanted] : pods_of_service) {
    for (const auto& [name, object] : objects) {
      if (!HasPods(object)) continue;
      const YAML::Node labels = object["spec"]["template"]["metadata"]["labels"];
      EXPECT_EQ(Selects(objects.at(service)["spec"]["selector"], labels), name == wanted)
          << service << " " << name;
    }
  }
  for (const char* set : {"StatefulSet/odd-name-1-server", "StatefulSet/odd-name-1-spare-server"}) {
    const YAML::Node spec = objects.at(set)["spec"];
    EXPECT_TRUE(Selects(spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"]));
    EXPECT_EQ(spec["serviceName"].as<std::string>(), "odd-name-1-server");
  }
}

TEST(Kubernetes, MountsWhatThereIs) {
  for (const Texts& overrides : {Texts{}, Texts{"placement.kind=ZERO3", "cluster.servers=4"}}) {
    for (const auto& [name, object] : Objects(JobOf(kText, overrides))) {
      if (!HasPods(object)) continue;
      const YAML::Node pod = PodOf(object);
      std::set<std::string> volumes, mounted;
      for (const YAML::Node& volume : pod["volumes"]) {
        EXPECT_TRUE(volumes.insert(volume["name"].as<std::string>()).second) << name;
        EXPECT_EQ(volume.size(), 2u) << name;
      }
      for (const YAML::Node& container : pod["containers"]) {
        for (const YAML::Node& mount : container["volumeMounts"]) {
          mounted.insert(mount["name"].as<std::string>());
        }
        // A probe refers to a port that its container declares.
        std::set<std::string> ports;
        for (const YAML::Node& port : container["ports"])
          ports.insert(port["name"].as<std::string>());
        for (const char* probe : {"startupProbe", "readinessProbe", "livenessProbe"}) {
          for (const char* kind : {"tcpSocket", "httpGet"}) {
            if (!container[probe] || !container[probe][kind]) continue;
            EXPECT_THAT(ports, Contains(container[probe][kind]["port"].as<std::string>()));
          }
        }
      }
      EXPECT_EQ(volumes, mounted) << name;
      EXPECT_THAT(volumes, IsSupersetOf({"runs", "text", "keys", "shared-memory"}));
      EXPECT_EQ(pod["terminationGracePeriodSeconds"].as<int>(), 300);
    }
  }
}

TEST(Kubernetes, TellsTheCoordinatorWhereThingsAre) {
  KubernetesJob job = JobOf(kText, {"train.steps=7"});
  job.run_dir = "/somewhere/run $(1)";
  const auto objects = Objects(job);
  const Texts arguments =
      ArgumentsOf(PodOf(objects.at("Job/odd-name-1-coordinator"))["containers"][0]);
  EXPECT_THAT(arguments,
              IsSupersetOf({"train.steps=7", "data.path=/text/a text.txt", "security.mode=TOKEN",
                            "cluster.lanes_per_server=2", "0.0.0.0:7070", "/runs/run $$(1)",
                            "--recover-or-start", "/job/job.textproto"}));
  const Texts worker = ArgumentsOf(PodOf(objects.at("Job/odd-name-1-worker"))["containers"][0]);
  EXPECT_EQ(worker, (Texts{"worker", "--coordinator", "odd-name-1-coordinator:7070", "--name",
                           "worker-$(JOB_COMPLETION_INDEX)"}));
  const Texts server =
      ArgumentsOf(PodOf(objects.at("StatefulSet/odd-name-1-server"))["containers"][0]);
  EXPECT_EQ(server, (Texts{"server", "--coordinator", "odd-name-1-coordinator:7070", "--listen",
                           "$(POD_IP)"}));
  // The coordinator accepts the resulting configuration.
  Texts all = job.overrides;
  for (const std::string& more : KubernetesOverrides(job.config)) all.push_back(more);
  EXPECT_TRUE(ParseJobConfig(kText, "test", all).ok());
}

TEST(Kubernetes, KeepsAModeThatTheJobNames) {
  EXPECT_THAT(KubernetesOverrides(JobOf(kText, {"security.mode=CURVE"}).config),
              Not(Contains(HasSubstr("security.mode"))));
}

TEST(Kubernetes, LimitsWhatTheFormulasSay) {
  const auto limits_of = [](const std::vector<std::string>& overrides) {
    const YAML::Node pod = PodOf(Objects(JobOf(kText, overrides)).at("Job/odd-name-1-worker"));
    return pod["containers"][0]["resources"]["limits"];
  };
  EXPECT_EQ(limits_of({})["cpu"].as<int>(), 3) << "two compute threads and the exchange thread";
  EXPECT_FALSE(limits_of({})["nvidia.com/gpu"]);
  EXPECT_EQ(limits_of({"cluster.compute_threads=0"})["cpu"].as<int>(), 4);
  const std::string small = limits_of({})["memory"].as<std::string>();
  const std::string large = limits_of({"model.width=512"})["memory"].as<std::string>();
  EXPECT_LT(std::stoi(small) + 10, std::stoi(large)) << small << " " << large;
  EXPECT_EQ(limits_of({"device=CUDA"})["nvidia.com/gpu"].as<int>(), 1);
}

TEST(Kubernetes, PutsAServerBesideEachWorkerWhereThePlacementDoes) {
  const auto objects = Objects(JobOf(kText, {"placement.kind=ZERO1", "cluster.servers=4"}));
  EXPECT_FALSE(objects.contains("StatefulSet/odd-name-1-server"));
  const YAML::Node containers = PodOf(objects.at("Job/odd-name-1-worker"))["containers"];
  ASSERT_EQ(containers.size(), 2u);
  EXPECT_EQ(containers[0]["args"][0].as<std::string>(), "server");
  EXPECT_EQ(containers[1]["args"][0].as<std::string>(), "worker");
  EXPECT_THAT(ArgumentsOf(containers[0]), Contains("server-$(JOB_COMPLETION_INDEX)"));
}

TEST(Kubernetes, AsksForMetricsWhereTheJobHasThem) {
  const auto objects = Objects(JobOf(kText, {"watch.metrics=true"}));
  const YAML::Node pod = objects.at("StatefulSet/odd-name-1-server")["spec"]["template"];
  EXPECT_EQ(pod["metadata"]["annotations"]["prometheus.io/port"].as<std::string>(), "9464");
  EXPECT_EQ(pod["spec"]["containers"][0]["livenessProbe"]["httpGet"]["path"].as<std::string>(),
            "/metrics");
}

TEST(Kubernetes, RefusesWhatKubernetesWould) {
  const KubernetesJob job = JobOf(kText);
  const auto message = [](const KubernetesJob& job, const KubernetesOptions& options) {
    return std::string(RenderKubernetes(job, options).status().message());
  };
  EXPECT_THAT(message(job, {.name = "Job"}),
              HasSubstr("--name 'Job' is not a valid Kubernetes name"));
  EXPECT_THAT(message(job, {.name_space = "a_b"}), HasSubstr("--namespace 'a_b'"));
  EXPECT_THAT(message(job, {.run_claim = "-x"}), HasSubstr("--run-claim '-x'"));
  KubernetesJob odd = job;
  odd.text += "# \xff\n";
  EXPECT_THAT(message(odd, {}), HasSubstr("is not UTF-8"));
  odd.text = std::string(1000001, '#');
  EXPECT_THAT(message(odd, {}), HasSubstr("a ConfigMap holds"));
}

TEST(Kubernetes, NamesObjectsAfterAnyJob) {
  for (const char* name : {"Odd Name_1", "1st", "---", "UPPER", "caf\u00e9",
                           "a-very-long-name-that-goes-on-and-on-and-does-not-seem-to-end"}) {
    KubernetesJob job = JobOf(kText);
    job.config.set_name(name);
    EXPECT_TRUE(RenderKubernetes(job, {}).ok()) << name;
  }
}

}  // namespace
}  // namespace tug
