// What the files of the player share.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "frontend/capture/inject/abi.h"

namespace heddle::capture::player {

using abi::Handle;

[[noreturn]] void Fail(const std::string& what);
void* Driver(const char* name);

template <typename... Args>
void Call(const char* name, Args... args) {
  static std::map<std::string, void*> known;
  static std::mutex* lock = new std::mutex;
  void* function = nullptr;
  {
    const std::lock_guard guard(*lock);
    void*& slot = known[name];
    if (slot == nullptr) slot = Driver(name);
    function = slot;
  }
  const uint32_t status = reinterpret_cast<uint32_t (*)(Args...)>(function)(args...);
  if (status != 0) Fail(std::string(name) + " gives " + std::to_string(status));
}

struct Script {
  std::map<std::string, Handle> handles;
  std::map<std::string, uint64_t> buffers;
  std::map<std::string, std::vector<char>> files;  // images stay where they were loaded from
  std::map<std::string, std::vector<char>> maps;
};
extern Script g;

Handle Small(const std::string& text);
std::vector<char> File(const std::string& path);
uint64_t Address(const std::string& text);  // NAME or NAME+N

struct Launch {
  Handle function;
  uint32_t grid[3], block[3], shared;
  Handle stream;
  std::vector<std::vector<char>> values;
};
Launch ReadLaunch(std::istringstream& in);
std::vector<void*> Pointers(Launch& launch);

// Each does one kind of line, and returns whether it knows the verb.
bool Memory(const std::string& verb, std::istringstream& in);
bool Nodes(const std::string& verb, std::istringstream& in);

}  // namespace heddle::capture::player
