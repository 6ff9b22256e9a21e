// Shared memory, L1, asynchronous copies, stores, barriers and the accounting of one SM.
#include "tests/component/sm_fixture.h"

namespace heddle::sm {
namespace {}  // namespace
}  // namespace heddle::sm
