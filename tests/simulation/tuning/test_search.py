"""The file of a search."""

from pathlib import Path

import pytest

from ocf.simulation import InputError
from ocf.simulation.tuning.search import read_search


def test_a_search_has_settings_objectives_and_requirements(tmp_path: Path) -> None:
    file = tmp_path / "search.yaml"
    file.write_text("""\
apiVersion: ocf.dev/v1
kind: Search
settings:
  spec.minReplicas: {from: 2, to: 8, step: 2}
  spec.behavior.scaleUp.selectPolicy: [Max, Min]
  controller.downscaleStabilization: {from: 60s, to: 120s, step: 60s}
objectives: [pod_hours]
require: [overload_time < 1%]
""")
    found = read_search(file)
    assert [(each.path, each.values, each.is_ordered) for each in found.parsed()] == [
        ("spec.minReplicas", (2, 4, 6, 8), True),
        ("spec.behavior.scaleUp.selectPolicy", ("Max", "Min"), False),
        ("controller.downscaleStabilization", ("60s", "120s"), True),
    ]
    assert (found.objectives, found.require) == (("pod_hours",), ("overload_time < 1%",))


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("settings: {}", ["s.yaml:1: settings: "], id="no setting"),
        pytest.param("objectives: [cost]", ["s.yaml:1: settings: required value"], id="no settings"),
        pytest.param(
            "settings:\n  a: [1]\nobjektives: []",
            ['s.yaml:3: objektives: unknown field, did you mean "objec'],
            id="unknown field",
        ),
        pytest.param(
            "settings:\n  a.b: 3", ["s.yaml:2: settings.a.b: must be a list of values, or a range"], id="scalar"
        ),
        pytest.param(
            "settings:\n  a.b: {to: 3}\n  b: {from: 1, to: 2, stop: 3}",
            ["s.yaml:2: settings.a.b: must be", "s.yaml:3: settings.b: must be"],
            id="ranges",
        ),
        pytest.param(
            "settings:\n  a: [1]\n  seed: [1]\n  b.c: {from: 3, to: 1}",
            ["s.yaml:3: settings.seed: cannot be searched", "s.yaml:4: settings.b.c: the range is empty"],
            id="all settings",
        ),
        pytest.param("settings: [", ["s.yaml:2: did not find"], id="not YAML"),
    ],
)
def test_all_problems_are_reported_with_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problems: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_search("s.yaml")
    found = caught.value.messages
    assert len(found) == len(problems)
    assert all(each.startswith(start) for each, start in zip(found, problems, strict=True)), found
