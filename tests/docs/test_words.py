"""Tables and names in the documentation say what the code says."""

import re
from pathlib import Path
from typing import Final

import pytest

from ocf import editors
from ocf.component import Reason

ROOT: Final = Path(__file__).parents[2]
ROW: Final = re.compile(r"^\| (.+) \|$", re.MULTILINE)
COMMAND: Final = re.compile(r"\bmake ([a-z-]+)")


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table of a page whose first column has this heading."""
    text = (ROOT / page).read_text(encoding="utf-8")
    table = text[text.index(f"\n| {heading} |") :].strip().split("\n\n")[0]
    return [[cell.strip(" `") for cell in row.split("|")] for row in ROW.findall(table)[2:]]


def methods(editor: type) -> set[str]:
    return {name for name in dir(editor) if callable(getattr(editor, name)) and not name.startswith("_")}


def test_the_table_of_reasons_is_the_code() -> None:
    found = [(word, int(priority)) for word, priority, *_ in rows("docs/operators/components.md", "reason")]

    assert found == [(str(reason), reason.priority) for reason in Reason]


def test_every_method_of_an_editor_is_in_the_table() -> None:
    listed = {name: set(re.findall(r"\w+", cell)) for name, cell in rows("docs/operators/mutations.md", "editor")}
    listed["HPASpecEditor"] = {row[0].partition("(")[0] for row in rows("docs/reference/hpa.md", "method")} - {"raw"}

    assert listed == {
        name: methods(getattr(editors, name))
        for name in editors.__all__
        if name.endswith("Editor") and name != "Editor"
    }


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_command_is_a_target(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(COMMAND.findall(re.sub(r"^[^`]*$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)))

    assert named <= targets


def test_the_readme_has_two_commands() -> None:
    """A newcomer gets two, which work on a fresh machine; the rest is for contributors."""
    block = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    assert [COMMAND.findall(each) for each in block] == [["demo", "test"]]


# Names with underscores count, values in quotes do not: recorded requests contain the kind "Nobody".
_VAGUE: Final = re.compile(r"(?<![a-z\"])(nobody|somebody|tells|asleep)(?![a-z])", re.IGNORECASE)
_GO_NAMES: Final = re.compile(
    r"\bnil\b|\b(BlockOn|IgnoreIf|Gated|Delete|Orphan|Include|With|Extract|Depends)(By|When|On|Absence|Absent|Into)\b"
)
# They show what programs in Go print.
_OF_GO: Final = re.compile(r"queue\(nil\)|<nil>")


@pytest.mark.parametrize("folder", ["ocf", "ocf_server", "docs", "examples", "tests"])
def test_the_actor_is_named(folder: str) -> None:
    found = [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md"} and path != Path(__file__)]

    assert [str(path) for path in found if _VAGUE.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("folder", ["component", "feature", "primitives"])
def test_options_are_named_as_python_spells_them(folder: str) -> None:
    """The framework of the same name in Go has the same options; a user of this one searches for `block_on_absence`."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "ocf" / folder).rglob("*.py")}

    assert [
        (str(path), line)
        for path, text in texts.items()
        for line in text.splitlines()
        if '"' in line and "import" not in line and _GO_NAMES.search(_OF_GO.sub("", line)) and "DependsOn" not in line
    ] == []
