#include "frontend/capture/advice.h"

#include <fmt/format.h>

#include "frontend/capture/record.pb.h"

namespace heddle::capture {

std::string CuptiAdvice(uint32_t status) {
  switch (status) {
#define HEDDLE_STATUS(number, name, text) \
  case number:                            \
    return fmt::format("CUPTI_ERROR_{} ({}): {}", #name, number, text);
#include "frontend/capture/cupti_status.def"
#undef HEDDLE_STATUS
    default:
      return fmt::format("CUPTI's status {}", status);
  }
}

std::string Advice(const pb::Note& note) {
  const std::string& subject = note.subject();
  switch (note.kind()) {
    case pb::Note::no_cupti:
      return fmt::format(
          "{} was not found, so no launch could be seen: install CUPTI (in the CUDA Toolkit, PyTorch's "
          "wheels, "
          "or PyPI's nvidia-cuda-cupti), or name the file in HEDDLE_CUPTI",
          subject);
    case pb::Note::subscribe_refused:
      return fmt::format("CUPTI refused to watch the process{}: {}",
                         subject.empty() ? "" : fmt::format(" ('{}' is there already)", subject),
                         CuptiAdvice(note.status()));
    case pb::Note::activity_refused:
      return fmt::format("{} are not recorded: {}", subject, CuptiAdvice(note.status()));
    case pb::Note::old_cupti:
      return fmt::format(
          "{} are not recorded: the process's CUPTI (version {}) is older than CUDA 12.0's: name a newer "
          "libcupti.so in HEDDLE_CUPTI",
          subject, note.status());
    case pb::Note::dropped_records:
      return note.subject() == "activity"
                 ? fmt::format("CUPTI dropped {} records: some kernels have no times", note.count())
                 : fmt::format("CUPTI dropped {} {}", note.count(), subject);
    case pb::Note::parameters_missing:
      return fmt::format("the parameters of {} are not known: {}", subject,
                         note.status() == pb::Launch::no_layout
                             ? "its cubin does not state their sizes, or was not seen"
                             : "the call gave none that can be read");
    case pb::Note::snapshot_refused:
      return fmt::format("{} could not be read from the device (CUresult {})", subject, note.status());
    case pb::Note::counters_refused:
      return fmt::format("{} are not measured: {}", subject, CuptiAdvice(note.status()));
    case pb::Note::graphs_not_measured:
      return fmt::format(
          "{} of launches inside CUDA graphs are not taken, a graph is measured as a whole: switch graphs "
          "off "
          "for the measuring runs (vLLM: --enforce-eager)",
          subject);
    case pb::Note::launch_not_measured:
      return fmt::format("a launch has no {}: {} ranges were measured instead of its own", subject,
                         note.count());
    default:
      return subject;
  }
}

}  // namespace heddle::capture
