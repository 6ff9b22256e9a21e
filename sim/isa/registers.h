// Which registers an instruction reads and writes.
#pragma once

#include <bitset>

#include "sim/isa/instruction.h"

namespace heddle::isa {

struct RegisterSet {
  std::bitset<256> r;   // R0..R254; RZ never appears
  std::bitset<128> ur;  // UR0..UR127
  std::bitset<8> p;     // P0..P6
  std::bitset<8> up;    // UP0..UP6
  std::bitset<16> b;    // convergence barriers

  bool Intersects(const RegisterSet& other) const {
    return (r & other.r).any() || (ur & other.ur).any() || (p & other.p).any() || (up & other.up).any() ||
           (b & other.b).any();
  }
};

struct RegisterUse {
  RegisterSet reads;   // guard included
  RegisterSet writes;  // of a predicated instruction: those it may write
};

RegisterUse RegistersOf(const Instruction& instruction);

}  // namespace heddle::isa
