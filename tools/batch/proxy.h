// What a design costs: area and power by a stated formula from its description. Proxies rank designs of one family; they are
// no floorplan. docs/sweeps.md has the formula in words, coefficients.def every coefficient with its source.
//
//   chip = sm.count x (lanes, registers, L1, FP32, FP64, integer and tensor units, its share of the network) + L2
//   area = chip + DRAM links + NVLink + PCIe
//   power = DRAM bandwidth x energy per bit
//         + (board limit - that of the base's DRAM) x chip / base chip x (static + (1 - static) x clock / base clock)
//
// The process is 5 nm from sm_89 on and 7 nm before. Voltage does not follow the clock. DRAM links are counted by bandwidth:
// a faster interface of the same kind counts as more of it.
#pragma once

#include "sim/config/gpu_description.h"

namespace heddle::batch {

struct Area {
  double sms_mm2 = 0;
  double l2_mm2 = 0;
  double dram_mm2 = 0;   // PHYs and controllers
  double links_mm2 = 0;  // NVLink, PCIe
  double total() const { return sms_mm2 + l2_mm2 + dram_mm2 + links_mm2; }
};

Area AreaOf(const config::Gpu& gpu);
// Watts; anchored at `base`, the machine that the sweep starts from, which draws its board's limit.
double PowerOf(const config::Gpu& gpu, const config::Gpu& base);

}  // namespace heddle::batch
