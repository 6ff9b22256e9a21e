#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "sim/base/suggest.h"
#include "tools/heddle/command.h"

namespace heddle::tools {
namespace {

// Options are never guessed from a prefix: with guessing, `--ar x` is swallowed by a longer option's name.
constexpr int kStyle = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;

std::string g_command_line;

// A word as a shell needs it to give it back.
std::string Quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

void PrintGroupHelp(const std::string& path, const std::vector<Command>& commands, std::FILE* out) {
  fmt::print(out, "usage: {} COMMAND [options]\n\n", path);
  for (const Command& command : commands) fmt::print(out, "  {:<12} {}\n", command.name, command.summary);
  fmt::print(out, "\n`{} COMMAND --help` says more.\n", path);
}

void PrintLeafHelp(const std::string& path, const Command& command, const po::options_description& options) {
  fmt::print("usage: {} [options]{}{}\n\n{}\n\n", path, command.positional.empty() ? "" : " ",
             command.positional, command.summary);
  std::fflush(stdout);
  std::cout << options << std::flush;
}

ExitCode UsageError(const std::string& path, const std::string& message) {
  fmt::print(stderr, "heddle: {}\n  `{} --help` lists what it takes.\n", message, path);
  return ExitCode::kUsage;
}

std::vector<std::string> LongNames(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

ExitCode RunLeaf(const std::string& path, const Command& command, Arguments arguments) {
  po::options_description options = command.options();
  options.add_options()("help,h", "print this help");
  po::options_description all;
  all.add(options).add_options()("heddle-positional", po::value<std::vector<std::string>>(), "");
  po::positional_options_description positional;
  if (!command.positional.empty()) positional.add("heddle-positional", -1);

  po::variables_map values;
  try {
    const std::vector<std::string> words(arguments.begin(), arguments.end());
    po::store(po::command_line_parser(words).options(all).positional(positional).style(kStyle).run(), values);
    if (values.count("help") != 0) {
      PrintLeafHelp(path, command, options);
      return ExitCode::kOk;
    }
    po::notify(values);
  } catch (const po::unknown_option& error) {
    return UsageError(path, error.what() + DidYouMean(error.get_option_name(), LongNames(options)));
  } catch (const po::error& error) {
    return UsageError(path, error.what());
  }
  std::vector<std::string> given;
  if (values.count("heddle-positional") != 0)
    given = values["heddle-positional"].as<std::vector<std::string>>();
  return command.run(values, given);
}

ExitCode DispatchIn(const std::string& path, const std::vector<Command>& commands, Arguments arguments) {
  if (arguments.empty()) {
    PrintGroupHelp(path, commands, stderr);
    return ExitCode::kUsage;
  }
  const std::string& word = arguments.front();
  if (word == "--help" || word == "-h" || word == "help") {
    PrintGroupHelp(path, commands, stdout);
    return ExitCode::kOk;
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.name == word) {
      const std::string inner = fmt::format("{} {}", path, word);
      return command.run == nullptr ? DispatchIn(inner, command.subcommands, arguments.subspan(1))
                                    : RunLeaf(inner, command, arguments.subspan(1));
    }
    names.emplace_back(command.name);
  }
  return UsageError(path, fmt::format("unknown command '{}'{}", word, DidYouMean(word, names)));
}

}  // namespace

ExitCode Report(const Error& error) {
  fmt::print(stderr, "heddle: {}\n", error.ToString());
  return error.code;
}

const std::string& CommandLine() { return g_command_line; }

ExitCode Dispatch(Arguments arguments) {
  g_command_line = "heddle";
  for (const std::string& word : arguments) g_command_line += ' ' + Quoted(word);
  return DispatchIn("heddle", Commands(), arguments);
}

}  // namespace heddle::tools
