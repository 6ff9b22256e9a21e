#include "sim/isa/warp_stream.h"

#include "sim/base/check.h"

namespace heddle::isa {
namespace {

[[noreturn]] void Unexpected(const char* call) {
  HEDDLE_CHECK(false, "warp_stream", 0, call);
  __builtin_unreachable();
}

}  // namespace

void WarpStream::ReleaseClusterBarrier(uint32_t) { Unexpected("ReleaseClusterBarrier"); }
void WarpStream::ArriveAfterCopies(uint32_t, Cycle) { Unexpected("ArriveAfterCopies"); }
void WarpStream::CompleteBulk(BulkOperation&, uint32_t, uint32_t, uint32_t, uint32_t, Cycle) {
  Unexpected("CompleteBulk");
}
void WarpStream::ReadBulkSource(BulkOperation&, uint32_t, uint32_t, Cycle) { Unexpected("ReadBulkSource"); }
void WarpStream::PerformBulkAtSlice(BulkOperation&, uint32_t, uint32_t, uint32_t, Cycle) {
  Unexpected("PerformBulkAtSlice");
}
void WarpStream::PerformRemote(RemoteOperation&, uint32_t, uint32_t, Cycle) { Unexpected("PerformRemote"); }
void WarpStream::CompleteRemote(RemoteOperation&, Cycle) { Unexpected("CompleteRemote"); }
bool WarpStream::FailWait(uint32_t, Cycle) { return false; }

}  // namespace heddle::isa
