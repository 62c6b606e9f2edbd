"""Entries of ConfigMaps and Secrets, and names of field managers, that the API server rejects."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import pytest

from ocf.cluster import PatchType
from ocf.errors import ApiError, InvalidError

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

TEXT: Final = "x" * 1024 * 1024
ENCODED: Final = b64encode(TEXT.encode()).decode()
ILLEGAL: Final = "illegal base64 data at input byte"

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly")


@pytest.mark.parametrize(
    ("text", "position"),
    [("a", 0), ("no base64!", 2), ("YQ=", 3), ("YQ", 0), ("YQ===", 4), ("Y Q==", 1), ("AA=A", 2), ("é==", 0)],
)
@pytest.mark.promise("conformance")
async def test_what_is_not_base64_is_rejected(env: Env, text: str, position: int) -> None:
    problem = f"{ILLEGAL} {position}"
    with env.error(400, "BadRequest", f'Secret in version "v1" cannot be handled as a Secret: {problem}'):
        await env.create("Secret", f"data: {{key: '{text}'}}")
    with env.error(400, "BadRequest", f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {problem}'):
        await env.create("ConfigMap", f"binaryData: {{key: '{text}'}}")
    for kind, field in (("Secret", "data"), ("ConfigMap", "binaryData")):
        expected = (
            f"failed to convert new object (<namespace>/demo; /v1, Kind={kind}) to proper version: "
            f"unable to convert unstructured object to /v1, Kind={kind}: error decoding from json: {problem}"
        )
        with env.error(500, "", expected, kind=InvalidError):
            await env.apply("author", kind, f"{field}: {{key: '{text}'}}")


@pytest.mark.parametrize("patch_type", PatchType)
async def test_a_patch_to_what_is_not_base64_is_rejected(env: Env, patch_type: PatchType) -> None:
    stored = await env.create("Secret", "data: {key: YQ==}")
    operations = [{"op": "replace", "path": "/data/key", "value": "no!"}]
    patch = operations if patch_type is PatchType.JSON else {"data": {"key": "no!"}}

    with pytest.raises(ApiError, match=f"{ILLEGAL} 2$") as caught:
        await env.patch("Secret", patch, patch_type=patch_type)

    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert (await env.get("Secret"))["data"] == stored["data"]


@pytest.mark.parametrize(
    ("text", "stored"),
    [("YQ==", "YQ=="), ('"YQ==\\n"', "YQ=="), ("YR==", "YQ=="), ("''", ""), ("null", "")],
)
async def test_base64_is_stored_in_one_form(env: Env, text: str, stored: str) -> None:
    assert (await env.create("Secret", f"data: {{key: {text}}}"))["data"] == {"key": stored}


@pytest.mark.parametrize(
    ("kind", "field", "value", "error"),
    [
        pytest.param("Secret", "data", ENCODED, "data", id="data of a Secret"),
        pytest.param("Secret", "stringData", TEXT, "data", id="stringData of a Secret"),
        pytest.param("ConfigMap", "data", TEXT, "[]", id="data of a ConfigMap"),
        pytest.param("ConfigMap", "binaryData", ENCODED, "[]", id="binaryData of a ConfigMap"),
    ],
)
async def test_entries_above_a_mebibyte_are_rejected(env: Env, kind: str, field: str, value: str, error: str) -> None:
    detail = f"{error}: Too long: may not be more than 1048576 bytes"
    expected = (f'{kind} "demo" is invalid: {detail}', f"FieldValueTooLong {detail}")

    with env.error(422, "Invalid", *expected):
        await env.create(kind, f"{field}: {{a: {value}, b: eA==}}")
    with env.error(422, "Invalid", *expected):
        await env.apply("author", kind, f"{field}: {{a: {value}, b: eA==}}")
    await env.create(kind, f"{field}: {{a: {value}}}")
    with env.error(422, "Invalid", *expected):
        await env.merge(kind, f"{field}: {{b: eA==}}")


CHARACTERS: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        pytest.param("a b", CHARACTERS, id="space"),
        pytest.param("", CHARACTERS, id="empty"),
        pytest.param("ä", CHARACTERS, id="umlaut"),
        pytest.param(".", "must not be '.'", id="this folder"),
        pytest.param("..", "must not be '..'", id="the folder above"),
        pytest.param("..a", "must not start with '..'", id="two dots"),
        pytest.param("x" * 254, "must be no more than 253 characters", id="too long"),
    ],
)
async def test_a_key_must_be_a_file_name(env: Env, key: str, problem: str) -> None:
    for kind, field in (("Secret", "data"), ("ConfigMap", "data"), ("ConfigMap", "binaryData")):
        detail = f'{field}[{key}]: Invalid value: "{key}": {problem}'
        with env.error(422, "Invalid", f'{kind} "demo" is invalid: {detail}', f"FieldValueInvalid {detail}"):
            await env.create(kind, f"{field}: {{'{key}': YQ==}}")


async def test_a_key_has_one_entry(env: Env) -> None:
    detail = 'data[a]: Invalid value: "a": duplicate of key present in binaryData'
    with env.error(422, "Invalid", f'ConfigMap "demo" is invalid: {detail}', f"FieldValueInvalid {detail}"):
        await env.create("ConfigMap", "{data: {a: x}, binaryData: {a: eA==}}")


@pytest.mark.parametrize(
    ("kind", "data", "required"),
    [
        pytest.param("kubernetes.io/tls", "", ["data[tls.crt]", "data[tls.key]"], id="tls"),
        pytest.param("kubernetes.io/tls", "tls.crt: ''", ["data[tls.key]"], id="tls without a key"),
        pytest.param("kubernetes.io/basic-auth", "", ["data[username]", "data[password]"], id="basic-auth"),
        pytest.param("kubernetes.io/ssh-auth", "ssh-privatekey: ''", ["data[ssh-privatekey]"], id="ssh-auth"),
        pytest.param("kubernetes.io/dockercfg", "", ["data[.dockercfg]"], id="dockercfg"),
        pytest.param(
            "kubernetes.io/service-account-token",
            "",
            ["metadata.annotations[kubernetes.io/service-account.name]"],
            id="service-account-token",
        ),
    ],
)
async def test_a_type_of_secret_requires_keys(env: Env, kind: str, data: str, required: list[str]) -> None:
    details = [f"{field}: Required value" for field in required]
    text = details[0] if len(details) == 1 else f"[{', '.join(details)}]"
    causes = [f"FieldValueRequired {detail}" for detail in details]
    with env.error(422, "Invalid", f'Secret "demo" is invalid: {text}', *causes):
        await env.create("Secret", f"{{type: {kind}, data: {{{data}}}}}")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "unexpected end of JSON input"),
        (b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)
async def test_a_docker_configuration_must_be_a_json_object(env: Env, content: bytes, problem: str) -> None:
    detail = f'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": {problem}'
    data = f".dockerconfigjson: '{b64encode(content).decode()}'"
    with env.error(422, "Invalid", f'Secret "demo" is invalid: {detail}', f"FieldValueInvalid {detail}"):
        await env.create("Secret", f"{{type: kubernetes.io/dockerconfigjson, data: {{{data}}}}}")


@pytest.mark.parametrize(
    ("manager", "details"),
    [
        pytest.param("x" * 129, ["Too long: may not be more than 128 bytes"], id="long"),
        pytest.param("ü" * 65, ["Too long: may not be more than 128 bytes"], id="long in bytes"),
        pytest.param("é\x07", ['Invalid value: "é\\a": invalid character U+0007 (at position 2)'], id="control"),
        pytest.param("a\nb", ['Invalid value: "a\\nb": invalid character U+000A (at position 1)'], id="line break"),
        pytest.param("\xa0", ['Invalid value: "\\u00a0": invalid character U+00A0 (at position 0)'], id="space"),
        pytest.param(
            "\x07\x08",
            [
                'Invalid value: "\\a\\b": invalid character U+0007 (at position 0)',
                'Invalid value: "\\a\\b": invalid character U+0008 (at position 1)',
            ],
            id="two",
        ),
    ],
)
@pytest.mark.parametrize(
    ("options", "ask"),
    [
        pytest.param("CreateOptions", lambda env, by: env.create("ConfigMap", name="new", by=by), id="create"),
        pytest.param("UpdateOptions", lambda env, by: env.update(env.manifest("ConfigMap"), by=by), id="update"),
        pytest.param("PatchOptions", lambda env, by: env.merge("ConfigMap", "data: {a: b}", by=by), id="patch"),
        pytest.param("PatchOptions", lambda env, by: env.apply(by, "ConfigMap"), id="apply"),
    ],
)
async def test_a_field_manager_is_short_and_printable(
    env: Env, options: str, ask: Callable[[Env, str], Awaitable[object]], manager: str, details: list[str]
) -> None:
    await env.create("ConfigMap")
    fields = [f"fieldManager: {detail}" for detail in details]
    text = fields[0] if len(fields) == 1 else f"[{', '.join(fields)}]"
    reason = "FieldValueTooLong" if "Too long" in text else "FieldValueInvalid"
    causes = [f"{reason} {field}" for field in fields]
    with env.error(422, "Invalid", f'{options}.meta.k8s.io "" is invalid: {text}', *causes):
        await ask(env, manager)


@pytest.mark.parametrize("manager", ["a b", "ü" * 64, "店舗"])
async def test_other_field_managers_are_recorded(env: Env, manager: str) -> None:
    stored = await env.apply(manager, "ConfigMap", "data: {a: b}")
    assert [entry["manager"] for entry in stored["metadata"]["managedFields"]] == [manager]
