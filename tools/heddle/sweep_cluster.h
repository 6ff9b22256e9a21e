// `heddle sweep --backend slurm|kubernetes`: the jobs of a sweep written into a folder for the tasks of a cluster.
#pragma once

#include <string>

#include "tools/batch/plan.h"
#include "tools/heddle/command.h"

namespace heddle::tools {

po::options_description ClusterOptions();

// Writes "<database>.batch" with the jobs that the database lacks (what an earlier batch in it published is merged first), and
// submits it or writes the manifest.
Status SweepOnCluster(const po::variables_map& values, const batch::SweepRequest& request,
                      const batch::Plan& plan, const std::string& program, const std::string& database);

}  // namespace heddle::tools
