"""The kubectl output in the documentation page about serving is correct."""

import re
import shlex
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ocf_server import EmbeddedCluster

PAGE = Path(__file__).parents[3] / "docs" / "testing" / "serve.md"


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def steps() -> Iterator[tuple[list[str], str]]:
    """Yield the commands with their output."""
    for step in block("console").split("$ kubectl ")[1:]:
        command, _, printed = step.partition("\n")
        yield shlex.split(command), printed


def without_ages(text: str) -> str:
    return re.sub(r"\b\d+s$", "AGE", text, flags=re.MULTILINE)


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster()


async def test_the_commands_print_what_the_page_shows(kubectl: Callable[..., Awaitable[Any]], tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(block("yaml"))
    for command, printed in steps():
        done = await kubectl(*(str(tmp_path / word) if word == "web.yaml" else word for word in command))
        assert without_ages(done.out) == without_ages(printed), command
