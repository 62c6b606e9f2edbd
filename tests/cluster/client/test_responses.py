"""Answers are parsed into manifests, pages, events, and errors by class."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster.client.responses import UnknownPathError, answer_error, read_event, read_list, read_object
from ocf.cluster.protocol import EventType
from ocf.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    StatusCause,
    TooManyRequestsError,
)

ASKED = "GET /api/v1/configmaps"


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner) | st.dictionaries(st.text(), inner)


def _status(code: int, message: str, reason: str = "", details: Any = None) -> dict[str, Any]:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
    }
    return status | ({"reason": reason} if reason else {}) | ({} if details is None else {"details": details})


@pytest.mark.parametrize(
    ("status", "error", "causes"),
    [
        pytest.param(
            _status(400, "invalid continue token: illegal base64 data at input byte 0", "BadRequest"),
            BadRequestError,
            (),
            id="invalid continue token",
        ),
        pytest.param(_status(401, "Unauthorized", "Unauthorized"), ForbiddenError, (), id="token not known"),
        pytest.param(
            _status(403, 'configmaps is forbidden: User "bob" cannot list', "Forbidden", {"kind": "configmaps"}),
            ForbiddenError,
            (),
            id="forbidden",
        ),
        pytest.param(
            _status(404, 'configmaps "none" not found', "NotFound", {"name": "none", "kind": "configmaps"}),
            NotFoundError,
            (),
            id="no such object",
        ),
        pytest.param(
            _status(405, "the server does not allow this method on the requested resource", "MethodNotAllowed", {}),
            BadRequestError,
            (),
            id="method not allowed",
        ),
        pytest.param(
            _status(409, 'configmaps "a" already exists', "AlreadyExists", {"name": "a", "kind": "configmaps"}),
            AlreadyExistsError,
            (),
            id="name taken",
        ),
        pytest.param(
            _status(409, 'Operation cannot be fulfilled on configmaps "a"', "Conflict", {"name": "a"}),
            ConflictError,
            (),
            id="stale resource version",
        ),
        pytest.param(
            _status(
                409,
                'Apply failed with 1 conflict: conflict with "ocf": .spec.replicas',
                "Conflict",
                {
                    "causes": [
                        {"reason": "FieldManagerConflict", "message": 'conflict with "ocf"', "field": ".spec.replicas"}
                    ]
                },
            ),
            ConflictError,
            (StatusCause("FieldManagerConflict", 'conflict with "ocf"', ".spec.replicas"),),
            id="fields of another manager",
        ),
        pytest.param(
            _status(410, "The provided continue parameter is too old", "Expired"),
            ExpiredError,
            (),
            id="continue token too old",
        ),
        pytest.param(
            _status(415, "415: Unsupported Media Type", "UnsupportedMediaType", {}), BadRequestError, (), id="415"
        ),
        pytest.param(
            _status(
                422,
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
                "Invalid",
                {
                    "group": "meta.k8s.io",
                    "kind": "PatchOptions",
                    "causes": [
                        {
                            "reason": "FieldValueTooLong",
                            "message": "Too long: may not be more than 128 bytes",
                            "field": "fieldManager",
                        }
                    ],
                },
            ),
            InvalidError,
            (StatusCause("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"),),
            id="invalid",
        ),
        pytest.param(_status(500, ".spec.replicas: expected numeric (int or float)"), ServerError, (), id="no reason"),
        pytest.param(
            _status(
                504,
                "Timeout: Too large resource version: 99999999, current: 447",
                "Timeout",
                {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
            ),
            ServerError,
            (StatusCause("ResourceVersionTooLarge", "Too large resource version"),),
            id="server behind",
        ),
    ],
)
def test_a_status_is_converted_to_the_error_of_its_code(
    status: dict[str, Any], error: type[ApiError], causes: tuple[StatusCause, ...]
) -> None:
    """Class, code, reason, message and causes are those of the server."""
    built = answer_error(status["code"], {}, json.dumps(status).encode(), request_line=ASKED)

    assert type(built) is error
    assert (built.code, built.reason) == (status["code"], status.get("reason", ""))
    assert (str(built), built.causes) == (status["message"], causes)


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        pytest.param({"Retry-After": "1"}, {"retryAfterSeconds": 7}, 1.0, id="the header takes precedence"),
        pytest.param({}, {"retryAfterSeconds": 7}, 7.0, id="the Status without a header"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None, id="a date is ignored"),
        pytest.param({"Retry-After": "-1"}, {}, None, id="a negative number is ignored"),
        pytest.param({"Retry-After": "inf"}, {}, None, id="infinity is ignored"),
        pytest.param({"Retry-After": "0"}, {}, 0.0, id="zero"),
        pytest.param({}, {}, None, id="nothing"),
    ],
)
def test_retry_after(headers: dict[str, str], details: dict[str, Any], seconds: float | None) -> None:
    body = json.dumps(_status(429, "too many requests, please try again later", "TooManyRequests", details)).encode()
    built = answer_error(429, headers, body, request_line=ASKED)

    assert (type(built), built.retry_after) == (TooManyRequestsError, seconds)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>token=s3cr3t</html>", id="an HTML page of a proxy"),
        pytest.param(b'{"error": "s3cr3t"}', id="another JSON object"),
        pytest.param(b'["s3cr3t"]', id="a list"),
        pytest.param(b"\xff\xfes3cr3t", id="not UTF-8"),
    ],
)
def test_a_body_that_is_not_a_status_is_not_quoted(body: bytes) -> None:
    built = answer_error(502, {"Retry-After": "3"}, body, request_line=ASKED)

    assert (type(built), built.code, built.retry_after) == (ServerError, 502, 3.0)
    assert str(built) == "GET /api/v1/configmaps: HTTP 502 without a Status that gives the reason"


@pytest.mark.parametrize(
    "details",
    [
        pytest.param([], id="a list"),
        pytest.param({"causes": "x"}, id="invalid causes"),
        pytest.param({"causes": [1, None]}, id="an invalid cause"),
        pytest.param({"retryAfterSeconds": "soon"}, id="invalid seconds"),
    ],
)
def test_a_malformed_status_is_still_an_error(details: Any) -> None:
    status = _status(500, "boom", "InternalError") | {"details": details}

    assert str(answer_error(500, {}, json.dumps(status).encode(), request_line=ASKED)) == "boom"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            json.dumps(_status(404, "the server could not find the requested resource", "NotFound", {})).encode(),
            "GET /api/v1/configmaps: the server could not find the requested resource",
            id="a Status without the name of an object",
        ),
        pytest.param(
            b"404 page not found\n",
            "GET /api/v1/configmaps: HTTP 404 without a Status that gives the reason",
            id="a plain 404",
        ),
    ],
)
def test_an_unknown_path_is_distinguished_from_a_missing_object(body: bytes, message: str) -> None:
    built = answer_error(404, {}, body, request_line=ASKED)

    assert isinstance(built, UnknownPathError)
    assert str(built) == message


class TestReadObject:
    def test_every_field_is_kept(self) -> None:
        body = b'{"kind": "X", "new": {"unknown": [1, 2.5, null, true, "\\u00e9"]}, "big": 9007199254740993}'

        assert read_object(body, code=200, request_line=ASKED) == {
            "kind": "X",
            "new": {"unknown": [1, 2.5, None, True, "é"]},
            "big": 9007199254740993,
        }

    @pytest.mark.parametrize("body", [b"", b"<html>s3cr3t", b"[]", b'"s3cr3t"', b"[" * 100_000])
    def test_a_body_that_is_not_an_object_raises_a_server_error(self, body: bytes) -> None:
        with pytest.raises(ServerError, match="not a JSON object") as caught:
            read_object(body, code=200, request_line=ASKED)

        assert caught.value.code == 200
        assert "s3cr3t" not in str(caught.value)

    @pytest.mark.parametrize(
        "value",
        [
            pytest.param('"\\ud83d"', id="surrogate without a partner"),
            pytest.param('{"a":' * 300 + "1" + "}" * 300, id="300 levels"),
            pytest.param('{"a": 1, "a": 2}', id="repeated key"),
            pytest.param("123456789012345678901234567890", id="large integer"),
            pytest.param("[1.0, -0.0, 1e400, 2E5]", id="floats"),
        ],
    )
    def test_whatever_the_standard_library_parses_is_parsed_alike(self, value: str) -> None:
        body = f'{{"kind": "X", "value": {value}}}'
        found = read_object(body.encode(), code=200, request_line=ASKED)
        assert repr(found) == repr(json.loads(body))

    @given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), _nested, max_leaves=20))
    def test_every_value_is_read_as_it_was_written(self, value: Any) -> None:
        body = json.dumps({"value": value})
        found = read_object(body.encode(), code=200, request_line=ASKED)
        assert repr(found) == repr(json.loads(body))


class TestReadList:
    def test_items_get_the_kind_that_the_server_omits(self) -> None:
        answer = {
            "kind": "ConfigMapList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "388", "continue": "abc", "remainingItemCount": 1},
            "items": [{"metadata": {"name": "a", "namespace": "shop"}, "data": {"k": "v"}}],
        }
        page = read_list(answer, "v1", "ConfigMap")

        assert page.items == (
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": "shop"},
                "data": {"k": "v"},
            },
        )
        assert (page.resource_version, page.continue_token) == ("388", "abc")

    def test_a_kind_of_an_item_is_kept(self) -> None:
        page = read_list({"items": [{"kind": "Other", "metadata": {"name": "a"}}]}, "v1", "ConfigMap")

        assert page.items[0]["kind"] == "Other"

    def test_items_are_sorted_by_namespace_and_name(self) -> None:
        """In the order of the server `a-b/x` comes before `a/x`, because it sorts by the whole key."""
        places = [("a-b", "x"), ("a", "y"), ("a", "x")]
        items = [{"metadata": {"namespace": namespace, "name": name}} for namespace, name in places]
        page = read_list({"items": items}, "v1", "ConfigMap")

        assert [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in page.items] == sorted(places)

    @pytest.mark.parametrize("answer", [{}, {"items": None}, {"items": [], "metadata": None}])
    def test_an_empty_list_has_no_items(self, answer: dict[str, Any]) -> None:
        assert read_list(answer, "v1", "ConfigMap").items == ()


class TestReadEvent:
    @pytest.mark.parametrize("kind", list(EventType))
    def test_an_event_keeps_its_object(self, kind: EventType) -> None:
        content = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "447", "future": [1]}}
        event = read_event(json.dumps({"type": kind, "object": content}).encode(), request_line=ASKED)

        assert (event.type, event.object) == (kind, content)

    @pytest.mark.parametrize(
        ("status", "error"),
        [
            pytest.param(_status(410, "too old resource version: 1 (447)", "Expired"), ExpiredError, id="too old"),
            pytest.param(_status(410, "gone", "Gone"), ExpiredError, id="gone"),
            pytest.param(_status(403, "forbidden", "Forbidden"), ForbiddenError, id="forbidden"),
            pytest.param(_status(500, "unable to decode", "InternalError"), ServerError, id="server"),
            pytest.param({}, ServerError, id="an empty Status"),
        ],
    )
    def test_an_error_event_raises_the_error_of_its_status(self, status: dict[str, Any], error: type[ApiError]) -> None:
        with pytest.raises(error) as caught:
            read_event(json.dumps({"type": "ERROR", "object": status}).encode(), request_line=ASKED)

        assert caught.value.code == status.get("code", 0)

    @pytest.mark.parametrize(
        "line",
        [
            pytest.param(b"s3cr3t", id="not JSON"),
            pytest.param(b"[]", id="not an object"),
            pytest.param(b'{"type": "RENAMED", "object": {}}', id="unknown type"),
            pytest.param(b'{"type": ["ADDED"], "object": {}}', id="type that is not a string"),
            pytest.param(b'{"type": "ADDED"}', id="without an object"),
        ],
    )
    def test_a_line_that_is_not_an_event_raises_a_server_error(self, line: bytes) -> None:
        with pytest.raises(ServerError, match="not an event") as caught:
            read_event(line, request_line=ASKED)

        assert "s3cr3t" not in str(caught.value)
