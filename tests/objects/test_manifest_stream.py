"""A text is split as by kubectl; `tests/cli/validate/test_kubectl_verdicts.py` has the verdicts of kubectl itself."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.objects.manifest_stream import documents_in


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(b"a: 1\n---\n# empty\n---\nb: 2\n", [(1, {"a": 1}), (4, {"b": 2})], id="documents"),
        pytest.param(b'{"a": 1}\n{"b": 2}', [(1, {"a": 1}), (2, {"b": 2})], id="JSON Lines"),
        pytest.param(b"a: 1\n---\n\xef\xbb\xbfb: 2", [(1, {"a": 1}), (2, {"b": 2})], id="mark of a later document"),
        pytest.param(b"null\n---\n~\n---\na: 1", [(4, {"a": 1})], id="null is no document"),
        pytest.param(b"a: caf\xe9", [(1, {"a": "caf\ufffd"})], id="Latin-1"),
        pytest.param("a: \u00e9".encode("utf-16"), [(1, {"a": "\u00e9"})], id="UTF-16"),
        pytest.param(
            b"apiVersion: x/v1\nkind: AList\nitems: [{a: 1}, {kind: A}]",
            [(1, {"apiVersion": "x/v1", "kind": "A", "a": 1}), (1, {"kind": "A"})],
            id="items",
        ),
    ],
)
def test_objects_have_their_lines(data: bytes, found: list[tuple[int, Any]]) -> None:
    documents = list(documents_in("a.yaml", data))

    assert [(each.line, each.manifest) for each in documents] == found
    assert all(not each.problem for each in documents)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"# c\n%YAML 1.2\n---\na: 1", "line 2: kubectl cannot read a directive", id="directive"),
        pytest.param(b"a: 1\n--- {b: 2}", "line 2: kubectl accepts only a comment beside", id="beside a separator"),
        pytest.param(b"a: 1\n---\n- b", "a map with keys is expected, not a list", id="list"),
        pytest.param(b"kind: List\nitems: []", "apiVersion is missing", id="no version"),
        pytest.param(b"{apiVersion: v1, kind: List, items: [5]}", "items[0]: items of a List must be", id="item"),
        pytest.param(b"{apiVersion: v1, kind: List, items: [{kind: List}]}", "items[0]: kubectl does not", id="nested"),
        pytest.param(b"{apiVersion: v1, kind: List, items: [{}]}", "items[0]: is empty", id="empty"),
        pytest.param(b"{apiVersion: a/v1, kind: List, items: [{kind: A}]}", "'a/v1' is not a version", id="version"),
        pytest.param(b"{apiVersion: v1, kind: AList, items: [{kind: B}]}", "items[0]: a AList has only", id="mixed"),
    ],
)
def test_what_kubectl_does_not_read_has_a_problem(data: bytes, problem: str) -> None:
    found = [each.problem for each in documents_in("a.yaml", data) if each.manifest is None]

    assert len(found) == 1
    assert found[0].startswith(problem)
