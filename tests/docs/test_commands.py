"""Commands of `ocf` in the documentation name commands and options that exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.cli.app import app

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL: Final = re.compile(r"^ *```(?P<language>sh|console)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
NAMES: Final = {"ocf", "kubectl-ocf"}


def shell_lines(page: str) -> Iterator[str]:
    """Yield the commands of the blocks of a page, each on one line."""
    for block in SHELL.finditer(page):
        body = block["body"].replace("\\\n", " ")
        prompt = "$ " if block["language"] == "console" else ""
        yield from (line.strip().removeprefix("$ ") for line in body.splitlines() if line.strip().startswith(prompt))


def ocf_commands(line: str) -> Iterator[list[str]]:
    """Yield the arguments of each call of `ocf` in a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set("|&;()<>"):
            if words[:2] == ["kubectl", "ocf"]:
                del words[0]
            if words and words[0] in NAMES:
                yield words[1:]
            words = []
        else:
            words.append(word)


def problems(words: list[str]) -> Iterator[str]:
    """Yield what is wrong with the arguments of a call."""
    command: Any = app
    known = {option for each in command.params for option in each.opts} | {"--help", "-h"}
    for word in words:
        if hasattr(command, "get_command") and not word.startswith("-"):
            command = command.get_command(None, word)
            if command is None:
                yield f"no command {word}"
                return
            known |= {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        elif word.startswith("-") and not re.fullmatch(r"-|--|-\d.*", word) and word.partition("=")[0] not in known:
            yield f"no option {word}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_exist(page: Path) -> None:
    found = [
        f"ocf {shlex.join(words)}: {problem}"
        for line in shell_lines(page.read_text(encoding="utf-8"))
        for words in ocf_commands(line)
        for problem in problems(words)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("ocf validate --fail-on error web.yaml", [], id="right"),
        pytest.param("cat web.yaml | ocf validate --fail-off error -", ["no option --fail-off"], id="option"),
        pytest.param("kubectl ocf explane web  # why", ["no command explane"], id="command"),
        pytest.param("ocf tune a.yaml --spam=1 && ocf --version", ["no option --spam=1"], id="value in the same word"),
    ],
)
def test_problems_are_found(line: str, expected: list[str]) -> None:
    assert [problem for words in ocf_commands(line) for problem in problems(words)] == expected
