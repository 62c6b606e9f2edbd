"""Decoding of annotations as Go's `encoding/json` does it; the corpus of recorded answers has most cases."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.autoscaling.api.go_json import amount, int32, items, loads, pointer, string, strings, struct

INNER: Final = struct(name=string, count=int32)
ALL: Final = struct(
    kind=string,
    limit=pointer(int32),
    size=amount,
    share=pointer(amount),
    labels=strings,
    list=items(INNER, dict),
    inner=pointer(INNER),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("null", None, id="null"),
        pytest.param('{"KIND": "a", "other": [1]}', {"kind": "a"}, id="case and unknown keys"),
        pytest.param('{"\u212aind": "a", "li\u017ft": []}', {"kind": "a", "list": []}, id="letters that fold to ASCII"),
        pytest.param('{"kind": null, "limit": null, "labels": null}', {}, id="nulls"),
        pytest.param('{"kind": "a", "Kind": null, "limit": 1, "LIMIT": null}', {"kind": "a"}, id="null after a value"),
        pytest.param('{"kind": "a", "kind": "b"}', {"kind": "b"}, id="twice"),
        pytest.param(
            '{"inner": {"name": "a"}, "INNER": {"count": 2}}', {"inner": {"name": "a", "count": 2}}, id="structs merge"
        ),
        pytest.param('{"labels": {"a": "b"}, "Labels": {"c": null}}', {"labels": {"a": "b", "c": ""}}, id="maps merge"),
        pytest.param('{"list": [null, {"name": "a"}]}', {"list": [{}, {"name": "a"}]}, id="null in a list"),
        pytest.param('{"size": null, "share": null}', {"size": "0"}, id="null quantities"),
        pytest.param('{"size": 1e3, "share": " 0.5 "}', {"size": "1e3", "share": "500m"}, id="quantities"),
        pytest.param('{"limit": -2147483648}', {"limit": -(2**31)}, id="smallest integer"),
        pytest.param('{"kind": "\\ud800x"}', {"kind": "\ufffdx"}, id="half of a surrogate pair"),
    ],
)
def test_a_text_is_decoded(text: str, expected: Any) -> None:
    assert loads(text, ALL) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"a"',
        "{} {}",
        "NaN",
        '{"kind": 5}',
        '{"limit": "5"}',
        '{"limit": 1.0}',
        '{"limit": 1e1}',
        '{"limit": 2147483648}',
        f'{{"limit": {"9" * 5000}}}',
        '{"limit": true}',
        '{"size": true}',
        '{"size": {}}',
        '{"size": "1 Gi"}',
        '{"labels": {"a": 5}}',
        '{"labels": []}',
        '{"list": {}}',
        '{"list": [5]}',
        '{"inner": []}',
        '{"other": NaN}',
        "[" * 100_000,
    ],
)
def test_a_wrong_value_makes_the_text_invalid(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the messages of the JSON parser differ)
        loads(text, ALL)
