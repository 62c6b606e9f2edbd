"""The commands of docs/operators/explain.md with an operator print the output shown, space by space.

tests/docs/test_tutorial.py runs them as a reader does, and does not compare indentation.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result

from ocf.cli import diff as command
from ocf.cli.operator_loader import load_components
from ocf.component import reconciling
from ocf.objects import ObjectKey
from ocf_server import EmbeddedCluster
from tests.cli.owner_files import owners_of

WHOLE: Final = (Path(__file__).parents[2] / "docs" / "operators" / "explain.md").read_text(encoding="utf-8")
# The commands before it need no operator; tests/cli/explain/test_owner.py has them.
PAGE: Final = WHOLE[WHOLE.index("## An operator's code") :]
COMMAND: Final = re.compile(r"^```console\n\$ (ocf (?:[^\n]*\\\n)*[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UID: Final = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def block(language: str) -> str:
    """Return the first block of a language on the page."""
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(autouse=True)
def _files(operator_directory: None) -> None:
    del operator_directory
    Path("shop_operator.py").write_text(block("python"), encoding="utf-8")
    Path("owner.yaml").write_text(block("yaml"), encoding="utf-8")


@pytest.fixture
async def cluster(monkeypatch: pytest.MonkeyPatch) -> EmbeddedCluster:
    """A cluster with the owner of the page, and its components in their applied state."""
    found = EmbeddedCluster(namespaces=["shop"])
    [loaded] = load_components("shop_operator")
    for definition in loaded.definitions:
        await found.create(definition, field_manager="user")
    [owner] = owners_of("owner.yaml")
    await found.create(owner, field_manager="user")
    live = await found.get(ObjectKey.of(owner))
    async with reconciling(live, found, operator="shops") as context:
        for component in await loaded.components(live):
            await component.reconcile(context)

    async def connect(*_: Any) -> Any:
        return Opened(found)

    monkeypatch.setattr(command, "connect", connect)
    return found


class Opened:
    """A cluster that is opened and closed like a connection."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster

    async def __aenter__(self) -> EmbeddedCluster:
        return self.cluster

    async def __aexit__(self, *_: object) -> None:
        """Nothing to close."""


def test_the_page_has_commands() -> None:
    assert len(COMMAND.findall(PAGE)) == PAGE.count("```console")


@pytest.mark.parametrize(("line", "expected"), COMMAND.findall(PAGE))
@pytest.mark.usefixtures("cluster")
def test_a_command_prints_the_output_shown(line: str, expected: str, ocf: Callable[..., Result]) -> None:
    answer = ocf(*line.replace("\\\n", " ").split()[1:])
    assert answer.stderr == ""
    assert UID.sub("...", answer.stdout) == expected
