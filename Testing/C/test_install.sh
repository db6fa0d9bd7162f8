#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the library to a temporary place and builds the documented example against it, once through
# pkg-config and once through the CMake package.
#   test_install.sh BUILD_DIRECTORY SOURCE_DIRECTORY C_COMPILER FLAGS GENERATOR
set -eu
build=$1 source=$2 cc=$3 flags=$4 generator=$5
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cmake --install "$build" --prefix "$place/prefix" >"$place/log" || { cat "$place/log"; exit 1; }
for name in rcn.h rcn_votes.h; do test -f "$place/prefix/include/rcn/$name"; done
program=$place/prefix/bin/rater-consensus
[ ! -x "$program" ] || "$program" --version >"$place/version"

# What a desktop needs of the viewer; its own tools look at it where they are installed.
share=$place/prefix/share entry=applications/rater-consensus-viewer.desktop types=mime/packages/rater-consensus.xml
if [ -x "$place/prefix/bin/rater-consensus-viewer" ]; then
  for name in $entry $types icons/hicolor/scalable/apps/rater-consensus-viewer.svg icons/hicolor/128x128/apps/rater-consensus-viewer.png; do
    test -s "$share/$name"
  done
  grep -q '^Exec=rater-consensus-viewer %F$' "$share/$entry"
  ! command -v desktop-file-validate >/dev/null || desktop-file-validate "$share/$entry"
  if command -v update-mime-database >/dev/null; then
    update-mime-database "$share/mime"
    grep -q '^60:application/x-rater-consensus+json:\*.rcn.json' "$share/mime/globs2"
  fi
fi

if command -v pkg-config >/dev/null; then
  pc=$(dirname "$(find "$place/prefix" -name rcn.pc)")
  words=$(PKG_CONFIG_PATH=$pc pkg-config --define-variable=prefix="$place/prefix" --cflags --libs rcn)
  # shellcheck disable=SC2086
  $cc $flags "$source/Resources/Docs/example.c" -o "$place/example" $words
  "$place/example" >"$place/pkg-config.txt"
fi

mkdir "$place/consumer"
cat >"$place/consumer/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.18)
project(consumer C)
find_package(RaterConsensus REQUIRED)
add_executable(example "$source/Resources/Docs/example.c")
target_link_libraries(example PRIVATE RaterConsensus::rcn)
TEXT
CFLAGS=$flags cmake -G "$generator" -S "$place/consumer" -B "$place/consumer/build" -DCMAKE_C_COMPILER="$cc" \
  -DCMAKE_PREFIX_PATH="$place/prefix" >"$place/log" || { cat "$place/log"; exit 1; }
cmake --build "$place/consumer/build" >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
"$place/consumer/build/example" >"$place/cmake.txt"
grep -q '^0.0' "$place/cmake.txt"
[ ! -f "$place/pkg-config.txt" ] || cmp "$place/cmake.txt" "$place/pkg-config.txt"
cat "$place/cmake.txt"
