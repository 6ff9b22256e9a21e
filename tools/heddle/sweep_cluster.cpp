#include "tools/heddle/sweep_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/base/suggest.h"
#include "tools/batch/kubernetes.h"
#include "tools/batch/slurm.h"
#include "tools/batch/summary.h"
#include "tools/batch/task.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kTasksWithoutLimit = 1000;

std::string Absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

// Machines that share the folder see the traces and descriptions by the same absolute paths.
batch::Plan WithAbsolutePaths(batch::Plan plan) {
  for (std::string& trace : plan.traces) trace = Absolute(trace);
  return plan;
}

// What an earlier batch in this folder has published goes into the database first.
Status TakeOver(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder + "/jobs.tsv", error)) return Ok();
  if (batch::StillQueued(folder))
    return Error{ExitCode::kUsage, folder, "was submitted and still waits or runs",
                 "`squeue`, and `heddle batch show` says how far it is"};
  HEDDLE_ASSIGN_OR_RETURN(const batch::Batch old, batch::ReadBatch(folder));
  HEDDLE_ASSIGN_OR_RETURN(const batch::BatchState state, batch::StateOf(old));
  HEDDLE_RETURN_IF_ERROR(batch::MergeBatch(old, state));
  fs::remove_all(folder, error);
  return Ok();
}

Result<batch::Batch> MakeBatch(const batch::SweepRequest& request, const batch::Plan& given,
                               const std::string& database, uint32_t most_tasks) {
  batch::Batch made;
  made.database = Absolute(database);
  made.folder = made.database + ".batch";
  HEDDLE_RETURN_IF_ERROR(TakeOver(made.folder));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<bool> done, batch::JobsDone(made.database, given));
  batch::SweepRequest run = request;
  std::error_code error;
  if (fs::exists(run.arch, error)) run.arch = Absolute(run.arch);
  const batch::Plan plan = WithAbsolutePaths(given);
  for (size_t i = 0; i < plan.jobs.size(); ++i) {
    if (!done[i]) made.jobs.push_back({plan.jobs[i].key, batch::RunArguments(run, plan, plan.jobs[i])});
  }
  made.tasks =
      std::max(1u, static_cast<uint32_t>(std::min<size_t>(made.jobs.size(), std::max(1u, most_tasks))));
  if (!made.jobs.empty()) HEDDLE_RETURN_IF_ERROR(batch::WriteBatch(made));
  return made;
}

Status OnSlurm(const po::variables_map& values, const batch::SweepRequest& request, const batch::Plan& plan,
               const std::string& program, const std::string& database) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string config, batch::ReadSlurmConfig());
  uint32_t most = batch::MaxArraySize(config);
  if (const uint32_t tasks = values["tasks"].as<uint32_t>(); tasks != 0) most = std::min(most, tasks);
  HEDDLE_ASSIGN_OR_RETURN(const batch::Batch made, MakeBatch(request, plan, database, most));
  if (made.jobs.empty()) {
    fmt::print(stderr, "all {} jobs are in {}\n", plan.jobs.size(), database);
    return Ok();
  }
  batch::SlurmOptions options;
  options.program = program;
  options.at_a_time = values["jobs"].as<uint32_t>();
  options.publish_every = values["publish-every"].as<uint32_t>();
  options.threads = std::max(1u, values["threads"].as<uint32_t>());
  options.scratch = values["scratch"].as<std::string>();
  if (values.count("slurm") != 0) options.extras = values["slurm"].as<std::vector<std::string>>();
  HEDDLE_ASSIGN_OR_RETURN(const std::string id, batch::SubmitSlurm(made, options));
  fmt::print("{}\n", id);
  fmt::print(stderr, "{} jobs in {} tasks: array {}; `heddle batch show {}` says how far it is\n",
             made.jobs.size(), made.tasks, id, made.folder);
  return Ok();
}

batch::KubernetesOptions KubernetesOptionsOf(const po::variables_map& values) {
  batch::KubernetesOptions options;
  options.name = values["k8s-name"].as<std::string>();
  options.image = values["image"].as<std::string>();
  options.claim = values["volume-claim"].as<std::string>();
  options.mount = values["volume-mount"].as<std::string>();
  options.at_a_time = values["jobs"].as<uint32_t>();
  options.publish_every = values["publish-every"].as<uint32_t>();
  options.threads = std::max(1u, values["threads"].as<uint32_t>());
  return options;
}

Status OnKubernetes(const po::variables_map& values, const batch::SweepRequest& request,
                    const batch::Plan& plan, const std::string& database) {
  uint32_t most = kTasksWithoutLimit;
  if (const uint32_t tasks = values["tasks"].as<uint32_t>(); tasks != 0) most = tasks;
  HEDDLE_ASSIGN_OR_RETURN(const batch::Batch made, MakeBatch(request, plan, database, most));
  if (made.jobs.empty()) {
    fmt::print(stderr, "all {} jobs are in {}\n", plan.jobs.size(), database);
    return Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string manifest,
                          batch::KubernetesManifest(made, KubernetesOptionsOf(values)));
  const std::string path = made.folder + "/job.yaml";
  std::ofstream out(path, std::ios::binary);
  out << manifest;
  out.close();
  if (!out) return Error{ExitCode::kUsage, path, "cannot be written", ""};
  fmt::print("{}\n", path);
  fmt::print(stderr, "{} jobs in {} tasks: kubectl apply -f {}\n", made.jobs.size(), made.tasks, path);
  return Ok();
}

}  // namespace

po::options_description ClusterOptions() {
  po::options_description options("options of --backend slurm and kubernetes");
  options.add_options()("backend", po::value<std::string>()->default_value("local"),
                        "local; slurm: submit an array job and its merge; kubernetes: write a manifest")(
      "tasks", po::value<uint32_t>()->default_value(0),
      "tasks that the jobs are dealt to; 0: one a job, as many as an array may hold (--jobs: tasks at a "
      "time)")("publish-every", po::value<uint32_t>()->default_value(20),
               "launches after which a task copies its database to the shared folder")(
      "scratch", po::value<std::string>()->default_value(""),
      "local folder of the nodes; default: $TMPDIR, or /tmp")(
      "slurm", po::value<std::vector<std::string>>(),
      "KEY=VALUE for sbatch, as in --slurm partition=gpu --slurm time=60; may be repeated")(
      "image", po::value<std::string>()->default_value(""), "container image with heddle on its PATH")(
      "volume-claim", po::value<std::string>()->default_value(""),
      "PersistentVolumeClaim that holds the database's folder and the traces")(
      "volume-mount", po::value<std::string>()->default_value(""), "where the claim is mounted")(
      "k8s-name", po::value<std::string>()->default_value("heddle-sweep"), "name of the Jobs");
  return options;
}

Status CheckBackend(const po::variables_map& values) {
  const std::vector<std::string> names = {"local", "slurm", "kubernetes"};
  const std::string name = values["backend"].as<std::string>();
  if (name == "slurm") {
    HEDDLE_RETURN_IF_ERROR(batch::ReadSlurmConfig());
  } else if (name == "kubernetes") {
    const std::string database = Absolute(values["db"].as<std::string>());
    HEDDLE_RETURN_IF_ERROR(
        batch::KubernetesManifest({database + ".batch", database, 1, {}}, KubernetesOptionsOf(values)));
  } else if (name != "local") {
    return Error{
        ExitCode::kUsage, "--backend",
        fmt::format("'{}' is not one of {}{}", name, fmt::join(names, ", "), DidYouMean(name, names)), ""};
  }
  return Ok();
}

Status SweepOnCluster(const po::variables_map& values, const batch::SweepRequest& request,
                      const batch::Plan& plan, const std::string& program, const std::string& database) {
  return values["backend"].as<std::string>() == "slurm" ? OnSlurm(values, request, plan, program, database)
                                                        : OnKubernetes(values, request, plan, database);
}

}  // namespace heddle::tools
