// `heddle db`: look into results databases, merge them, print them canonically.
#include <fmt/format.h>

#include "sim/results/results.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/launch_table.h"
#include "tools/heddle/table.h"

namespace heddle::tools {
namespace {

Error Usage(std::string_view command, std::string_view wanted) {
  return {ExitCode::kUsage, fmt::format("heddle db {}", command), fmt::format("takes {}", wanted), ""};
}

po::options_description NoOptions() { return po::options_description("options"); }

po::options_description JsonOption() {
  po::options_description options("options");
  options.add_options()("json", "print one JSON document");
  return options;
}

Status Show(const po::variables_map& values, Arguments files) {
  if (files.size() != 1) return Usage("show", "one database");
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database, results::OpenForReading(files[0]));
  return values.count("json") != 0 ? PrintLaunchJson(&database, "") : PrintLaunchTable(&database, "");
}

Status Sql(const po::variables_map& values, Arguments arguments) {
  if (arguments.size() != 2) return Usage("sql", "one database and one query");
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database, results::OpenForReading(arguments[0]));
  Result<sqlite::Statement> statement = database.Prepare(arguments[1]);
  if (!statement.ok()) {
    Error error = statement.error();
    error.code = ExitCode::kUsage;
    error.next_step = "`heddle db schema` lists tables and views";
    return error;
  }
  if (values.count("json") != 0) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string json, QueryJson(&*statement));
    fmt::print("{}\n", json);
    return Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Table table, QueryTable(&*statement));
  Print(table);
  return Ok();
}

Status MergeFiles(const po::variables_map&, Arguments files) {
  if (files.size() < 2) return Usage("merge", "a target and at least one source");
  return results::Merge(files[0], {files.begin() + 1, files.end()});
}

Status Dump(const po::variables_map& values, Arguments files) {
  if (files.size() != 1) return Usage("dump", "one database");
  if (values.count("canonical") == 0) return Usage("dump", "--canonical, the only form there is");
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database, results::OpenForReading(files[0]));
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, results::CanonicalDump(&database));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Ok();
}

Status Schema(const po::variables_map&, Arguments arguments) {
  if (!arguments.empty()) return Usage("schema", "no arguments");
  fmt::print("{}", results::SchemaMarkdown());
  return Ok();
}

template <auto kFunction>
ExitCode Run(const po::variables_map& values, Arguments arguments) {
  const Status status = kFunction(values, arguments);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

po::options_description DumpOptions() {
  po::options_description options("options");
  options.add_options()("canonical", "everything but ids, commands and times: same input, same bytes");
  return options;
}

}  // namespace

Command DbCommand() {
  return {.name = "db",
          .summary = "Show, query, merge and dump results databases",
          .subcommands = {
              {"show", "Print the launches of a database", JsonOption, "FILE", Run<Show>},
              {"sql", "Run a query (read only)", JsonOption, "FILE QUERY", Run<Sql>},
              {"merge", "Add the launches of databases to TARGET, each once", NoOptions, "TARGET SOURCE...",
               Run<MergeFiles>},
              {"dump", "Print a database in a form that can be compared", DumpOptions, "FILE", Run<Dump>},
              {"schema", "Print the schema as Markdown (docs/db_schema.md)", NoOptions, "", Run<Schema>},
          }};
}

}  // namespace heddle::tools
