// A subcommand of `heddle`: data that help, completion and dispatch read. One file a subcommand; commands.cpp
// lists them.
//
// Data goes to stdout, words to stderr. Exit codes are ExitCode's.
#pragma once

#include <boost/program_options.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace heddle::tools {

namespace po = boost::program_options;

using Arguments = std::span<const std::string>;

struct Command {
  std::string_view name;
  std::string_view summary;
  // A leaf has options and run; a group has subcommands.
  po::options_description (*options)() = nullptr;
  std::string_view positional = "";  // "TRACE...", shown in the usage line; empty: none taken
  ExitCode (*run)(const po::variables_map& values, Arguments positional) = nullptr;
  std::vector<Command> subcommands = {};
};

// The tree of all commands, in the order of `heddle --help`.
const std::vector<Command>& Commands();

// Finds the command that `arguments` name, parses its options and runs it. Prints usage and errors.
ExitCode Dispatch(Arguments arguments);

// What Dispatch was given last, as it would be typed: for manifests.
const std::string& CommandLine();

// Prints "heddle: <error>" to stderr and returns its exit code.
ExitCode Report(const Error& error);

}  // namespace heddle::tools
