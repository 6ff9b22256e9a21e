#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "frontend/trace/blob.h"
#include "frontend/trace/htrace.h"
#include "frontend/trace/payload.h"
#include "frontend/trace/sass_codec.h"
#include "frontend/trace/schema.h"
#include "sim/base/digest.h"
#include "sim/sqlite/sqlite.h"

namespace heddle::trace {
namespace {

using sqlite::Database;
using sqlite::Statement;

constexpr const char* kDamagedNext = "the file is damaged: copy it again, or build the trace again";

// An unsigned 32-bit column; STRICT tables promise the type, not the range.
bool Index(const Statement& row, int column, uint32_t* out) {
  const int64_t value = row.Integer(column);
  if (value < 0 || value > int64_t{0xffffffff}) return false;
  *out = static_cast<uint32_t>(value);
  return true;
}

class Reader {
 public:
  Reader(Database* database, std::string place) : db_(database), place_(std::move(place)) {}

  Result<Trace> Read(std::string* digest) {
    HEDDLE_RETURN_IF_ERROR(ReadHead());
    HEDDLE_RETURN_IF_ERROR(ReadCode());
    HEDDLE_RETURN_IF_ERROR(ReadLaunches());
    HEDDLE_RETURN_IF_ERROR(ReadMemory());
    HEDDLE_RETURN_IF_ERROR(ReadMeasured());
    HEDDLE_RETURN_IF_ERROR(Validate(trace_, place_));
    if (Digest(trace_) != digest_) return Damaged("its contents do not match their digest");
    if (digest != nullptr) *digest = digest_;
    return std::move(trace_);
  }

 private:
  Error Damaged(std::string message) const {
    return Error{ExitCode::kTrace, place_, std::move(message), kDamagedNext};
  }

  // Rows in the order of their ids, which must count from 0. `row` returns false for one that cannot be.
  template <typename Function>
  Status ForEachRow(std::string_view table, Function row) {
    HEDDLE_ASSIGN_OR_RETURN(Statement statement,
                            db_->Prepare(fmt::format("SELECT * FROM {} ORDER BY id", table)));
    for (int64_t id = 0;; ++id) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, statement.Step());
      if (!more) return Ok();
      if (statement.Integer(0) != id) return Damaged(fmt::format("table {}: row {} is missing", table, id));
      HEDDLE_ASSIGN_OR_RETURN(const bool good, row(statement));
      if (!good) return Damaged(fmt::format("table {}: row {} cannot be", table, id));
    }
  }

  Result<std::vector<std::byte>> ReadBlob(int64_t id) {
    HEDDLE_ASSIGN_OR_RETURN(Statement statement,
                            db_->Prepare("SELECT sha256, size_bytes, zstd FROM blob WHERE id = ?"));
    statement.Bind(id);
    HEDDLE_ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return Damaged(fmt::format("blob {} is missing", id));
    const std::string where = fmt::format("{}, blob {}", place_, id);
    if (statement.Integer(1) < 0) return Damaged(fmt::format("blob {} has a negative size", id));
    HEDDLE_ASSIGN_OR_RETURN(
        std::vector<std::byte> bytes,
        Decompress(statement.Blob(2), static_cast<uint64_t>(statement.Integer(1)), where));
    if (Sha256Hex(bytes) != statement.Text(0))
      return Damaged(fmt::format("blob {} does not match its hash", id));
    return bytes;
  }

  Status ReadHead() {
    HEDDLE_ASSIGN_OR_RETURN(Statement meta, db_->Prepare("SELECT key, value FROM meta ORDER BY key"));
    for (;;) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, meta.Step());
      if (!more) break;
      const std::string key = meta.Text(0);
      if (key == "digest") digest_ = meta.Text(1);
      if (key == "doc") trace_.doc = meta.Text(1);
      if (key == "name") trace_.name = meta.Text(1);
    }
    HEDDLE_RETURN_IF_ERROR(ForEachRow("define", [&](Statement& row) -> Result<bool> {
      Expr value;
      const bool good = DecodePayload(row.Blob(2), &value);
      trace_.defines.emplace_back(row.Text(1), std::move(value));
      return good;
    }));
    HEDDLE_RETURN_IF_ERROR(ForEachRow("device", [&](Statement& row) -> Result<bool> {
      trace_.device.name = row.Text(1);
      return Index(row, 2, &trace_.device.sm_version) && DecodePayload(row.Blob(3), &trace_.device);
    }));
    return ForEachRow("output_check", [&](Statement& row) -> Result<bool> {
      const std::span<const std::byte> bytes = row.Blob(1);
      trace_.check.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    });
  }

  Status ReadCode() {
    HEDDLE_RETURN_IF_ERROR(ForEachRow("module", [&](Statement& row) -> Result<bool> {
      Module& module = trace_.modules.emplace_back();
      module.name = row.Text(1);
      module.sha256 = row.Text(2);
      if (!Index(row, 3, &module.sm_version)) return false;
      HEDDLE_ASSIGN_OR_RETURN(module.cubin, ReadBlob(row.Integer(4)));
      return Sha256Hex(module.cubin) == module.sha256;
    }));
    HEDDLE_RETURN_IF_ERROR(ForEachRow("function", [&](Statement& row) -> Result<bool> {
      Function& function = trace_.functions.emplace_back();
      function.name = row.Text(2);
      return Index(row, 1, &function.module) && DecodePayload(row.Blob(3), &function);
    }));
    return ForEachRow("sass", [&](Statement& row) -> Result<bool> {
      Sass& sass = trace_.sass.emplace_back();
      if (!Index(row, 1, &sass.function) || !Index(row, 2, &sass.decoder_version)) return false;
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::byte> code, ReadBlob(row.Integer(3)));
      const std::string_view view(reinterpret_cast<const char*>(code.data()), code.size());
      HEDDLE_ASSIGN_OR_RETURN(sass.code,
                              DecodeSass(view, fmt::format("{}, SASS {}", place_, row.Integer(0))));
      return true;
    });
  }

  Status ReadLaunches() {
    HEDDLE_RETURN_IF_ERROR(ForEachRow("launch", [&](Statement& row) -> Result<bool> {
      Launch& launch = trace_.launches.emplace_back();
      launch.name = row.Text(1);
      if (!row.IsNull(4)) launch.measured_start_ns = row.Integer(4);
      if (!row.IsNull(5)) launch.measured_end_ns = row.Integer(5);
      return Index(row, 2, &launch.function) && Index(row, 3, &launch.stream) &&
             DecodePayload(row.Blob(6), &launch);
    }));
    return ForEachRow("edge", [&](Statement& row) -> Result<bool> {
      Edge& edge = trace_.edges.emplace_back();
      return Index(row, 1, &edge.from) && Index(row, 2, &edge.to);
    });
  }

  Status ReadMemory() {
    HEDDLE_RETURN_IF_ERROR(ForEachRow("buffer", [&](Statement& row) -> Result<bool> {
      Buffer& buffer = trace_.buffers.emplace_back();
      buffer.name = row.Text(1);
      buffer.address = static_cast<uint64_t>(row.Integer(2));
      return DecodePayload(row.Blob(3), &buffer);
    }));
    HEDDLE_RETURN_IF_ERROR(ForEachRow("content", [&](Statement& row) -> Result<bool> {
      Content& content = trace_.contents.emplace_back();
      const int64_t kind = row.Integer(3);
      if (kind < 0 || kind > static_cast<int64_t>(RuleKind::kCopy)) return false;
      content.rule.kind = static_cast<RuleKind>(kind);
      if ((content.rule.kind == RuleKind::kBytes) == row.IsNull(4)) return false;
      if (!Index(row, 1, &content.buffer) || !Index(row, 2, &content.before_launch) ||
          !DecodePayload(row.Blob(5), &content))
        return false;
      if (content.rule.kind == RuleKind::kBytes) {
        HEDDLE_ASSIGN_OR_RETURN(content.rule.bytes, ReadBlob(row.Integer(4)));
      }
      return true;
    }));
    return ForEachRow("tensor_map", [&](Statement& row) -> Result<bool> {
      TensorMap& map = trace_.tensor_maps.emplace_back();
      if (!DecodePayload(row.Blob(4), &map)) return false;
      if (!row.IsNull(3) && !Index(row, 3, &map.buffer)) return false;
      return Index(row, 1, &map.launch) && Index(row, 2, &map.parameter_offset);
    });
  }

  Status ReadMeasured() {
    HEDDLE_RETURN_IF_ERROR(ForEachRow("counter", [&](Statement& row) -> Result<bool> {
      Counter& counter = trace_.counters.emplace_back();
      counter.name = row.Text(2);
      counter.value = row.Real(3);
      counter.unit = row.Text(4);
      return Index(row, 1, &counter.launch);
    }));
    HEDDLE_RETURN_IF_ERROR(ForEachRow("collective", [&](Statement& row) -> Result<bool> {
      Collective& collective = trace_.collectives.emplace_back();
      collective.kind = row.Text(2);
      collective.size_bytes = static_cast<uint64_t>(row.Integer(3));
      return Index(row, 1, &collective.launch) && Index(row, 4, &collective.ranks);
    }));
    return ForEachRow("warp_stream", [&](Statement& row) -> Result<bool> {
      WarpStreamBlob& stream = trace_.warp_streams.emplace_back();
      stream.cta = static_cast<uint64_t>(row.Integer(2));
      if (!Index(row, 1, &stream.launch) || !Index(row, 3, &stream.warp)) return false;
      HEDDLE_ASSIGN_OR_RETURN(stream.bytes, ReadBlob(row.Integer(4)));
      return true;
    });
  }

  Database* db_;
  std::string place_;
  std::string digest_;
  Trace trace_;
};

uint32_t BigEndian(const unsigned char* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

// What the first 100 bytes of the file say (sqlite.org/fileformat.html), before SQLite is asked: the messages
// are better.
Result<int64_t> VersionFromHeader(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec))
    return Error{ExitCode::kTrace, path, "there is no such file", "check the path"};
  if (!std::filesystem::is_regular_file(path, ec))
    return Error{ExitCode::kTrace, path, "is not a file", "give the path of a .htrace"};
  std::array<unsigned char, 100> header{};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(header.data()), header.size());
  if (!file.is_open()) return Error{ExitCode::kTrace, path, "cannot be read", "check its permissions"};
  const Error other{ExitCode::kTrace, path, "is not a heddle trace", "make one with `heddle trace build`"};
  if (file.gcount() != static_cast<std::streamsize>(header.size()) ||
      std::memcmp(header.data(), "SQLite format 3", 16) != 0)
    return other;
  if (BigEndian(&header[68]) != static_cast<uint32_t>(kApplicationId)) return other;
  const uint32_t page_size = uint32_t{header[16]} << 8 | header[17];
  const uint64_t pages = BigEndian(&header[28]);
  const uint64_t size = std::filesystem::file_size(path, ec);
  if (size < pages * (page_size == 1 ? 65536 : page_size))
    return Error{ExitCode::kTrace, path, fmt::format("is cut short: {} bytes of {}", size, pages * page_size),
                 "copy it again, or build the trace again"};
  return int64_t{BigEndian(&header[60])};
}

}  // namespace

Result<Trace> ReadTrace(const std::string& path, std::string* digest) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t version, VersionFromHeader(path));
  if (version > kSchemaVersion)
    return Error{
        ExitCode::kTrace, path,
        fmt::format("has version {} of the format, this heddle reads up to {}", version, kSchemaVersion),
        "update heddle, or build the trace again with this one"};
  Result<Trace> trace = [&]() -> Result<Trace> {
    HEDDLE_ASSIGN_OR_RETURN(Database file, Database::Open(path, Database::Mode::kImmutable));
    HEDDLE_RETURN_IF_ERROR(file.Execute("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0"));
    HEDDLE_ASSIGN_OR_RETURN(Database database, Migrate(std::move(file), version, KnownMigrations()));
    HEDDLE_RETURN_IF_ERROR(CheckSchema(&database));
    return Reader(&database, path).Read(digest);
  }();
  if (trace.ok()) return trace;
  Error error = trace.error();
  if (error.next_step.empty()) error.next_step = kDamagedNext;
  return error;
}

}  // namespace heddle::trace
