"""Messages for malformed requests are those of the real API server, and contain nothing of Python."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocf.objects.go_strings import go_quoted
from tests.ocf_server.http.conftest import Client, Either

_VALUE = "looking for beginning of value"
_KEY = "looking for beginning of object key string"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param('{"a":}', f"invalid character '}}' {_VALUE}", id="no value"),
        pytest.param("[1,]", f"invalid character ']' {_VALUE}", id="no item"),
        pytest.param('{"a":NaN}', f"invalid character 'N' {_VALUE}", id="not a number"),
        pytest.param('{"a":1}{"b":2}', "invalid character '{' after top-level value", id="two values"),
        pytest.param('{"a" 1}', "invalid character '1' after object key", id="no colon"),
        pytest.param('{"a":1 "b":2}', "invalid character '\"' after object key:value pair", id="no comma"),
        pytest.param('{"a":["]{", 1 2]}', "invalid character '2' after array element", id="no comma in an array"),
        pytest.param('{"a":[1], "b":[{}] 2}', "invalid character '2' after object key:value pair", id="after arrays"),
        pytest.param("{a:1}", f"invalid character 'a' {_KEY}", id="no quotes"),
        pytest.param('{"a":1,}', f"invalid character '}}' {_KEY}", id="trailing comma"),
        pytest.param('{"a":"x\ny"}', "invalid character '\\n' in string literal", id="line break"),
        pytest.param(r'{"a":"\q"}', "invalid character 'q' in string escape code", id="escape"),
        pytest.param(r'{"a":"\uzzzz"}', "invalid character 'z' in \\u hexadecimal character escape", id="code point"),
        pytest.param('{"a":"x', "unexpected end of JSON input", id="open string"),
        pytest.param('{"a":', "unexpected end of JSON input", id="open object"),
        pytest.param("[[1],]", f"invalid character ']' {_VALUE}", id="trailing comma in an array"),
        pytest.param("[,1]", f"invalid character ',' {_VALUE}", id="leading comma in an array"),
        pytest.param('{,"a":1}', f"invalid character ',' {_KEY}", id="leading comma"),
        pytest.param('{"a":1,,"b":2}', f"invalid character ',' {_KEY}", id="two commas"),
        pytest.param('{"a":trux}', "invalid character 'x' in literal true (expecting 'e')", id="almost true"),
        pytest.param('{"a":nul}', "invalid character '}' in literal null (expecting 'l')", id="almost null"),
        pytest.param('{"a":fals', "invalid character ' ' in literal false (expecting 'e')", id="open literal"),
        pytest.param('{"a":-', "invalid character ' ' in numeric literal", id="open number"),
        pytest.param('{"a":1e', "invalid character ' ' in exponent of numeric literal", id="open exponent"),
        pytest.param('{"a":1', "unexpected end of JSON input", id="open object after a number"),
        pytest.param('{"a":"\\', "invalid character ' ' in string escape code", id="open escape"),
        pytest.param(r'{"a":"\u00', r"invalid character ' ' in \u hexadecimal character escape", id="open code point"),
        pytest.param('{"a":-}', "invalid character '}' in numeric literal", id="minus alone"),
        pytest.param('{"a":-Infinity}', "invalid character 'I' in numeric literal", id="minus infinity"),
        pytest.param('{"a":01}', "invalid character '1' after object key:value pair", id="leading zero"),
        pytest.param('{"a":1.}', "invalid character '}' after decimal point in numeric literal", id="no decimals"),
        pytest.param('{"a":1e+}', "invalid character '}' in exponent of numeric literal", id="no exponent"),
        pytest.param("{'a':1}", f"invalid character '\\'' {_KEY}", id="single quotes"),
        pytest.param('{"a":"\tb"}', "invalid character '\\t' in string literal", id="tab in a string"),
        pytest.param('{"a":é}', f"invalid character 'Ã' {_VALUE}", id="first byte of a character"),
        pytest.param('\ufeff{"a":1}', f"invalid character 'ï' {_VALUE}", id="byte order mark"),
        pytest.param("\xa0{}", f"invalid character 'Â' {_VALUE}", id="a space that JSON does not know"),
        pytest.param("{}]", "invalid character ']' after top-level value", id="closed twice"),
        pytest.param("  ", "unexpected end of JSON input", id="spaces only"),
    ],
)
async def test_malformed_json_is_reported_as_by_go(body: str, problem: str, either: Either) -> None:
    created = await either.ask("POST", f"{either.path}/configmaps", body)
    assert created.status == 400
    assert created.json["message"].partition("json parse error: ")[2].startswith(problem)
    await either.ask("POST", f"{either.path}/configmaps", {"metadata": {"name": "a"}})
    patched = await either.ask("PATCH", f"{either.path}/configmaps/a", body, kind="application/merge-patch+json")
    assert (patched.status, patched.json["message"]) == (400, f"error decoding patch: {problem}")


@pytest.mark.parametrize("field", ["apiVersion", "kind"])
@pytest.mark.parametrize(
    ("value", "shape"), [(True, "bool"), (1, "number"), (1.5, "number"), (["q"], "array"), ({"a": None}, "object")]
)
async def test_a_version_or_kind_that_is_not_a_text_is_rejected(
    field: str, value: Any, shape: str, either: Either
) -> None:
    body = {"metadata": {"name": "a"}, field: value}
    reply = await either.ask("POST", f"{either.path}/configmaps", body)
    problem = f"json: cannot unmarshal {shape} into Go struct field .{field} of type string"
    assert reply.status == 400
    assert f"json parse error: {problem} ({{" in reply.json["message"]


async def test_a_version_or_kind_that_is_null_is_that_of_the_path(either: Either) -> None:
    body = {"apiVersion": None, "kind": None, "metadata": {"name": "a"}}
    reply = await either.ask("POST", f"{either.path}/configmaps", body)
    assert (reply.status, reply.json["kind"], reply.json["apiVersion"]) == (201, "ConfigMap", "v1")


@pytest.mark.parametrize(
    ("kind", "status"),
    [("application/merge-patch+json", 400), ("application/strategic-merge-patch+json", 200)],
)
async def test_a_patch_that_is_null(kind: str, status: int, either: Either) -> None:
    await either.ask("POST", f"{either.path}/configmaps", {"metadata": {"name": "a"}})
    assert (await either.ask("PATCH", f"{either.path}/configmaps/a", "null", kind=kind)).status == status


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ({"kind": 1}, "cannot unmarshal number into Go struct field .kind of type string"),
        ({"apiVersion": True}, "cannot unmarshal bool into Go struct field .apiVersion of type string"),
        ({"apiVersion": ["a"]}, "cannot unmarshal array into Go struct field .apiVersion of type string"),
    ],
)
async def test_a_merge_patch_to_a_version_or_kind_that_is_not_a_text(patch: Any, problem: str, either: Either) -> None:
    await either.ask("POST", f"{either.path}/configmaps", {"metadata": {"name": "a"}})
    reply = await either.ask("PATCH", f"{either.path}/configmaps/a", patch, kind="application/merge-patch+json")
    assert (reply.status, reply.json["message"].endswith(problem)) == (422, True)


async def test_a_merge_patch_may_remove_the_kind(either: Either) -> None:
    await either.ask("POST", f"{either.path}/configmaps", {"metadata": {"name": "a"}})
    reply = await either.ask(
        "PATCH", f"{either.path}/configmaps/a", {"kind": None}, kind="application/merge-patch+json"
    )
    assert (reply.status, reply.json["kind"]) == (200, "ConfigMap")


@pytest.mark.parametrize(
    ("limit", "problem"),
    [
        ("9" * 26, f'"{"9" * 26}": value out of range'),
        ("1_0", '"1_0": invalid syntax'),
        ("\u0661", '"\u0661": invalid syntax'),
        ("1.5", '"1.5": invalid syntax'),
        ("%22", r'"\"": invalid syntax'),
    ],
)
async def test_a_number_in_a_query_is_read_as_by_go(limit: str, problem: str, either: Either) -> None:
    reply = await either.ask("GET", f"{either.path}/configmaps?limit={limit}")
    assert (reply.status, reply.json["message"]) == (400, f"strconv.ParseInt: parsing {problem}")


_PYTHON = re.compile(
    r"\bNone\b|\bTrue\b|\bFalse\b|\{'|\['|NoneType|object at 0x|<class|[a-z]Error\b|Expecting|Extra data"
)
_MEDIA = (
    ("POST", "", "application/json"),
    ("PUT", "/a", "application/json"),
    ("PATCH", "/a?fieldManager=test", "application/apply-patch+yaml"),
    ("PATCH", "/a", "application/merge-patch+json"),
    ("PATCH", "/a", "application/strategic-merge-patch+json"),
    ("PATCH", "/a", "application/json-patch+json"),
)
_SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.5, "", "x", "v1", "ConfigMap"])
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
_BODIES = _VALUES | st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": _VALUES,
        "kind": _VALUES,
        "metadata": _VALUES | st.fixed_dictionaries({}, optional={"name": _VALUES, "labels": _VALUES}),
        "data": _VALUES,
        "spec": _VALUES,
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=_BODIES, cut=st.integers(0, 3), media=st.sampled_from(_MEDIA), custom=st.booleans())
async def test_no_message_contains_python(
    body: Any, cut: int, media: tuple[str, str, str], custom: bool, ask: Client
) -> None:
    path = "/apis/example.com/v1/namespaces/shop/shops" if custom else "/api/v1/namespaces/shop/configmaps"
    await ask("POST", path, {"metadata": {"name": "a"}})
    method, name, kind = media
    text = json.dumps(body)
    reply = await ask(method, path + name, text[: len(text) - cut], kind=kind)
    if reply.status >= 400:
        assert reply.json["kind"] == "Status"
        assert not _PYTHON.search(json.dumps([reply.json["message"], reply.json.get("details")])), reply.text
        assert "the log of the server" not in reply.text


@pytest.mark.parametrize("name", ["a\nb", "a\r\nX: 1\x00", "\x1b[31m", 'a"b', "a\\b", "é", "\x7f"])
async def test_the_name_of_an_unknown_field_is_quoted_in_the_warning(name: str, either: Either) -> None:
    """A control character would end the header: the object was stored, and its sender got no answer."""
    created = await either.ask("POST", f"{either.path}/configmaps", {"metadata": {"name": "a"}, name: 1})
    assert created.status == 201
    assert created.headers["Warning"] == f"299 - {json.dumps('unknown field ' + go_quoted(name), ensure_ascii=False)}"
