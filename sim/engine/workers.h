// A fixed set of threads that process independent items, phase after phase.
//
// Each thread has a share of neighbouring items, the same from phase to phase, so that what an item works on stays in
// one core's caches; who is done takes from the others' shares.
// What an item computes must not depend on which thread runs it or when: then the result is the same on any
// number of threads. The order option exists to test exactly that.
#pragma once

#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace heddle::engine {

class Workers {
 public:
  // `threads` includes the calling one; 1 starts none. shuffle_seed 0: items in rising order, else in another
  // fixed order for each phase.
  explicit Workers(uint32_t threads, uint64_t shuffle_seed = 0);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Calls fn(i) once for every i in [0, count), and returns when all are done. Not reentrant.
  template <typename Fn>
  void ForEach(uint32_t count, Fn&& fn) {
    using Callable = std::remove_reference_t<Fn>;
    Run(
        count, [](void* context, uint32_t i) { (*static_cast<Callable*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
  }

  uint32_t threads() const { return static_cast<uint32_t>(threads_.size()) + 1; }

 private:
  using Call = void (*)(void* context, uint32_t item);

  void Run(uint32_t count, Call call, void* context);
  void Drain(uint32_t thread);
  void Shuffle(uint32_t count);

  Call call_ = nullptr;
  void* context_ = nullptr;
  struct alignas(64) Share {
    std::atomic<uint32_t> next{0};
    uint32_t end = 0;
  };
  std::vector<Share> shares_;  // by thread
  bool quit_ = false;
  uint64_t shuffle_state_;
  std::vector<uint32_t> order_;  // empty: rising
  std::barrier<> start_;
  std::barrier<> done_;
  std::vector<std::jthread> threads_;
};

}  // namespace heddle::engine
