// One trace put together from launches of others, in any order and as often as wanted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/trace/trace.h"

namespace heddle::compare {

class TraceSequence {
 public:
  // Takes over what one launch of `trace` needs: its function, and the trace's buffers with what they hold before it. Names
  // get a prefix, so that traces do not meet. `defines` replace values of the trace's own. What earlier launches of that
  // trace would have computed is not there. Gives the number to call Append() with.
  uint32_t Add(const trace::Trace& trace, uint32_t launch, const trace::Symbols& defines);

  // The launch once more, at the end.
  void Append(uint32_t added, uint32_t stream, int64_t measured_start_ns, int64_t measured_end_ns);

  size_t size() const { return sequence_.launches.size(); }
  trace::Trace Finish(std::string name, std::string doc);

 private:
  struct Added {
    trace::Launch launch;
    std::vector<trace::TensorMap> tensor_maps;
    std::vector<trace::Content> contents;  // put before its first launch
  };

  uint32_t AddFunction(const trace::Trace& trace, uint32_t function);

  trace::Trace sequence_;
  std::vector<Added> added_;
  std::map<std::pair<std::string, std::string>, uint32_t> functions_;  // (SHA-256 of the cubin, name)
  std::map<std::string, uint32_t> modules_;
};

// `text` with every name that `names` has replaced.
std::string RenameInExpression(const std::string& text, const std::map<std::string, std::string>& names);

}  // namespace heddle::compare
