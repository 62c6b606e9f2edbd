"""Decoding of protobuf bodies."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf_server.http.protobuf import ProtobufError, read_protobuf


def part(number: int, *values: bytes | int) -> bytes:
    """Encode fields with the same number: bytes with their length, numbers as varints."""
    out = b""
    for value in values:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value % (1 << 64))
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def body(api_version: bytes, kind: bytes, raw: bytes) -> bytes:
    return b"k8s\x00" + part(1, part(1, api_version) + part(2, kind)) + part(2, raw)


META = part(1, part(1, b"web"))


@pytest.mark.parametrize(
    ("api_version", "kind", "raw", "expected"),
    [
        pytest.param("v1", "ConfigMap", part(2, part(1, b"a") + part(2, b"1")), {"data": {"a": "1"}}, id="map"),
        pytest.param("v1", "Secret", part(2, part(1, b"a") + part(2, b"\xff")), {"data": {"a": "/w=="}}, id="bytes"),
        pytest.param("apps/v1", "Deployment", part(2, part(1, 3)), {"spec": {"replicas": 3}}, id="number"),
        pytest.param("apps/v1", "Deployment", part(2, part(1, -1)), {"spec": {"replicas": -1}}, id="negative number"),
        pytest.param(
            "v1", "Service", part(2, part(2, part(1, b"x"))), {"spec": {"selector": {"x": ""}}}, id="no value"
        ),
        pytest.param(
            "v1",
            "Service",
            part(2, part(1, part(3, 80) + part(4, part(1, 1) + part(3, b"http")))),
            {"spec": {"ports": [{"port": 80, "targetPort": "http"}]}},
            id="number or text",
        ),
    ],
)
def test_a_body_decodes_to_the_equivalent_json(
    api_version: str, kind: str, raw: bytes, expected: dict[str, object]
) -> None:
    found = read_protobuf(body(api_version.encode(), kind.encode(), META + raw))
    assert found == {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, **expected}


def test_the_fields_of_an_inlined_message_belong_to_its_parent() -> None:
    volume = part(1, b"data") + part(2, part(1, part(1, b"/x")))
    found = read_protobuf(body(b"v1", b"Pod", part(2, part(1, volume))))
    assert found["spec"]["volumes"] == [{"name": "data", "hostPath": {"path": "/x"}}]


def test_a_time_is_text_and_an_empty_one_is_left_out() -> None:
    moment = part(1, part(8, part(1, 1_577_836_800)))
    found = read_protobuf(body(b"v1", b"ConfigMap", moment))
    assert found["metadata"] == {"creationTimestamp": "2020-01-01T00:00:00Z"}
    assert read_protobuf(body(b"v1", b"ConfigMap", part(1, part(8, b""))))["metadata"] == {}


def test_a_kind_that_is_not_built_in_is_rejected() -> None:
    with pytest.raises(ProtobufError, match=r'no kind "Shop" is registered for version "example\.com/v1"'):
        read_protobuf(body(b"example.com/v1", b"Shop", b""))


@given(raw=st.binary(max_size=200), kind=st.sampled_from(["ConfigMap", "Pod", "Secret", "Event", "Node"]))
def test_random_bytes_are_decoded_or_rejected(raw: bytes, kind: str) -> None:
    """Any bytes are decoded to an object or rejected."""
    with suppress(ProtobufError):
        assert read_protobuf(body(b"v1", kind.encode(), raw))["kind"] == kind


@given(st.binary(max_size=100))
def test_random_envelopes_are_decoded_or_rejected(raw: bytes) -> None:
    with pytest.raises(ProtobufError):
        read_protobuf(b"k8s\x00" + raw)
