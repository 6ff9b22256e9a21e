// Cycles of the network between the SMs of a cluster: H100, 78 cycles one way, 16.3 bytes a cycle out of an SM and into one.
#include "sim/interconnect/cluster_network.h"

#include <gtest/gtest.h>

#include "sim/config/load.h"

namespace heddle::interconnect {
namespace {

ClusterNetwork Network() { return ClusterNetwork(config::LoadGpu("h100_sxm5", {}).value()); }

// 128 bytes are 8 cycles of the way out and 8 of the way in; the last moves in the eighth of each.
constexpr Cycle kLine = 7 + 78 + 7;

TEST(ClusterNetwork, WaysOutAndInAreShared) {
  ClusterNetwork network = Network();
  EXPECT_EQ(network.Pass(0, 1, 1000, 0), 1078u);  // no payload: no bandwidth
  EXPECT_EQ(network.Pass(0, 1, 1000, 128), 1000 + kLine);
  EXPECT_EQ(network.Pass(0, 2, 1000, 128), 1008 + kLine);  // behind the first, out of SM 0
  EXPECT_EQ(network.Pass(3, 1, 1000, 128), 1008 + kLine);  // behind the first, into SM 1
  EXPECT_EQ(network.Pass(4, 5, 1000, 128), 1000 + kLine);
}

// What lies behind is forgotten: were every bucket since cycle 0 kept, no machine had the memory.
TEST(ClusterNetwork, LongTimesCostNothing) {
  ClusterNetwork network = Network();
  EXPECT_EQ(network.Pass(0, 1, 1000, 128), 1000 + kLine);
  constexpr Cycle kLater = Cycle{1} << 50;
  EXPECT_EQ(network.Pass(0, 1, kLater, 128), kLater + kLine);
  EXPECT_EQ(network.Pass(2, 1, kLater, 128), kLater + 8 + kLine);
}

}  // namespace
}  // namespace heddle::interconnect
