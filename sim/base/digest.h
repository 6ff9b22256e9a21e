// SHA-256 (OpenSSL's libcrypto), for content-addressed keys.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace heddle {

std::string Sha256Hex(std::span<const std::byte> bytes);  // 64 lower-case hexadecimal digits
std::string Sha256Hex(std::string_view text);

}  // namespace heddle
