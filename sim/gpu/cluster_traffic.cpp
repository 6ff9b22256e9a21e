#include "sim/gpu/cluster_traffic.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "sim/base/check.h"
#include "sim/isa/warp_stream.h"

namespace heddle::gpu {

using sm::ClusterMessage;

ClusterTraffic::ClusterTraffic(const config::Gpu& gpu)
    : network_(gpu), barrier_latency_(gpu.cluster_network->barrier_latency_cycles) {}

sm::Cluster* ClusterTraffic::Join(uint32_t rank, uint32_t size) {
  if (rank == 0) clusters_.emplace_back().size = size;
  return &clusters_.back();
}

void ClusterTraffic::Deliver(const ClusterMessage& message) {
  HEDDLE_CHECK(message.arrival >= end_, "gpu.clusters", message.arrival,
               "a message arrives in the window that it left in");
  (*sms_)[message.to_sm].Deliver(message);
  (*touched_)(message.to_sm, message.arrival);
}

void ClusterTraffic::Release(sm::Cluster* cluster) {
  if (cluster->arrived == 0 || (cluster->arrived | cluster->ended) != (1u << cluster->size) - 1) return;
  cluster->arrived = 0;
  ClusterMessage release;
  release.kind = ClusterMessage::Kind::kRelease;
  release.cluster = cluster;
  release.arrival = std::max(cluster->last_arrival + barrier_latency_, end_);
  for (uint32_t rank = 0; rank < cluster->size; ++rank) {
    release.rank = static_cast<uint8_t>(rank);
    release.to_sm = cluster->members[rank].sm;
    Deliver(release);
  }
}

void ClusterTraffic::Arrive(const ClusterMessage& message, bool ended) {
  sm::Cluster* cluster = message.cluster;
  (ended ? cluster->ended : cluster->arrived) |= 1u << message.rank;
  cluster->last_arrival = std::max(cluster->last_arrival, message.cycle);
  Release(cluster);
}

void ClusterTraffic::Carry(std::vector<sm::Sm>* sms, MemorySystem* memory, Cycle end,
                           const std::function<void(uint32_t sm, Cycle at)>& touched) {
  sms_ = sms;
  end_ = end;
  touched_ = &touched;
  memory->TakeMulticasts([&](memory::BulkContext& context) {
    ClusterMessage message;
    message.kind = ClusterMessage::Kind::kBulk;
    message.cluster = (*sms)[context.owner_sm].ClusterOf(context.owner_work);
    message.from_sm = context.owner_sm;
    message.cause = (*sms)[context.owner_sm].InstructionOf(context.owner_work);
    message.bulk = context.operation;
    message.bytes = static_cast<uint32_t>(context.operation->total_shared_bytes);
    for (uint32_t left = context.destinations; left != 0; left &= left - 1) {
      message.rank = static_cast<uint8_t>(std::countr_zero(left));
      message.to_sm = context.sm[message.rank];
      message.arrival = context.arrival[message.rank];
      Deliver(message);
    }
  });
  order_.clear();
  for (sm::Sm& sm : *sms) {
    for (ClusterMessage& message : sm.cluster_outbox())
      if (message.cycle < end) order_.push_back(&message);
  }
  if (order_.empty()) return;
  std::stable_sort(order_.begin(), order_.end(), [](const ClusterMessage* a, const ClusterMessage* b) {
    return std::tie(a->cycle, a->from_sm) < std::tie(b->cycle, b->from_sm);
  });
  for (ClusterMessage* message : order_) {
    switch (message->kind) {
      case ClusterMessage::Kind::kArrive:
      case ClusterMessage::Kind::kEnded:
        message->arrival = message->cycle;
        Arrive(*message, message->kind == ClusterMessage::Kind::kEnded);
        break;
      default:
        message->arrival = network_.Pass(message->from_sm, message->to_sm, message->cycle, message->bytes);
        Deliver(*message);
    }
  }
}

}  // namespace heddle::gpu
