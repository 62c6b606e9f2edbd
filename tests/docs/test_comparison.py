"""The comparison point by point: every cell has its evidence, and the versions are those that are measured."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "project" / "comparison.md").read_text(encoding="utf-8")
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
SOURCES: Final = {
    "kopf": ("https://kopf.readthedocs.io/en/stable", "https://github.com/nolar/kopf"),
    "controller-runtime": (
        "https://pkg.go.dev/sigs.k8s.io/controller-runtime@v0.24.",
        "https://github.com/kubernetes-sigs/controller-runtime",
        "https://book.kubebuilder.io/",
        "https://sdk.operatorframework.io/",
        "#what-each-does-not-do",
    ),
    "Java Operator SDK": (
        "https://javaoperatorsdk.io/docs/",
        "https://github.com/operator-framework/java-operator-sdk",
        "https://github.com/operator-framework/java-operator-plugins",
    ),
    "cdk8s": ("https://cdk8s.io",),
}
WITHOUT: Final = {
    "Go types",
    "Java types",
    "a JVM process, not measured here",
    "not found",
    "not its task",
    "your code",
}
"""Cells that need no link: there is nothing to link to."""


def table() -> list[list[str]]:
    text = PAGE[PAGE.index("\n## Point by point\n") :].partition("\n| ")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in f"| {text}".splitlines()]


HEAD, _, *ROWS = table()


def test_the_table_has_the_points_that_authors_ask_for() -> None:
    assert 25 <= len(ROWS) <= 40
    assert {len(row) for row in ROWS} == {len(HEAD)}
    assert len({row[0] for row in ROWS}) == len(ROWS)


def test_every_cell_of_ours_leads_to_a_page_or_a_test() -> None:
    for point, ours, *_ in ROWS:
        links = LINK.findall(ours)
        assert links, point
        for link in links:
            assert (ROOT / "docs" / "project" / link.partition("#")[0]).is_file(), (point, link)


def test_every_cell_of_another_project_leads_to_its_documentation() -> None:
    without = []
    for point, _, *cells in ROWS:
        for (project, sources), cell in zip(SOURCES.items(), cells, strict=True):
            links = LINK.findall(cell)
            assert all(link.startswith(sources) for link in links), (point, project, links)
            if not links and cell not in WITHOUT and not cell.startswith("your code;"):
                without.append((point, project, cell))

    assert without == []


def test_it_says_where_each_other_project_does_more() -> None:
    for column, project in enumerate(SOURCES, start=2):
        assert any("better: " in row[column] for row in ROWS), project


def test_the_versions_are_those_that_are_measured() -> None:
    locked = re.search(r"^kopf==(\d+\.\d+)", (ROOT / "requirements" / "test.lock").read_text("utf-8"), re.MULTILINE)
    module = (ROOT / "examples" / "comparison" / "controller_runtime" / "go.mod").read_text("utf-8")
    required = re.search(r"sigs\.k8s\.io/controller-runtime v(\d+\.\d+)", module)

    assert locked
    assert required
    assert HEAD[2:4] == [f"kopf {locked[1]}", f"controller-runtime {required[1]}"]
