# SPDX-License-Identifier: Apache-2.0
"""Format of the source files: ./run format rewrites them, ./run test checks them first, because it takes seconds.

Four rules: the SPDX line at the top, no line wider than its language allows (clang-format cannot break a long string or
comment), the output of clang-format, whose settings are in .clang-format (C++) and in Logic/Core and Testing/C (C), and no
sentence in Logic that names an option of the command line.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("Logic", "Module", "Widgets", "Testing", "Resources")
FORMATTED = {".c", ".h", ".cxx"}
LICENSED = FORMATTED | {".py", ".sh", ".cmake"}
WIDTH_OF_C, WIDTH = 100, 128
CLANG_FORMAT = "19.1.7"


def sources():
    """All files that a person wrote in a programming language, relative to the top folder."""
    found = [ROOT / "run", ROOT / ".ci" / "run", ROOT / "CMakeLists.txt"]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in LICENSED or path.name == "CMakeLists.txt"]
    return sorted(path.relative_to(ROOT) for path in found if path.is_file())


def width(path):
    in_c = path.parts[:2] in (("Logic", "Core"), ("Testing", "C"))
    return WIDTH_OF_C if in_c else WIDTH


def options_in_sentences(lines):
    """(number, text) of string literals that name an option beside other words: "use --scale", but not the key "--batch".
    rcnError.h explains how a shell adds its own way out."""
    for number, line in enumerate(lines, 1):
        texts = [] if line.lstrip().startswith(("//", "/*", "*")) else re.findall(r'"((?:[^"\\]|\\.)*)"', line)
        yield from ((number, text) for text in texts if " " in text and re.search(r"(?:^|\s)(?:--[a-z]|-o\b)", text))


def clang_format(program, options, files):
    """The files that differ from what clang-format makes of them (none where it rewrites them)."""
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if CLANG_FORMAT not in version:  # versions differ in what they make of the same settings
        sys.exit(f"{program} is {version.strip()}, not {CLANG_FORMAT}.")
    done = subprocess.run([program, *options, *map(str, files)], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0 and "-Werror" not in options:
        sys.exit(done.stderr)
    return sorted({line.split(":")[0] for line in done.stderr.splitlines() if "clang-format-violations" in line})


def main(words):
    fix = "--fix" in words
    program = next((word for word in words if not word.startswith("-")), "clang-format")
    files = sources()
    formatted = [path for path in files if path.suffix in FORMATTED]
    problems = []
    if fix:
        clang_format(program, ["-i"], formatted)
    else:
        problems += [f"{name}: not formatted" for name in clang_format(program, ["--dry-run", "-Werror"], formatted)]
    for path in files:
        lines = (ROOT / path).read_text("utf-8").split("\n")
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
            problems.append(f"{path}: the first line is not 'SPDX-License-Identifier: Apache-2.0' in a comment")
        if path.suffix in FORMATTED:
            problems += [f"{path}:{number}: {len(line)} columns, at most {width(path)} are allowed"
                         for number, line in enumerate(lines, 1) if len(line) > width(path)]
        if path.parts[0] == "Logic" and path.suffix in FORMATTED:
            problems += [f'{path}:{number}: "{text}" names an option of the command line; give the Error a key instead'
                         for number, text in options_in_sentences(lines)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems and not fix:
        print("Run ./run format, then fix by hand what it reports.", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
