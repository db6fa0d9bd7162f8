# SPDX-License-Identifier: Apache-2.0
"""The documentation: its links lead somewhere, and it knows the program's commands and options, all of them and no other."""
import functools
import pathlib
import re

import pytest

from rcn_testing import run

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "Resources" / "Docs").glob("*.md")])
REFERENCE = (ROOT / "Resources" / "Docs" / "command-line.md").read_text("utf-8")
COMMANDS = re.findall(r"^## ([a-z]+)$", REFERENCE, re.M)


def anchors(page):
    """Of all headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def section(name):
    return REFERENCE.split(f"\n## {name}\n")[1].split("\n## ")[0]


@functools.lru_cache(maxsize=None)
def help_of(command):
    """{option: its line of help}"""
    entries = re.findall(r"^  (--?[a-z][\w-]*)(.*(?:\n {4,}.*)*)", run(command, "--help").out, re.M)
    return {name: " ".join(text.split()) for name, text in entries}


def options_of(command):
    return set(help_of(command))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page):
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text("utf-8"))
    for target, anchor in links:
        if not target.startswith("http"):
            file = page.parent / target if target else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), (target, anchor)


def test_every_page_is_linked_from_the_readme():
    text = (ROOT / "README.md").read_text("utf-8")
    for page in PAGES:
        assert page.name == "README.md" or str(page.relative_to(ROOT)) in text, page.name


def test_every_command_is_described():
    assert set(COMMANDS) == set(re.findall(r"^  ([a-z]+) ", run("--help").out, re.M)) - {"help"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_described(command):
    """In the section of the command; train's options for study and evaluate's for recalibrate are not repeated."""
    elsewhere = {"study": ["train"], "recalibrate": ["evaluate"]}.get(command, [])
    text = "".join(section(name) for name in [command, *elsewhere, "Options that several commands have"])
    described = set(re.findall(r"`(--?[a-z][\w-]*)", text))
    options = options_of(command)
    assert len(options) > 3 and not options - described
    own = set(re.findall(r"^\| `(--?[a-z][\w-]*)", section(command), re.M))
    assert not own - options


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_those_of_help(command):
    """A default in a table is what help has in brackets, in the same words."""
    compared = 0
    for names, default in re.findall(r"^\| (`-.*?) \| .* \| (.+?) \|$", section(command), re.M):
        options = re.findall(r"`(--?[a-z][\w-]*)", names)
        defaults = default.replace("`", "").split("; ") if len(options) > 1 else [default.replace("`", "")]
        assert len(defaults) == len(options), names
        for option, one in zip(options, defaults):
            assert one in re.findall(r"\(([^()]*)\)", help_of(command)[option]), (option, one)
            compared += 1
    assert compared > 0 or command in ("recalibrate", "view", "demo")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_use_options_that_exist(page):
    blocks = "".join(re.findall(r"^```(?:sh)?\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)).replace("\\\n", " ")
    for command, rest in re.findall(r"^(?:srun --mpi=pmix |build/bin/)?rater-consensus ([a-z]+) (.*)$", blocks, re.M):
        used = set(re.findall(r"(?<=[\s\[])(--?[a-z][\w-]*)", rest.split("#")[0]))
        assert used <= options_of(command) | {"--help"}, (command, used)
