#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
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

class Writer {
 public:
  explicit Writer(Database* database) : db_(database) {}

  Status Write(const Trace& trace) {
    HEDDLE_RETURN_IF_ERROR(db_->Execute(fmt::format(
        "PRAGMA journal_mode=OFF; PRAGMA page_size=1024; PRAGMA application_id={}; PRAGMA user_version={};",
        kApplicationId, kSchemaVersion)));
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(db_));
    for (const TableDefinition& table : Tables())
      HEDDLE_RETURN_IF_ERROR(db_->Execute(CreateStatement(table)));
    HEDDLE_RETURN_IF_ERROR(WriteHead(trace));
    HEDDLE_RETURN_IF_ERROR(WriteCode(trace));
    HEDDLE_RETURN_IF_ERROR(WriteLaunches(trace));
    HEDDLE_RETURN_IF_ERROR(WriteMemory(trace));
    HEDDLE_RETURN_IF_ERROR(WriteMeasured(trace));
    return transaction.Commit();
  }

 private:
  Result<Statement> Insert(std::string_view table, int columns) {
    std::string marks = "?";
    for (int i = 1; i < columns; ++i) marks += ",?";
    return db_->Prepare(fmt::format("INSERT INTO {} VALUES({})", table, marks));
  }

  // The id of the blob with these bytes, which is stored once.
  Result<int64_t> BlobId(std::span<const std::byte> bytes) {
    const std::string sha256 = Sha256Hex(bytes);
    const auto [found, inserted] = blobs_.emplace(sha256, static_cast<int64_t>(blobs_.size()));
    if (inserted) {
      HEDDLE_ASSIGN_OR_RETURN(Statement insert, Insert("blob", 4));
      const std::vector<std::byte> compressed = Compress(bytes);
      insert.Bind(found->second)
          .Bind(sha256)
          .Bind(uint64_t{bytes.size()})
          .Bind(std::span<const std::byte>(compressed));
      HEDDLE_RETURN_IF_ERROR(insert.Run());
    }
    return found->second;
  }

  static std::span<const std::byte> Payload(const std::string& bytes) {
    return std::as_bytes(std::span(bytes));
  }

  Status WriteHead(const Trace& trace) {
    HEDDLE_ASSIGN_OR_RETURN(Statement meta, Insert("meta", 2));
    const std::pair<const char*, std::string> words[] = {
        {"digest", Digest(trace)}, {"doc", trace.doc}, {"name", trace.name}};
    for (const auto& [key, value] : words) HEDDLE_RETURN_IF_ERROR(meta.Bind(key).Bind(value).Run());
    HEDDLE_ASSIGN_OR_RETURN(Statement define, Insert("define", 3));
    for (size_t i = 0; i < trace.defines.size(); ++i) {
      const std::string payload = EncodePayload(trace.defines[i].second);
      HEDDLE_RETURN_IF_ERROR(
          define.Bind(uint64_t{i}).Bind(trace.defines[i].first).Bind(Payload(payload)).Run());
    }
    HEDDLE_ASSIGN_OR_RETURN(Statement device, Insert("device", 4));
    const std::string attributes = EncodePayload(trace.device);
    HEDDLE_RETURN_IF_ERROR(
        device.Bind(0).Bind(trace.device.name).Bind(trace.device.sm_version).Bind(Payload(attributes)).Run());
    if (trace.check.empty()) return Ok();
    HEDDLE_ASSIGN_OR_RETURN(Statement check, Insert("output_check", 2));
    return check.Bind(0).Bind(Payload(trace.check)).Run();
  }

  Status WriteCode(const Trace& trace) {
    HEDDLE_ASSIGN_OR_RETURN(Statement module, Insert("module", 5));
    for (size_t i = 0; i < trace.modules.size(); ++i) {
      const Module& m = trace.modules[i];
      HEDDLE_ASSIGN_OR_RETURN(const int64_t blob, BlobId(m.cubin));
      HEDDLE_RETURN_IF_ERROR(
          module.Bind(uint64_t{i}).Bind(m.name).Bind(m.sha256).Bind(m.sm_version).Bind(blob).Run());
    }
    HEDDLE_ASSIGN_OR_RETURN(Statement function, Insert("function", 4));
    for (size_t i = 0; i < trace.functions.size(); ++i) {
      const Function& f = trace.functions[i];
      const std::string payload = EncodePayload(f);
      HEDDLE_RETURN_IF_ERROR(
          function.Bind(uint64_t{i}).Bind(f.module).Bind(f.name).Bind(Payload(payload)).Run());
    }
    HEDDLE_ASSIGN_OR_RETURN(Statement sass, Insert("sass", 4));
    for (size_t i = 0; i < trace.sass.size(); ++i) {
      const Sass& s = trace.sass[i];
      const std::string code = EncodeSass(s.code);
      HEDDLE_ASSIGN_OR_RETURN(const int64_t blob, BlobId(Payload(code)));
      HEDDLE_RETURN_IF_ERROR(
          sass.Bind(uint64_t{i}).Bind(s.function).Bind(s.decoder_version).Bind(blob).Run());
    }
    return Ok();
  }

  Status WriteLaunches(const Trace& trace) {
    HEDDLE_ASSIGN_OR_RETURN(Statement launch, Insert("launch", 7));
    for (size_t i = 0; i < trace.launches.size(); ++i) {
      const Launch& l = trace.launches[i];
      const std::string payload = EncodePayload(l);
      launch.Bind(uint64_t{i}).Bind(l.name).Bind(l.function).Bind(l.stream);
      for (const int64_t ns : {l.measured_start_ns, l.measured_end_ns})
        ns < 0 ? launch.BindNull() : launch.Bind(ns);
      HEDDLE_RETURN_IF_ERROR(launch.Bind(Payload(payload)).Run());
    }
    HEDDLE_ASSIGN_OR_RETURN(Statement edge, Insert("edge", 3));
    for (size_t i = 0; i < trace.edges.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(edge.Bind(uint64_t{i}).Bind(trace.edges[i].from).Bind(trace.edges[i].to).Run());
    return Ok();
  }

  Status WriteMemory(const Trace& trace) {
    HEDDLE_ASSIGN_OR_RETURN(Statement buffer, Insert("buffer", 4));
    for (size_t i = 0; i < trace.buffers.size(); ++i) {
      const Buffer& b = trace.buffers[i];
      const std::string payload = EncodePayload(b);
      HEDDLE_RETURN_IF_ERROR(
          buffer.Bind(uint64_t{i}).Bind(b.name).Bind(b.address).Bind(Payload(payload)).Run());
    }
    HEDDLE_ASSIGN_OR_RETURN(Statement content, Insert("content", 6));
    for (size_t i = 0; i < trace.contents.size(); ++i) {
      const Content& c = trace.contents[i];
      const std::string payload = EncodePayload(c);
      content.Bind(uint64_t{i}).Bind(c.buffer).Bind(c.before_launch).Bind(static_cast<int>(c.rule.kind));
      if (c.rule.kind == RuleKind::kBytes) {
        HEDDLE_ASSIGN_OR_RETURN(const int64_t blob, BlobId(c.rule.bytes));
        content.Bind(blob);
      } else {
        content.BindNull();
      }
      HEDDLE_RETURN_IF_ERROR(content.Bind(Payload(payload)).Run());
    }
    HEDDLE_ASSIGN_OR_RETURN(Statement map, Insert("tensor_map", 5));
    for (size_t i = 0; i < trace.tensor_maps.size(); ++i) {
      const TensorMap& t = trace.tensor_maps[i];
      map.Bind(uint64_t{i}).Bind(t.launch).Bind(t.parameter_offset);
      t.buffer == kNone ? map.BindNull() : map.Bind(t.buffer);
      const std::string payload = EncodePayload(t);
      HEDDLE_RETURN_IF_ERROR(map.Bind(Payload(payload)).Run());
    }
    return Ok();
  }

  Status WriteMeasured(const Trace& trace) {
    HEDDLE_ASSIGN_OR_RETURN(Statement counter, Insert("counter", 5));
    for (size_t i = 0; i < trace.counters.size(); ++i) {
      const Counter& c = trace.counters[i];
      HEDDLE_RETURN_IF_ERROR(
          counter.Bind(uint64_t{i}).Bind(c.launch).Bind(c.name).Bind(c.value).Bind(c.unit).Run());
    }
    HEDDLE_ASSIGN_OR_RETURN(Statement collective, Insert("collective", 5));
    for (size_t i = 0; i < trace.collectives.size(); ++i) {
      const Collective& c = trace.collectives[i];
      HEDDLE_RETURN_IF_ERROR(
          collective.Bind(uint64_t{i}).Bind(c.launch).Bind(c.kind).Bind(c.size_bytes).Bind(c.ranks).Run());
    }
    HEDDLE_ASSIGN_OR_RETURN(Statement stream, Insert("warp_stream", 5));
    for (size_t i = 0; i < trace.warp_streams.size(); ++i) {
      const WarpStreamBlob& w = trace.warp_streams[i];
      HEDDLE_ASSIGN_OR_RETURN(const int64_t blob, BlobId(w.bytes));
      HEDDLE_RETURN_IF_ERROR(
          stream.Bind(uint64_t{i}).Bind(w.launch).Bind(w.cta).Bind(w.warp).Bind(blob).Run());
    }
    return Ok();
  }

  Database* db_;
  std::map<std::string, int64_t> blobs_;
};

Status WriteTemporary(const Trace& trace, const std::string& temporary) {
  Result<Database> database = Database::Open(temporary, Database::Mode::kCreate);
  if (!database.ok())
    return Error{ExitCode::kTrace, temporary, "cannot be written",
                 "check that the folder is there and that you may write to it"};
  return Writer(&*database).Write(trace);
}

}  // namespace

Status WriteTrace(const Trace& trace, const std::string& path) {
  HEDDLE_RETURN_IF_ERROR(Validate(trace, path));
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  std::remove(temporary.c_str());
  const Status written = WriteTemporary(trace, temporary);
  if (!written.ok()) {
    std::remove(temporary.c_str());
    return written.error();
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    return Error{ExitCode::kTrace, path, "cannot be replaced",
                 "check the permissions of the file and its folder"};
  }
  return Ok();
}

}  // namespace heddle::trace
