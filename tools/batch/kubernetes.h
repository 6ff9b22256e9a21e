// A batch on Kubernetes: an Indexed Job whose pods are `heddle batch task`, and a Job that waits for all of them and merges.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/result.h"
#include "tools/batch/task.h"

namespace heddle::batch {

struct KubernetesOptions {
  std::string name = "heddle-sweep";  // of the Jobs
  std::string image;                  // holds heddle on its PATH
  std::string claim;                  // PersistentVolumeClaim that holds the batch's folder and the traces
  std::string mount;                  // where it is mounted: a folder that their paths begin with
  uint32_t at_a_time = 0;             // pods together; 0: all
  uint32_t publish_every = 20;
  uint32_t threads = 1;  // CPUs of a pod
};

// The manifest, two documents. Errors: names that Kubernetes would refuse, a batch that lies outside of the mount, more tasks than
// an Indexed Job may have.
Result<std::string> KubernetesManifest(const Batch& batch, const KubernetesOptions& options);

}  // namespace heddle::batch
