// One value as it was written, put into a field of a message. Private to sim/config.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace heddle::config {

struct ScalarText {
  enum class Kind { kNumber, kWord, kString };
  Kind kind = Kind::kNumber;
  std::string text;  // a number with its sign and, from --set, its suffix; a string without its quotes
};

enum : int { kSingular = -1, kAppend = -2 };  // or the index of an element of a list

// Sets `field`, which is not a message. Returns an empty string, or what is wrong: "expects …, not …"; then
// nothing was set. Numbers may carry k M G T Ki Mi Gi Ti.
std::string SetScalar(const ScalarText& value, const google::protobuf::FieldDescriptor& field, int index,
                      google::protobuf::Message* message);

// The field as text format writes it; a list as "[1, 2]".
std::string ScalarToString(const google::protobuf::Message& message,
                           const google::protobuf::FieldDescriptor& field, int index);

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& message);

}  // namespace heddle::config
