// Plain structs to stored records (payload.proto) and back. Private to frontend/trace.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"

namespace google::protobuf {
class MessageLite;
}

namespace heddle::trace {

// Deterministic: equal values give equal bytes.
std::string Serialize(const google::protobuf::MessageLite& message);

// Serialised like that.
std::string EncodePayload(const Expr& expr);
std::string EncodePayload(const Device& device);      // attributes
std::string EncodePayload(const Function& function);  // all but name and module
std::string EncodePayload(const Buffer& buffer);      // type, shape, alignment
std::string EncodePayload(const Content& content);    // all but buffer, launch, rule's kind and bytes
std::string EncodePayload(const TensorMap& map);      // all but launch, offset in the parameters and buffer
std::string EncodePayload(const Launch& launch);      // all but name, function, stream and measured times

// Fill the fields that the payload holds. false: the bytes are no such record.
bool DecodePayload(std::span<const std::byte> bytes, Expr* expr);
bool DecodePayload(std::span<const std::byte> bytes, Device* device);
bool DecodePayload(std::span<const std::byte> bytes, Function* function);
bool DecodePayload(std::span<const std::byte> bytes, Buffer* buffer);
bool DecodePayload(std::span<const std::byte> bytes, Content* content);
bool DecodePayload(std::span<const std::byte> bytes, TensorMap* map);
bool DecodePayload(std::span<const std::byte> bytes, Launch* launch);

}  // namespace heddle::trace
