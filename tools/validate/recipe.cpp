#include "tools/validate/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/base/suggest.h"
#include "sim/config/load.h"

namespace heddle::validate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::array<std::pair<std::string_view, KernelKind>, 4> kKernelKinds = {
    {{"exact", KernelKind::kExact},
     {"recreated", KernelKind::kRecreated},
     {"best_of", KernelKind::kBestOf},
     {"other", KernelKind::kOther}}};
constexpr std::array<std::pair<std::string_view, gpu::CachePolicy>, 3> kCaches = {
    {{"cold", gpu::CachePolicy::kCold}, {"warm", gpu::CachePolicy::kWarm}, {"flush", gpu::CachePolicy::kFlush}}};
constexpr std::array<std::pair<std::string_view, MetricKind>, 4> kMetricKinds = {
    {{"microseconds", MetricKind::kMicroseconds},
     {"cycles", MetricKind::kCycles},
     {"bandwidth_gb_s", MetricKind::kBandwidth},
     {"counters", MetricKind::kCounters}}};

Error Wrong(const std::string& place, std::string message) {
  return {ExitCode::kConfiguration, place, std::move(message),
          "tools/validate/recipe.h says what a recipe holds"};
}

// Reads members of a JSON object. The first fault is kept, and members that nobody asked for are one.
class Members {
 public:
  Members(const json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.is_object()) Fail("is not an object");
  }

  void Read(const char* name, std::string* value) {
    if (const json* member = Find(name)) {
      if (member->is_string())
        *value = member->get<std::string>();
      else
        Fail(fmt::format("'{}' is not a string", name));
    }
  }
  void Read(const char* name, uint32_t* value) {
    if (const json* member = Find(name)) {
      if (member->is_number_unsigned() && member->get<uint64_t>() <= 1'000'000)
        *value = member->get<uint32_t>();
      else
        Fail(fmt::format("'{}' is not a number from 0 to 1000000", name));
    }
  }
  void Read(const char* name, std::vector<uint32_t>* values) {
    for (const json& element : Array(name)) {
      if (element.is_number_unsigned() && element.get<uint64_t>() <= 1'000'000)
        values->push_back(element.get<uint32_t>());
      else
        Fail(fmt::format("'{}' holds something else than numbers from 0 to 1000000", name));
    }
  }
  void Read(const char* name, std::vector<std::string>* values) {
    for (const json& element : Array(name)) {
      if (element.is_string())
        values->push_back(element.get<std::string>());
      else
        Fail(fmt::format("'{}' holds something else than strings", name));
    }
  }
  void ReadExpressions(const char* name, std::vector<std::string>* values) {
    for (const json& element : Array(name)) {
      if (element.is_string())
        values->push_back(element.get<std::string>());
      else if (element.is_number_unsigned())
        values->push_back(std::to_string(element.get<uint64_t>()));
      else
        Fail(fmt::format("'{}' holds something else than numbers and expressions", name));
    }
  }
  void Read(const char* name, std::map<std::string, std::string>* values) {
    const json object = Object(name);
    for (const auto& [key, value] : object.items()) {
      if (value.is_string())
        (*values)[key] = value.get<std::string>();
      else
        Fail(fmt::format("'{}.{}' is not a string", name, key));
    }
  }
  void Read(const char* name, Pattern* pattern) {
    std::string text;
    Read(name, &text);
    if (text.empty()) return;
    try {
      *pattern = {text, std::regex(text)};
    } catch (const std::regex_error& error) {
      Fail(fmt::format("'{}' of '{}' is no regular expression: {}", text, name, error.what()));
    }
  }
  template <typename Enum, size_t N>
  void Read(const char* name, const std::array<std::pair<std::string_view, Enum>, N>& choices, Enum* value) {
    std::string word;
    Read(name, &word);
    if (word.empty()) return;
    std::vector<std::string> known;
    for (const auto& [choice, meaning] : choices) {
      if (choice == word) {
        *value = meaning;
        return;
      }
      known.emplace_back(choice);
    }
    Fail(fmt::format("'{}' is '{}', which is not one of {}", name, word, fmt::join(known, ", ")));
  }

  // For members that are read by the caller.
  json Object(const char* name) {
    const json* member = Find(name);
    if (member == nullptr) return json::object();
    if (!member->is_object()) Fail(fmt::format("'{}' is not an object", name));
    return member->is_object() ? *member : json::object();
  }
  json Array(const char* name) {
    const json* member = Find(name);
    if (member == nullptr) return json::array();
    if (!member->is_array()) Fail(fmt::format("'{}' is not a list", name));
    return member->is_array() ? *member : json::array();
  }

  void Need(bool holds, std::string message) {
    if (!holds) Fail(std::move(message));
  }

  Status Done() {
    if (object_.is_object()) {
      const std::vector<std::string> known(asked_.begin(), asked_.end());
      for (const auto& [name, value] : object_.items()) {
        if (!asked_.contains(name))
          return Wrong(place_, fmt::format("has no member '{}'{}", name, DidYouMean(name, known)));
      }
    }
    if (!fault_.empty()) return Wrong(place_, fault_);
    return Ok();
  }

 private:
  const json* Find(const char* name) {
    asked_.insert(name);
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  void Fail(std::string message) {
    if (fault_.empty()) fault_ = std::move(message);
  }

  const json& object_;
  std::string place_;
  std::string fault_;
  std::set<std::string> asked_;
};

Status ReadMatch(const json& object, const std::string& place, Match* match) {
  Members members(object, place);
  for (const char* field : {"category", "gpu", "op", "dtype", "kernel", "source"}) {
    Pattern pattern;
    members.Read(field, &pattern);
    if (!pattern.text.empty()) match->fields[field] = std::move(pattern);
  }
  const json texts = members.Object("texts");
  Members text_members(texts, place + ": texts");
  for (const auto& [name, value] : texts.items()) text_members.Read(name.c_str(), &match->texts[name]);
  HEDDLE_RETURN_IF_ERROR(text_members.Done());
  members.Read("sm", &match->sm);
  members.Read("where", &match->where);
  members.Need(match->fields.contains("category"), "has no 'category'");
  return members.Done();
}

Status ReadTraceChoice(const json& object, const std::string& place, TraceChoice* choice) {
  Members members(object, place);
  members.Read("sm", &choice->sm);
  members.Read("file", &choice->file);
  members.Read("build", &choice->build);
  members.Read("where", &choice->where);
  members.ReadExpressions("launches", &choice->launches);
  members.Read("defines", &choice->defines);
  members.Need(!choice->file.empty(), "has no 'file'");
  return members.Done();
}

Status ReadMetric(const json& object, const std::string& place, Metric* metric) {
  Members members(object, place);
  members.Read("name", &metric->name);
  members.Read("kind", kMetricKinds, &metric->kind);
  members.Read("measured", &metric->measured);
  members.Read("where", &metric->where);
  members.Read("per", &metric->per);
  members.Read("bytes", &metric->bytes);
  members.Read("counters", &metric->counters);
  members.Read("minus", &metric->minus);
  members.Need(!metric->name.empty(), "has no 'name'");
  members.Need((metric->kind == MetricKind::kBandwidth) == !metric->bytes.empty(),
               "'bytes' belongs to bandwidth_gb_s, and to it alone");
  members.Need((metric->kind == MetricKind::kCounters) == !metric->counters.empty(),
               "'counters' belongs to counters, and to it alone");
  const bool has_slope = metric->kind == MetricKind::kCycles || metric->kind == MetricKind::kBandwidth;
  members.Need(metric->kind == MetricKind::kCycles || metric->per.empty(), "'per' belongs to cycles");
  members.Need(has_slope || metric->minus.empty(), "'minus' belongs to cycles and bandwidth_gb_s");
  return members.Done();
}

Status ReadWork(const json& object, const std::string& place, Work* work) {
  Members members(object, place);
  members.Read("counter", &work->counter);
  members.Read("least", &work->least);
  members.Read("most", &work->most);
  members.Need(!work->counter.empty() && !work->least.empty() && !work->most.empty(),
               "needs 'counter', 'least' and 'most'");
  return members.Done();
}

Result<json> ParseJson(std::string_view text, const std::string& file) {
  try {
    return json::parse(text, nullptr, true, /*ignore_comments=*/true);
  } catch (const json::parse_error& error) {
    const size_t at = std::min<size_t>(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
    return Wrong(fmt::format("{}:{}", file, line), "is not JSON");
  }
}

Result<std::string> ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file)
    return Error{ExitCode::kConfiguration, path.string(), "cannot be read", "name a folder of recipes"};
  return text.str();
}

Result<std::map<std::string, Harness, std::less<>>> ReadHarnesses(const std::string& file) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  HEDDLE_ASSIGN_OR_RETURN(const json object, ParseJson(text, file));
  if (!object.is_object()) return Wrong(file, "is not an object");
  std::map<std::string, Harness, std::less<>> harnesses;
  for (const auto& [name, value] : object.items()) {
    Harness& harness = harnesses[name];
    Members members(value, fmt::format("{}: {}", file, name));
    members.Read("doc", &harness.doc);
    const json in_graph = members.Object("in_graph");
    for (const auto& [gpu, whether] : in_graph.items()) {
      members.Need(whether.is_boolean(), fmt::format("'in_graph.{}' is neither true nor false", gpu));
      if (whether.is_boolean()) harness.in_graph[gpu] = whether.get<bool>();
    }
    const json overheads = members.Object("overhead_us");
    for (const auto& [gpu, overhead] : overheads.items()) {
      members.Need(overhead.is_number() && overhead.get<double>() >= 0,
                   fmt::format("'overhead_us.{}' is not a number", gpu));
      if (overhead.is_number()) harness.overhead_us[gpu] = overhead.get<double>();
    }
    HEDDLE_RETURN_IF_ERROR(members.Done());
  }
  return harnesses;
}

// By the names that descriptions say measurements give to their boards.
Result<std::map<std::string, std::string, std::less<>>> MachinesByName() {
  std::map<std::string, std::string, std::less<>> machines;
  for (const config::ArchFile& arch : config::ListArchs()) {
    HEDDLE_ASSIGN_OR_RETURN(const config::Gpu gpu, config::LoadGpu(arch.name));
    for (const std::string& name : gpu.board.names) {
      const auto [place, is_new] = machines.emplace(name, arch.name);
      if (!is_new)
        return Wrong(arch.path.string(),
                     fmt::format("board.names has '{}', which {} has, too", name, place->second));
    }
  }
  return machines;
}

}  // namespace

std::string_view Name(KernelKind kind) { return kKernelKinds[static_cast<size_t>(kind)].first; }

Result<Recipe> ParseRecipe(std::string_view text, const std::string& file) {
  HEDDLE_ASSIGN_OR_RETURN(const json object, ParseJson(text, file));
  if (!object.is_object()) return Wrong(file, "is not an object");
  Recipe recipe;
  recipe.file = file;
  Members members(object, file);
  members.Read("name", &recipe.name);
  members.Read("doc", &recipe.doc);
  members.Read("kernel", kKernelKinds, &recipe.kernel);
  members.Read("note", &recipe.note);
  members.Read("defines", &recipe.defines);
  members.Read("cache", kCaches, &recipe.cache);
  members.Read("replays", &recipe.replays);
  members.Read("harness", &recipe.harness);
  members.Read("clock_mhz", &recipe.clock_mhz);
  HEDDLE_RETURN_IF_ERROR(ReadMatch(members.Object("match"), file + ": match", &recipe.match));
  for (const json& element : members.Array("traces"))
    HEDDLE_RETURN_IF_ERROR(ReadTraceChoice(element, file + ": traces", &recipe.traces.emplace_back()));
  for (const json& element : members.Array("metrics"))
    HEDDLE_RETURN_IF_ERROR(ReadMetric(element, file + ": metrics", &recipe.metrics.emplace_back()));
  if (const json work = members.Object("work"); !work.empty())
    HEDDLE_RETURN_IF_ERROR(ReadWork(work, file + ": work", &recipe.work.emplace()));
  members.Need(!recipe.name.empty() && !recipe.doc.empty(), "needs a name and a doc");
  members.Need(!recipe.traces.empty() && !recipe.metrics.empty(), "needs traces and metrics");
  members.Need(object.contains("kernel"), "needs 'kernel': exact, recreated, best_of or other");
  members.Need(recipe.kernel != KernelKind::kOther || !recipe.note.empty(),
               "another kernel than the one measured needs a note");
  members.Need(recipe.replays >= 1 && recipe.replays <= 100, "'replays' is not from 1 to 100");
  HEDDLE_RETURN_IF_ERROR(members.Done());
  return recipe;
}

Result<Recipes> ReadRecipes(const std::string& folder) {
  Recipes recipes;
  recipes.root = fs::path(folder).parent_path().parent_path().string();
  HEDDLE_ASSIGN_OR_RETURN(recipes.harnesses, ReadHarnesses(folder + "/harnesses.json"));
  HEDDLE_ASSIGN_OR_RETURN(recipes.machines, MachinesByName());
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() == ".json" && path.stem() != "harnesses") files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
    HEDDLE_ASSIGN_OR_RETURN(Recipe recipe, ParseRecipe(text, path.string()));
    if (!recipe.harness.empty() && !recipes.harnesses.contains(recipe.harness))
      return Wrong(recipe.file, fmt::format("harness '{}' is not in harnesses.json", recipe.harness));
    recipes.list.push_back(std::move(recipe));
  }
  return recipes;
}

std::string RecipeFolder() {
  const char* folder = std::getenv("HEDDLE_RECIPES");
  return folder != nullptr && *folder != '\0' ? folder : HEDDLE_RECIPE_SOURCE_DIR;
}

}  // namespace heddle::validate
