#include "tools/timeline/perfetto_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "tools/timeline/perfetto.pb.h"

namespace heddle::timeline {
namespace {

namespace pb = heddle::perfetto;

constexpr uint32_t kSequence = 1;
constexpr uint32_t kStateCleared = 1, kNeedsState = 2;  // TracePacket.SequenceFlags
constexpr int kPacketsAtOnce = 4096;

// Interned names of arguments.
enum Argument : uint64_t { kGrid = 1, kBlock, kCycles, kDuration, kLaunch, kCta };
constexpr const char* kArgumentNames[] = {"grid", "block", "cycles", "duration_us", "launch_id", "cta"};

class File {
 public:
  explicit File(const std::string& path) : out_(path, std::ios::binary | std::ios::trunc) {}

  pb::TracePacket* Add() {
    // A file of traces one after the other is one trace.
    if (trace_.packet_size() >= kPacketsAtOnce) Flush();
    pb::TracePacket* packet = trace_.add_packet();
    packet->set_trusted_packet_sequence_id(kSequence);
    return packet;
  }

  bool Finish() {
    Flush();
    out_.close();
    return out_.good();
  }
  uint64_t bytes() const { return bytes_; }

 private:
  void Flush() {
    trace_.SerializeToString(&buffer_);
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    bytes_ += buffer_.size();
    trace_.Clear();
  }

  std::ofstream out_;
  pb::Trace trace_;
  std::string buffer_;
  uint64_t bytes_ = 0;
};

uint64_t UuidOf(uint32_t track) { return uint64_t{track} + 1; }

void AddNames(const Tracks& tracks, File* file) {
  pb::TracePacket* packet = file->Add();
  packet->set_sequence_flags(kStateCleared);
  pb::InternedData* data = packet->mutable_interned_data();
  for (size_t i = 0; i < tracks.names.size(); ++i) {
    pb::InternedName* name = data->add_event_names();
    name->set_iid(i + 1);
    name->set_name(tracks.names[i]);
  }
  uint64_t iid = 0;
  for (const char* text : kArgumentNames) {
    pb::InternedName* name = data->add_debug_annotation_names();
    name->set_iid(++iid);
    name->set_name(text);
  }
}

void AddTrack(const Tracks& tracks, uint32_t index, File* file) {
  const Track& track = tracks.tracks[index];
  pb::TrackDescriptor* descriptor = file->Add()->mutable_track_descriptor();
  descriptor->set_uuid(UuidOf(index));
  descriptor->set_child_ordering(pb::TrackDescriptor::EXPLICIT);
  if (track.kind == Track::Kind::kProcess) {
    descriptor->mutable_process()->set_pid(static_cast<int32_t>(index) + 1);
    descriptor->mutable_process()->set_process_name(track.name);
    return;
  }
  descriptor->set_name(track.name);
  descriptor->set_parent_uuid(UuidOf(track.parent));
  descriptor->set_sibling_order_rank(static_cast<int32_t>(track.rank));
  if (track.kind == Track::Kind::kCounter) descriptor->mutable_counter()->set_unit_name(track.unit);
}

void AddArguments(const LaunchText& launch, pb::TrackEvent* event) {
  const auto add = [&](Argument name) {
    pb::DebugAnnotation* annotation = event->add_debug_annotations();
    annotation->set_name_iid(name);
    return annotation;
  };
  add(kGrid)->set_string_value(launch.grid);
  add(kBlock)->set_string_value(launch.block);
  add(kCycles)->set_uint_value(launch.cycles);
  add(kDuration)->set_double_value(launch.duration_us);
  add(kLaunch)->set_uint_value(static_cast<uint64_t>(launch.launch_id));
}

void AddEvent(const Tracks& tracks, const Event& from, File* file) {
  pb::TracePacket* packet = file->Add();
  packet->set_timestamp(from.at_ns);
  packet->set_sequence_flags(kNeedsState);
  pb::TrackEvent* event = packet->mutable_track_event();
  event->set_track_uuid(UuidOf(from.track));
  switch (from.kind) {
    case Event::Kind::kEnd:
      event->set_type(pb::TrackEvent::TYPE_SLICE_END);
      return;
    case Event::Kind::kValue:
      event->set_type(pb::TrackEvent::TYPE_COUNTER);
      event->set_double_counter_value(from.value);
      return;
    case Event::Kind::kBeginLaunch:
      AddArguments(tracks.launches[static_cast<size_t>(from.value)], event);
      break;
    case Event::Kind::kBeginCta: {
      pb::DebugAnnotation* annotation = event->add_debug_annotations();
      annotation->set_name_iid(kCta);
      annotation->set_uint_value(static_cast<uint64_t>(from.value));
      break;
    }
    case Event::Kind::kBegin:
      break;
  }
  event->set_type(pb::TrackEvent::TYPE_SLICE_BEGIN);
  event->set_name_iid(uint64_t{from.name} + 1);
}

}  // namespace

Result<uint64_t> WritePerfetto(const Tracks& tracks, const std::string& path) {
  const std::string partial = path + ".partial";
  File file(partial);
  AddNames(tracks, &file);
  for (uint32_t i = 0; i < tracks.tracks.size(); ++i) AddTrack(tracks, i, &file);
  for (const Event& event : tracks.events) AddEvent(tracks, event, &file);
  std::error_code code;
  if (file.Finish()) std::filesystem::rename(partial, path, code);
  if (code || !std::filesystem::exists(path)) {
    std::filesystem::remove(partial, code);
    return Error{ExitCode::kUsage, path, "cannot be written", "choose another -o, or free some space"};
  }
  return file.bytes();
}

}  // namespace heddle::timeline
