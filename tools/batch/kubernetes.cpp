#include "tools/batch/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::batch {
namespace {

constexpr uint32_t kMostCompletions =
    100'000;  // with at most 10^5 pods, an index may fail on its own (KEP-3850)
constexpr int kInterruptedCode = static_cast<int>(ExitCode::kInterrupted);
constexpr int kFailedJobsCode = static_cast<int>(ExitCode::kDidNotFinish);

// A YAML scalar in double quotes.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

Error Bad(const std::string& option, const std::string& message, const std::string& next) {
  return {ExitCode::kUsage, option, message, next};
}

// An RFC 1123 label, with room for "-merge" and an index behind it.
bool IsName(const std::string& text) {
  constexpr size_t kMostLetters = 50;
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !text.empty() && text.size() <= kMostLetters &&
         text.find_first_not_of(kLetters) == std::string::npos && text.front() != '-' && text.back() != '-';
}

Status Check(const Batch& batch, const KubernetesOptions& options) {
  if (!IsName(options.name))
    return Bad("--k8s-name " + options.name, "is no name of a Job", "lower-case letters, digits and '-'");
  if (options.image.empty()) return Bad("--image", "is missing", "name an image with heddle on its PATH");
  if (!IsName(options.claim))
    return Bad("--volume-claim " + options.claim, "is no name of a PersistentVolumeClaim", "");
  const std::string mount = options.mount.ends_with('/') ? options.mount : options.mount + "/";
  if (!mount.starts_with('/') || !batch.folder.starts_with(mount))
    return Bad("--volume-mount " + options.mount, fmt::format("does not hold {}", batch.folder),
               "name the folder that the claim is mounted at, with the database and the traces below it");
  if (batch.tasks > kMostCompletions)
    return Bad("--tasks",
               fmt::format("{} are more than the {} of an Indexed Job", batch.tasks, kMostCompletions),
               "deal the jobs to fewer tasks");
  return Ok();
}

// The pod's inside that both Jobs share.
std::string Pod(const KubernetesOptions& options, const std::string& arguments) {
  return fmt::format(
      "      restartPolicy: Never\n"
      "      terminationGracePeriodSeconds: 600\n"
      "      containers:\n"
      "        - name: heddle\n"
      "          image: {}\n"
      "          command: [\"heddle\"]\n"
      "          args: [{}]\n"
      "          resources:\n"
      "            requests:\n"
      "              cpu: \"{}\"\n"
      "          volumeMounts:\n"
      "            - name: shared\n"
      "              mountPath: {}\n"
      "            - name: scratch\n"
      "              mountPath: /scratch\n"
      "      volumes:\n"
      "        - name: shared\n"
      "          persistentVolumeClaim:\n"
      "            claimName: {}\n"
      "        - name: scratch\n"
      "          emptyDir: {{}}\n",
      Quoted(options.image), arguments, options.threads, Quoted(options.mount), options.claim);
}

}  // namespace

Result<std::string> KubernetesManifest(const Batch& batch, const KubernetesOptions& options) {
  HEDDLE_RETURN_IF_ERROR(Check(batch, options));
  const uint32_t together = options.at_a_time == 0 ? batch.tasks : std::min(options.at_a_time, batch.tasks);
  const std::string task = fmt::format(
      "\"batch\", \"task\", {}, \"--task\", \"$(JOB_COMPLETION_INDEX)\", \"--scratch\", \"/scratch\", "
      "\"--publish-every\", \"{}\", \"--threads\", \"{}\"",
      Quoted(batch.folder), options.publish_every, options.threads);
  // A pod that was told to stop has published and says 75: it is run again and counts as no failure. Jobs that failed are
  // listed by the merge: their task is through, running it again would not help.
  std::string text = fmt::format(
      "apiVersion: batch/v1\n"
      "kind: Job\n"
      "metadata:\n"
      "  name: {0}\n"
      "spec:\n"
      "  completionMode: Indexed\n"
      "  completions: {1}\n"
      "  parallelism: {2}\n"
      "  backoffLimitPerIndex: 3\n"
      "  maxFailedIndexes: {1}\n"
      "  podFailurePolicy:\n"
      "    rules:\n"
      "      - action: Ignore\n"
      "        onExitCodes:\n"
      "          containerName: heddle\n"
      "          operator: In\n"
      "          values: [{3}]\n"
      "      - action: Ignore\n"
      "        onPodConditions:\n"
      "          - type: DisruptionTarget\n"
      "            status: \"True\"\n"
      "      - action: FailIndex\n"
      "        onExitCodes:\n"
      "          containerName: heddle\n"
      "          operator: In\n"
      "          values: [{4}]\n"
      "  template:\n"
      "    spec:\n",
      options.name, batch.tasks, together, kInterruptedCode, kFailedJobsCode);
  text += Pod(options, task);
  text += fmt::format(
      "---\n"
      "apiVersion: batch/v1\n"
      "kind: Job\n"
      "metadata:\n"
      "  name: {}-merge\n"
      "spec:\n"
      "  backoffLimit: 3\n"
      "  template:\n"
      "    spec:\n",
      options.name);
  return text + Pod(options, fmt::format("\"batch\", \"merge\", {}, \"--wait\"", Quoted(batch.folder)));
}

}  // namespace heddle::batch
