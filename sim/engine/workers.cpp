#include "sim/engine/workers.h"

#include <numeric>
#include <random>

#include "sim/base/check.h"

namespace heddle::engine {

Workers::Workers(uint32_t threads, uint64_t shuffle_seed)
    : shares_(threads),
      shuffle_state_(shuffle_seed),
      start_(static_cast<std::ptrdiff_t>(threads)),
      done_(static_cast<std::ptrdiff_t>(threads)) {
  HEDDLE_CHECK(threads >= 1, "engine.workers", 0, "at least one thread");
  for (uint32_t i = 1; i < threads; ++i) {
    threads_.emplace_back([this, i] {
      for (;;) {
        start_.arrive_and_wait();
        if (quit_) return;
        Drain(i);
        done_.arrive_and_wait();
      }
    });
  }
}

Workers::~Workers() {
  if (threads_.empty()) return;
  quit_ = true;
  start_.arrive_and_wait();
}

void Workers::Drain(uint32_t thread) {
  for (size_t other = 0; other < shares_.size(); ++other) {
    Share& share = shares_[(thread + other) % shares_.size()];
    for (uint32_t i; (i = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;)
      call_(context_, order_.empty() ? i : order_[i]);
  }
}

void Workers::Shuffle(uint32_t count) {
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0U);
  std::mt19937_64 random(shuffle_state_);
  for (uint32_t i = count; i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
  shuffle_state_ = random();
}

void Workers::Run(uint32_t count, Call call, void* context) {
  if (count == 0) return;
  order_.clear();
  if (shuffle_state_ != 0) Shuffle(count);
  if (threads_.empty() || count == 1) {
    for (uint32_t i = 0; i < count; ++i) call(context, order_.empty() ? i : order_[i]);
    return;
  }
  call_ = call;
  context_ = context;
  const uint64_t shares = shares_.size();
  for (uint64_t thread = 0; thread < shares; ++thread) {
    shares_[thread].next.store(static_cast<uint32_t>(thread * count / shares), std::memory_order_relaxed);
    shares_[thread].end = static_cast<uint32_t>((thread + 1) * count / shares);
  }
  start_.arrive_and_wait();
  Drain(0);
  done_.arrive_and_wait();
}

}  // namespace heddle::engine
