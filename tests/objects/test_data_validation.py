"""Entries of ConfigMaps and Secrets: base64, keys, sizes, and what the type of a Secret requires."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.data_validation import (
    base64_errors,
    config_map_errors,
    decode_base64,
    secret_errors,
    secret_type_errors,
)

LIMIT = 1024 * 1024
HIDDEN = "hunter2"


def encoded(size: int) -> str:
    return b64encode(b"x" * size).decode()


def texts(errors: Any) -> list[str]:
    return [str(error) for error in errors]


class TestBase64:
    @pytest.mark.parametrize(
        ("text", "position"),
        [
            ("a", 0),
            ("no base64!", 2),
            ("YQ=", 3),
            ("YQ", 0),
            ("YQ===", 4),
            ("Y Q==", 1),
            ("é==", 0),
            ("YQ==YQ==", 4),
            ("====", 0),
            ("A===", 1),
            ("AA=A", 2),
            ("YWI", 0),
            ("YWJjYQ", 4),
            ("\ud800", 0),
        ],
    )
    def test_an_illegal_text_is_rejected_where_the_api_server_rejects_it(self, text: str, position: int) -> None:
        """The positions are those of a real API server (1.36.3)."""
        with pytest.raises(ValueError, match=f"^illegal base64 data at input byte {position}$"):
            decode_base64(text)

    @pytest.mark.parametrize(
        ("text", "content"),
        [("", b""), ("YQ==", b"a"), ("YQ==\n", b"a"), ("YR==", b"a"), ("YWI=", b"ab"), ("YW\r\nJj", b"abc")],
    )
    def test_line_breaks_and_trailing_bits_are_accepted(self, text: str, content: bytes) -> None:
        assert decode_base64(text) == content

    @given(st.binary())
    def test_what_was_encoded_is_decoded(self, content: bytes) -> None:
        assert decode_base64(b64encode(content).decode()) == content

    @given(st.text(alphabet="AQgw+/=-_ \n!é", max_size=12))
    def test_a_text_is_decoded_or_rejected_at_a_position_inside_it(self, text: str) -> None:
        try:
            content = decode_base64(text)
        except ValueError as error:
            position = int(str(error).rpartition(" ")[2])
            assert 0 <= position <= len(text.encode())
        else:
            assert content == b64decode(text.replace("\n", ""), validate=True)

    def test_errors_name_every_entry_and_no_content(self) -> None:
        found = texts(base64_errors({"data": {"b": f"{HIDDEN}!", "a": "YQ==", "c": HIDDEN}}, "data"))
        shown = 'Invalid value: "<secret contents redacted>": must be base64: illegal base64 data at input byte'
        assert found == [f"data[b]: {shown} 7", f"data[c]: {shown} 4"]


class TestSize:
    @pytest.mark.parametrize(
        ("manifest", "excess"),
        [
            pytest.param({"data": {"a": "x" * LIMIT}}, 0, id="text at the limit"),
            pytest.param({"data": {"a": "x" * LIMIT, "b": "x"}}, 1, id="text above"),
            pytest.param({"data": {"a": "ü" * (LIMIT // 2)}}, 0, id="bytes, not characters, at the limit"),
            pytest.param({"data": {"a": "ü" * (LIMIT // 2) + "x"}}, 1, id="bytes, not characters, above"),
            pytest.param({"binaryData": {"a": encoded(LIMIT)}}, 0, id="binary content at the limit"),
            pytest.param({"binaryData": {"a": encoded(LIMIT - 1), "b": encoded(2)}}, 1, id="binary content above"),
            pytest.param({"data": {"a": "x" * LIMIT}, "binaryData": {"b": encoded(1)}}, 1, id="both above"),
            pytest.param({"data": {"k" * 253: "x" * LIMIT}}, 0, id="keys do not count"),
        ],
    )
    def test_a_config_map_has_at_most_a_mebibyte(self, manifest: Any, excess: int) -> None:
        expected = ["[]: Too long: may not be more than 1048576 bytes"] * excess
        assert texts(config_map_errors(manifest)) == expected

    @pytest.mark.parametrize(("size", "excess"), [(LIMIT, 0), (LIMIT + 1, 1), (LIMIT + 2, 1), (LIMIT - 1, 0)])
    def test_a_secret_has_at_most_a_mebibyte_of_decoded_content(self, size: int, excess: int) -> None:
        expected = ["data: Too long: may not be more than 1048576 bytes"] * excess
        assert texts(secret_errors({"data": {"a": encoded(size)}})) == expected

    def test_line_breaks_do_not_count(self) -> None:
        text = encoded(LIMIT)
        lines = "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
        assert texts(secret_errors({"data": {"a": lines}})) == []


class TestKeys:
    @pytest.mark.parametrize(
        ("key", "problem"),
        [
            pytest.param("a b", "a valid config key must consist of alphanumeric characters", id="space"),
            pytest.param("", "a valid config key must consist of alphanumeric characters", id="empty"),
            pytest.param("ä", "a valid config key must consist of alphanumeric characters", id="umlaut"),
            pytest.param("a/b", "a valid config key must consist of alphanumeric characters", id="path"),
            pytest.param(".", "must not be '.'", id="this folder"),
            pytest.param("..", "must not be '..'", id="the folder above"),
            pytest.param("..a", "must not start with '..'", id="two dots"),
            pytest.param("x" * 254, "must be no more than 253 characters", id="too long"),
        ],
    )
    @pytest.mark.parametrize("field", ["data", "binaryData"])
    def test_a_key_must_be_a_file_name(self, field: str, key: str, problem: str) -> None:
        (found,) = texts(config_map_errors({field: {key: "YQ=="}}))
        assert found.startswith(f'{field}[{key}]: Invalid value: "{key}": {problem}')
        if field == "data":
            assert texts(secret_errors({field: {key: "YQ=="}})) == [found]

    @pytest.mark.parametrize("key", ["a", ".a", "a..b", "A_b-c.9", "x" * 253])
    def test_other_keys_are_accepted(self, key: str) -> None:
        assert texts(config_map_errors({"data": {key: ""}})) == []


@pytest.mark.parametrize(
    ("kind", "data", "problems"),
    [
        pytest.param("", {}, [], id="no type"),
        pytest.param("example.com/any", {}, [], id="a type of a user"),
        pytest.param("kubernetes.io/tls", {}, ["tls.crt", "tls.key"], id="tls"),
        pytest.param("kubernetes.io/tls", {"tls.crt": "", "tls.key": ""}, [], id="tls with empty keys"),
        pytest.param("kubernetes.io/basic-auth", {}, ["username", "password"], id="basic-auth"),
        pytest.param("kubernetes.io/basic-auth", {"password": ""}, [], id="basic-auth with a password"),
        pytest.param("kubernetes.io/ssh-auth", {"ssh-privatekey": ""}, ["ssh-privatekey"], id="ssh-auth"),
        pytest.param("kubernetes.io/dockercfg", {}, [".dockercfg"], id="dockercfg"),
        pytest.param("kubernetes.io/dockerconfigjson", {".dockerconfigjson": "e30="}, [], id="dockerconfigjson"),
        pytest.param("kubernetes.io/dockerconfigjson", {".dockerconfigjson": "bnVsbA=="}, [], id="null"),
    ],
)
def test_a_type_of_secret_requires_keys(kind: str, data: dict[str, str], problems: list[str]) -> None:
    errors = secret_type_errors({"metadata": {}, "type": kind, "data": data})
    assert texts(errors) == [f"data[{key}]: Required value" for key in problems]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "unexpected end of JSON input"),
        (b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (b"5", "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        (HIDDEN.encode(), "must be a JSON object"),
        (b"\xff", "must be a JSON object"),
    ],
)
def test_a_docker_configuration_must_be_a_json_object(content: bytes, problem: str) -> None:
    manifest = {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": b64encode(content).decode()}}
    shown = 'data[.dockercfg]: Invalid value: "<secret contents redacted>"'
    assert texts(secret_type_errors(manifest)) == [f"{shown}: {problem}"]


def test_a_token_names_its_service_account() -> None:
    manifest: Any = {"type": "kubernetes.io/service-account-token", "metadata": {}}
    field = "metadata.annotations[kubernetes.io/service-account.name]"
    assert texts(secret_type_errors(manifest)) == [f"{field}: Required value"]
    manifest["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "web"}
    assert texts(secret_type_errors(manifest)) == []
