"""Whatever an object contains: an explanation without a traceback, whose text acts on no terminal."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from xml.etree import ElementTree as ET

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ocf.cli.app import app
from ocf.objects import Manifest, ObjectKey
from ocf.ownership import OwnerSnapshot, explain_owner
from ocf.ownership.diagram import diagram_of, to_mermaid
from ocf.ownership.lines import explanation_json, explanation_lines
from ocf.ownership.picture import to_svg
from tests.ownership.owner_situations import JOBS_AND_NETWORKS, OPERATORS, VOLUMES
from tests.ownership.pod_situations import PODS, REFUSED
from tests.ownership.situations import SHOP
from tests.ownership.world import NOW, condition, event, shop

ALL: Final = [*PODS, *REFUSED, *VOLUMES, *JOBS_AND_NETWORKS, *OPERATORS]
HOSTILE: Final = "\x1b[2J\x1b]0;title\x07::error::no\n##[error]\u202e[bold]x[/bold]<script>\r\x00"
VALUES: Final = st.one_of(
    st.none(), st.booleans(), st.integers(), st.just(HOSTILE), st.just([]), st.just({}), st.just([None, 1, "x", {}])
)
_ACTS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]|^\s*::|##\[", re.MULTILINE)


def paths(value: Any, start: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of each value in a manifest."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, inner in items for path in ((*start, key), *paths(inner, (*start, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a value with another one at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


@given(st.data())
def test_any_value_at_any_place_gives_an_explanation(data: st.DataObject) -> None:
    situation = data.draw(st.sampled_from(ALL))
    objects = situation.objects
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(objects) - 1))
        path = data.draw(st.sampled_from(paths(objects[position])))
        if path[:1] == ("metadata",) and path[-1] in {"metadata", "name", "namespace"} and position == 0:
            continue
        if position == 0 and path in {("apiVersion",), ("kind",)}:
            continue
        try:
            changed = replaced(objects[position], path, data.draw(VALUES))
        except (KeyError, IndexError, TypeError):
            continue
        objects = [*objects[:position], changed, *objects[position + 1 :]]
    events = [one for one in objects if one.get("kind") == "Event"]
    snapshot = OwnerSnapshot(objects=objects, now=NOW, events=events)
    found = explain_owner(snapshot, ObjectKey("example.com/v1", "Shop", "corner", "town"))
    assert found.sentence.endswith(".")
    assert "\n" not in found.sentence
    json.dumps(explanation_json(found))
    diagram = diagram_of(found)
    assert ET.fromstring(to_svg(diagram)) is not None  # noqa: S314 (our own output)
    assert all(line.isprintable() for line in to_mermaid(diagram).splitlines())
    assert all("\n" not in line for _, line in explanation_lines(found, NOW + timedelta(days=1)))


def test_hostile_texts_act_on_no_terminal() -> None:
    hostile = shop(condition(HOSTILE, reason=HOSTILE, message=HOSTILE), condition("Ready", reason="x", message=HOSTILE))
    child: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**SHOP["metadata"], "name": HOSTILE, "uid": "2", "ownerReferences": [{"uid": "shop-corner"}]},
    }
    with TemporaryDirectory() as folder:
        file = Path(folder) / "town.json"
        file.write_text(
            json.dumps({"kind": "List", "apiVersion": "v1", "items": [hostile, child, event(hostile, "x", HOSTILE)]})
        )
        for output in ("text", "json"):
            answer = CliRunner().invoke(app, ["explain", "shop/corner", "-f", str(file), "--output", output])
            assert answer.exit_code == 0, answer.output
            assert not _ACTS.search(answer.output)
