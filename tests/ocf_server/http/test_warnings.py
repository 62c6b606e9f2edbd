"""Warnings of responses: how many are sent, and how much of each, on the embedded server and on a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.ocf_server.http.conftest import Either


def warned(number: int, length: int) -> str:
    """Return a field that makes a warning of a length."""
    start = f"{number:03}"
    return start + "x" * (length - len(f'unknown field "{start}"'))


def lengths_of(warnings: tuple[str, ...]) -> list[int]:
    """Return the lengths of the texts of warnings."""
    return [len(each.removeprefix('299 - "').removesuffix('"').replace("\\", "")) for each in warnings]


@pytest.mark.parametrize(
    ("lengths", "sent"),
    [
        pytest.param([4096], [4096], id="one of all characters"),
        pytest.param([4097], [256], id="one character more"),
        pytest.param([3000, 1096], [3000, 1096], id="all characters in two"),
        pytest.param([3000, 1097], [256, 256], id="one character more in two"),
        pytest.param([64] * 64, [64] * 64, id="all characters in many"),
        pytest.param([64] * 66, [64] * 65, id="the one that exceeds the limit is sent, and no other"),
        pytest.param([256] * 20, [256] * 17, id="the limit after a cut"),
        pytest.param([100, 4000, 50, 300, 100], [100, 256, 50, 256, 100], id="short ones stay whole"),
        pytest.param([257] * 100, [256] * 16, id="a hundred"),
    ],
)
async def test_long_warnings_are_cut(either: Either, lengths: list[int], sent: list[int]) -> None:
    body: dict[str, Any] = {warned(number, length): 1 for number, length in enumerate(lengths)}
    reply = await either.ask("POST", f"{either.path}/configmaps", {"metadata": {"name": "a"}, **body})
    assert (reply.status, lengths_of(reply.warnings)) == (201, sent)


@pytest.mark.parametrize(
    ("fields", "warnings"),
    [
        pytest.param('"a": 1, "a": 2, "a": 3', ['unknown field "a"'], id="an unknown field twice"),
        pytest.param('"a": {"b": 1, "b": 2}', ['unknown field "a"'], id="a field twice in an unknown one"),
        pytest.param('"a": [{"b": 1, "b": 2}]', ['unknown field "a"'], id="a field twice in an unknown list"),
        pytest.param('"data": {"a": "1", "a": "2"}', ['duplicate field "data.a"'], id="a known field twice"),
        pytest.param(
            ", ".join(f'"u{number}": 1' for number in range(110)),
            [f'unknown field "u{number}"' for number in range(100)],
            id="a hundred of them",
        ),
    ],
)
async def test_unknown_and_duplicate_fields_are_reported(either: Either, fields: str, warnings: list[str]) -> None:
    body = f'{{"metadata": {{"name": "a"}}, {fields}}}'
    reply = await either.ask("POST", f"{either.path}/configmaps?dryRun=All", body)
    quoted = [warning.replace('"', '\\"') for warning in warnings]
    assert (reply.status, list(reply.warnings)) == (201, [f'299 - "{text}"' for text in quoted])

    reply = await either.ask("POST", f"{either.path}/configmaps?dryRun=All&fieldValidation=Strict", body)
    assert reply.json["message"].endswith(f"strict decoding error: {', '.join(warnings)}")


@pytest.mark.parametrize("query", ["", "?watch=true&timeoutSeconds=1", "/none"])
async def test_every_request_for_a_deprecated_kind_is_warned_of(either: Either, query: str) -> None:
    reply = await either.ask("GET", f"{either.path}/endpoints{query}")
    warning = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    assert list(reply.warnings) == [f'299 - "{warning}"']
