#include "frontend/import/firsts.h"

namespace heddle::importer {

FirstsPrediction::Known& FirstsPrediction::Of(uint32_t warp, uint32_t instruction) {
  std::vector<Known>& of_warp = last_[warp];
  if (of_warp.size() <= instruction) of_warp.resize(instruction + std::size_t{1});
  return of_warp[instruction];
}

First FirstsPrediction::Expect(uint32_t warp, uint32_t instruction) {
  const Known& own = Of(warp, instruction);
  if (warp == 0) return own.known ? First{own.first.base + own.step, own.first.shape} : First{};
  // The neighbour is this block's already: its step is what the block moved by.
  const Known& neighbour = Of(warp - 1, instruction);
  return own.known ? First{own.first.base + neighbour.step, own.first.shape} : neighbour.first;
}

void FirstsPrediction::Set(uint32_t warp, uint32_t instruction, First first) {
  Known& own = Of(warp, instruction);
  own.step = own.known ? first.base - own.first.base : 0;
  own.first = first;
  own.known = true;
}

}  // namespace heddle::importer
