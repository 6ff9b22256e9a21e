// `heddle sweep --backend slurm|kubernetes`: the jobs of a sweep written into a folder for the tasks of a cluster.
#pragma once

#include <string>

#include "tools/batch/plan.h"
#include "tools/heddle/command.h"

namespace heddle::tools {

po::options_description ClusterOptions();
// That there is such a backend, that Slurm answers, that a cluster would take the manifest: what can be known before a plan.
Status CheckBackend(const po::variables_map& values);

// Writes "<database>.batch" with the jobs that the database lacks (what an earlier batch in it published is merged first), and
// submits it or writes the manifest. Not for the backend "local".
Status SweepOnCluster(const po::variables_map& values, const batch::SweepRequest& request,
                      const batch::Plan& plan, const std::string& program, const std::string& database);

}  // namespace heddle::tools
