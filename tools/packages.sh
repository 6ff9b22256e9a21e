# shellcheck shell=bash
# Debian and Ubuntu packages that heddle needs; sourced by tools/quickstart and tools/test.
#
# heddle_packages GROUP ID VERSION_ID prints the names, one a line. GROUP: build, test. ID and VERSION_ID as in
# /etc/os-release. Exit 1 for a system that is not known.

heddle_packages() {
  local group="$1" id="$2" version="$3"
  case "$id:$version" in
    debian:12|debian:13|ubuntu:24.04) ;;
    *) return 1 ;;
  esac
  case "$group" in
    build)
      printf '%s\n' g++ cmake ninja-build libboost-graph-dev libboost-program-options-dev libprotobuf-dev \
        protobuf-compiler libsqlite3-dev libzstd-dev nlohmann-json3-dev libfmt-dev liblzma-dev zlib1g-dev libssl-dev ;;
    test)
      printf '%s\n' ccache libgtest-dev libgmock-dev libbenchmark-dev python3-venv shellcheck slurm-wlm munge
      # Opens reports; on Ubuntu it is a snap, which the tests do without.
      case "$id" in debian) printf '%s\n' chromium ;; esac
      # The compiler for the second build and for libFuzzer: 14 on Debian 12, later ones elsewhere.
      case "$id:$version" in
        debian:12) printf '%s\n' clang-14 libclang-rt-14-dev ;;
        debian:13) printf '%s\n' clang-19 libclang-rt-19-dev ;;
        ubuntu:24.04) printf '%s\n' clang-18 libclang-rt-18-dev ;;
      esac ;;
    *) return 1 ;;
  esac
}

# heddle_install GROUP...: installs what is missing when root; otherwise prints the line to type and returns 1.
# HEDDLE_OS_RELEASE: another file than /etc/os-release, for tests.
heddle_install() {
  local id version group wanted=() missing=() package release="${HEDDLE_OS_RELEASE:-/etc/os-release}"
  # shellcheck source=/dev/null
  id=$(. "$release" && echo "$ID")
  # shellcheck source=/dev/null
  version=$(. "$release" && echo "${VERSION_ID:-}")
  for group in "$@"; do
    if ! heddle_packages "$group" "$id" "$version" >/dev/null; then
      echo "heddle: no package list for $id $version; install what docs/design.md names and build with CMake." >&2
      return 1
    fi
    while read -r package; do wanted+=("$package"); done < <(heddle_packages "$group" "$id" "$version")
  done
  for package in "${wanted[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "heddle needs packages that are not installed. Type this, then run the same command again:" >&2
    echo "  sudo apt-get install -y ${missing[*]}" >&2
    return 1
  fi
  echo "Installing: ${missing[*]}" >&2
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
}
