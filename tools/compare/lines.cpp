// Numbers of single instructions, measured and simulated.
#include <cmath>
#include <set>

#include "sim/results/results.h"
#include "tools/compare/comparison.h"

namespace heddle::compare {
namespace {

constexpr std::string_view kExecuted = "smsp_inst_executed", kSamples = "stall_samples_";

using Sides = std::map<uint64_t, Line::Side>;  // by pc; waits as they were counted

// The one text of a query with one id; empty: none.
Result<std::string> TextOf(sqlite::Statement* query, int64_t id) {
  query->Reset();
  query->Bind(id);
  HEDDLE_ASSIGN_OR_RETURN(const bool found, query->Step());
  return found ? query->Text(0) : std::string();
}

// Those of `ids` whose code is `digest`; an empty one is set to that of the first that has one.
Result<std::vector<int64_t>> OfCode(sqlite::Statement* query, const std::vector<int64_t>& ids,
                                    std::string* digest) {
  std::vector<int64_t> same;
  for (const int64_t id : ids) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string each, TextOf(query, id));
    if (digest->empty()) *digest = each;
    if (!each.empty() && each == *digest) same.push_back(id);
  }
  return same;
}

// A side of a row: sums over its launches, of which `launches` have counts.
struct Sum {
  Sides sides;
  std::set<int64_t> counted;
  bool has_waits = false;
};

class Reader {
 public:
  static Result<Reader> Make(sqlite::Database* simulated, sqlite::Database* measured) {
    Reader reader;
    const auto prepare = [](sqlite::Database* database, const char* sql,
                            std::optional<sqlite::Statement>* statement) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(*statement, database->Prepare(sql));
      return Ok();
    };
    HEDDLE_RETURN_IF_ERROR(
        prepare(simulated, "SELECT k.digest FROM launch JOIN kernel k USING (kernel_id) WHERE launch_id = ?",
                &reader.simulated_code_));
    HEDDLE_RETURN_IF_ERROR(prepare(measured,
                                   "SELECT kernel_digest FROM hardware_code WHERE hardware_run_id = ?",
                                   &reader.measured_code_));
    HEDDLE_RETURN_IF_ERROR(prepare(
        simulated,
        "SELECT s.pc, d.name, s.slots FROM pc_stat s JOIN stall_def d USING (stall_id) WHERE launch_id = ?",
        &reader.simulated_numbers_));
    HEDDLE_RETURN_IF_ERROR(prepare(measured,
                                   "SELECT pc, name, value FROM hardware_pc_metric WHERE hardware_run_id = ?",
                                   &reader.measured_numbers_));
    HEDDLE_RETURN_IF_ERROR(prepare(simulated,
                                   "SELECT i.pc, i.text FROM instruction i JOIN kernel k USING (kernel_id) "
                                   "WHERE k.digest = ?",
                                   &reader.texts_));
    return reader;
  }

  // nullopt: nothing was measured instruction by instruction.
  Result<std::optional<Lines>> Read(const Row& row) {
    std::string digest;
    HEDDLE_ASSIGN_OR_RETURN(const auto measured_ids, OfCode(&*measured_code_, row.measured_ids, &digest));
    if (measured_ids.empty()) return std::optional<Lines>();
    HEDDLE_ASSIGN_OR_RETURN(const auto simulated_ids, OfCode(&*simulated_code_, row.simulated_ids, &digest));
    Lines lines;
    if (simulated_ids.empty()) {
      lines.refused = "other code of this name was simulated";
      return std::optional(std::move(lines));
    }
    Sum measured, simulated;
    HEDDLE_RETURN_IF_ERROR(AddUp(&*measured_numbers_, measured_ids, kExecuted, kSamples, &measured));
    HEDDLE_RETURN_IF_ERROR(AddUp(&*simulated_numbers_, simulated_ids, "selected", "", &simulated));
    HEDDLE_ASSIGN_OR_RETURN(auto texts, Texts(digest));
    Join(measured, simulated, &texts, &lines);
    return std::optional(std::move(lines));
  }

 private:
  static Status AddUp(sqlite::Statement* rows, const std::vector<int64_t>& ids, std::string_view executed,
                      std::string_view wait_prefix, Sum* sum) {
    for (const int64_t id : ids) {
      rows->Reset();
      rows->Bind(id);
      while (true) {
        HEDDLE_ASSIGN_OR_RETURN(const bool more, rows->Step());
        if (!more) break;
        Line::Side& side = sum->sides[static_cast<uint64_t>(rows->Integer(0))];
        const std::string name = rows->Text(1);
        if (name == executed) {
          side.executed += rows->Real(2);
          sum->counted.insert(id);
        } else if (name.starts_with(wait_prefix) && IsWait(name.substr(wait_prefix.size()))) {
          side.waits[name.substr(wait_prefix.size())] += rows->Real(2);
          sum->has_waits = true;
        }
      }
    }
    return Ok();
  }

  Result<std::map<uint64_t, std::string>> Texts(const std::string& digest) {
    std::map<uint64_t, std::string> texts;
    texts_->Reset();
    texts_->Bind(digest);
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, texts_->Step());
      if (!more) return texts;
      texts[static_cast<uint64_t>(texts_->Integer(0))] = texts_->Text(1);
    }
  }

  // Counts become means of a launch, waits shares of the kernel's waiting.
  static void Scale(Sum* sum) {
    double all = 0;
    for (const auto& [pc, side] : sum->sides) all += side.WaitPercent();
    const double launches = std::max<double>(1, static_cast<double>(sum->counted.size()));
    for (auto& [pc, side] : sum->sides) {
      side.executed /= launches;
      for (auto& [cause, share] : side.waits) share *= 100 / std::max(all, 1e-30);
    }
  }

  static void Join(Sum& measured, Sum& simulated, std::map<uint64_t, std::string>* texts, Lines* lines) {
    lines->has_counts = !measured.counted.empty();
    lines->has_samples = measured.has_waits;
    Scale(&measured);
    Scale(&simulated);
    std::map<uint64_t, Line> joined;
    for (auto& [pc, side] : measured.sides) joined[pc].measured = std::move(side);
    for (auto& [pc, side] : simulated.sides) joined[pc].simulated = std::move(side);
    for (auto& [pc, line] : joined) {
      const double left = line.measured.executed, right = line.simulated.executed;
      if (std::fabs(left - right) <= 1e-4 * std::max(left, right)) ++lines->equal;
      lines->measured_sum += left;
      lines->simulated_sum += right;
      line.pc = pc;
      line.text = (*texts)[pc];
      lines->lines.push_back(std::move(line));
    }
  }

  std::optional<sqlite::Statement> simulated_code_, measured_code_, simulated_numbers_, measured_numbers_,
      texts_;
};

}  // namespace

Status AddLines(const std::string& simulated_database, const std::string& measured_database,
                Comparison* comparison) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database measured, results::OpenForReading(measured_database));
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t tables,
      measured.QueryInteger("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'hardware_pc_metric'"));
  if (tables == 0) return Ok();  // of an older heddle
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database simulated, results::OpenForReading(simulated_database));
  HEDDLE_ASSIGN_OR_RETURN(Reader reader, Reader::Make(&simulated, &measured));
  for (Row& row : comparison->rows) {
    HEDDLE_ASSIGN_OR_RETURN(row.lines, reader.Read(row));
  }
  return Ok();
}

}  // namespace heddle::compare
