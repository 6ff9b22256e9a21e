// Text-format messages with the place of every field. Private to frontend/trace.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

#include "sim/base/result.h"

namespace heddle::trace {

// Where the fields of one parsed message stand in a file. Not owned.
class Locator {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;
  Locator(const std::string& file, const Tree* tree, const google::protobuf::Message& message)
      : file_(&file), tree_(tree), message_(&message) {}

  // "file:line:column" of a field (of its index-th element), of the message when the field is absent.
  std::string Place(std::string_view field, int index = 0) const;
  // Of a message field.
  Locator Sub(std::string_view field, int index, const google::protobuf::Message& message) const;
  const std::string& file() const { return *file_; }

 private:
  const std::string* file_;
  const Tree* tree_;
  const google::protobuf::Message* message_;
  std::string own_place_;
};

// The error names file:line:column of the first mistake, and a near field name where there is one. `tree` is
// filled.
Status ParseText(const std::string& text, const std::string& file, google::protobuf::Message* message,
                 Locator::Tree* tree);

// The path of the first enum field, at any depth, that holds a number without a name: proto3 lets such numbers pass, in
// text and in bytes. Empty when there is none.
std::string UnnamedEnum(const google::protobuf::Message& message);

}  // namespace heddle::trace
