// `heddle completion bash|zsh|fish`: a completion script, generated from the same tables as --help.
#include <fmt/format.h>

#include "tools/heddle/commands.h"

namespace heddle::tools {
namespace {

// Every command path ("db show") with the words that may follow it.
struct Node {
  std::string path;
  std::vector<std::string> words;
};

void Collect(const std::string& path, const std::vector<Command>& commands, std::vector<Node>* nodes) {
  Node node{path, {}};
  for (const Command& command : commands) node.words.emplace_back(command.name);
  nodes->push_back(node);
  for (const Command& command : commands) {
    const std::string inner =
        path.empty() ? std::string(command.name) : fmt::format("{} {}", path, command.name);
    if (command.run == nullptr) {
      Collect(inner, command.subcommands, nodes);
      continue;
    }
    Node leaf{inner, {"--help"}};
    const po::options_description options = command.options();
    for (const auto& option : options.options()) leaf.words.push_back("--" + option->long_name());
    nodes->push_back(leaf);
  }
}

// The shells share one idea: the longest command path that the line starts with decides which words are
// offered.
std::string PosixCases(const std::vector<Node>& nodes) {
  std::string cases;
  for (const Node& node : nodes)
    cases += fmt::format("    '{}') echo '{}' ;;\n", node.path, fmt::join(node.words, " "));
  return cases;
}

void PrintBash(const std::vector<Node>& nodes) {
  fmt::print(R"sh(# bash completion for heddle: source this file
_heddle_words() {{
  case "$1" in
{}    *) return 1 ;;
  esac
}}
_heddle() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" path="" word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    _heddle_words "${{path:+$path }}$word" >/dev/null && path="${{path:+$path }}$word" || break
  done
  COMPREPLY=($(compgen -W "$(_heddle_words "$path")" -- "$cur"))
  [[ ${{#COMPREPLY[@]}} -gt 0 || "$cur" == -* ]] || COMPREPLY=($(compgen -f -- "$cur"))
}}
complete -F _heddle heddle
)sh",
             PosixCases(nodes));
}

void PrintZsh(const std::vector<Node>& nodes) {
  fmt::print(R"sh(#compdef heddle
_heddle_words() {{
  case "$1" in
{}    *) return 1 ;;
  esac
}}
_heddle() {{
  local heddle_path="" word
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    _heddle_words "${{heddle_path:+$heddle_path }}$word" >/dev/null && heddle_path="${{heddle_path:+$heddle_path }}$word" || break
  done
  compadd -- ${{=$(_heddle_words "$heddle_path")}}
  _files
}}
compdef _heddle heddle
)sh",
             PosixCases(nodes));
}

void PrintFish(const std::vector<Node>& nodes) {
  fmt::print("# fish completion for heddle\n");
  for (const Node& node : nodes) {
    const std::string condition =
        node.path.empty() ? "__fish_use_subcommand"
                          : fmt::format("string match -q 'heddle {} *' (commandline -cp)", node.path);
    for (const std::string& word : node.words) {
      if (word.starts_with("--"))
        fmt::print("complete -c heddle -n \"{}\" -l {}\n", condition, word.substr(2));
      else
        fmt::print("complete -c heddle -f -n \"{}\" -a {}\n", condition, word);
    }
  }
}

ExitCode Run(const po::variables_map&, Arguments positional) {
  std::vector<Node> nodes;
  Collect("", Commands(), &nodes);
  const std::string shell = positional.size() == 1 ? positional[0] : "";
  if (shell == "bash") {
    PrintBash(nodes);
  } else if (shell == "zsh") {
    PrintZsh(nodes);
  } else if (shell == "fish") {
    PrintFish(nodes);
  } else {
    return Report({ExitCode::kUsage, "heddle completion", "name one shell", "bash, zsh or fish"});
  }
  return ExitCode::kOk;
}

}  // namespace

Command CompletionCommand() {
  return {"completion", "Print a completion script for bash, zsh or fish",
          [] { return po::options_description("options"); }, "bash|zsh|fish", Run};
}

}  // namespace heddle::tools
