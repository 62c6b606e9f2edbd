"""Mistakes in ConfigMaps and Secrets."""

from typing import Any, Final

from scripts.record.validation_cases.table import LONG, REMOVED, Table, at, together

__all__ = ["TABLES"]

_LARGE: Final = "x" * (1024 * 1024 + 1)


def _config_map(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, **fields}


def _secret(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, **fields}


_METADATA: Final = (
    *at("metadata.name", "UPPER", "a_b", "a..b", LONG, "-a", "a/b", "a b", "", REMOVED, "a.b.c", "1"),
    *at("metadata.generateName", "web-", "UPPER-", "a_b", LONG),
    *together(("metadata.name", REMOVED), ("metadata.generateName", "web-")),
    *together(("metadata.name", REMOVED), ("metadata.generateName", "Web_")),
    *at(
        "metadata.labels", {"a": "b"}, {"a b": "c"}, {"a": "b c"}, {"": "x"}, {"a/b/c": "d"}, {"/a": "b"}, {"A.b/": "c"}
    ),
    *at("metadata.labels", {"a": "x" * 64}, {"x" * 64: "a"}, {f"{LONG}/a": "b"}, {"A_B/c": "d"}),
    *at(
        "metadata.annotations",
        {"a": "any text\n"},
        {"a b": "c"},
        {"UP.example/Case": "x"},
        {"": "x"},
        {"a": "x" * 262144},
    ),
    *at("metadata.finalizers", ["example.com/f"], ["f"], ["example.com/"], ["a b"], ["orphan"], ["kubernetes"]),
    *at("metadata.finalizers", ["orphan", "foregroundDeletion"], ["example.com/f", "g", "h/i j"], ["a/b/c"]),
    *at("metadata.ownerReferences", [{}], [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]),
    *at("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}]),
    *at("metadata.ownerReferences", [{"apiVersion": "a/b/c", "kind": "", "name": "", "uid": ""}]),
    *at(
        "metadata.ownerReferences",
        [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True},
            {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "v", "controller": True},
        ],
    ),
    *at("metadata.labels", ["a"], "a"),
    *at("metadata.annotations", {"a": 1}),
    *at("metadata.finalizers", "f"),
)
_METADATA_CHANGES: Final = (
    *at("metadata.uid", ""),
    *at("metadata.creationTimestamp", "2020-01-01T00:00:00Z", None),
    *at("metadata.deletionTimestamp", "2020-01-01T00:00:00Z"),
    *at("metadata.deletionGracePeriodSeconds", 5),
    *at("metadata.resourceVersion", "1", ""),
    *at("metadata.generateName", "other-"),
    *at("metadata.selfLink", "/x"),
)
_KEYS: Final = ("a.b", "a b", "", "..", ".", "..a", LONG, "A_b-9", "a/b")

_CONFIG_MAPS: Final = Table(
    kind="ConfigMap",
    bases={
        "plain": _config_map("web", data={"a": "1"}),
        "binary": _config_map("web", data={"a": "1"}, binaryData={"b": "MQ=="}),
        "empty": _config_map("web"),
    },
    stored={
        "plain": _config_map("stored-plain", data={"a": "1"}, binaryData={"b": "MQ=="}),
        "immutable": _config_map("stored-immutable", data={"a": "1"}, binaryData={"b": "MQ=="}, immutable=True),
    },
    mistakes=(
        *_METADATA,
        *(mistake for key in _KEYS for mistake in at("data", {key: "x"})),
        *(mistake for key in _KEYS for mistake in at("binaryData", {key: "eA=="})),
        *at("binaryData", {"a": "eA=="}, {"c": "x"}, {"c": "e A="}, {"c": 1}, {"c": None}, "x"),
        *at("data", {"b": "x"}, {"a": 1}, {"a": None}, {"a": True}, "x", [], {"b": "x", "c": "y", "d e": "f"}),
        *at("data.large", _LARGE),
        *at("immutable", True, False, "yes", None),
    ),
    changes=(
        *_METADATA_CHANGES,
        *at("immutable", True, False, None, REMOVED),
        *at("data", {}, {"a": "2"}, {"a": "1", "b2": "2"}, REMOVED),
        *at("binaryData", {}, {"b": "Mg=="}, REMOVED),
        *at("metadata.labels", {"a": "b"}),
    ),
    pairs=30,
)

_TEXT: Final = "eA=="
_OBJECT: Final = "e30="
_SECRETS: Final = Table(
    kind="Secret",
    bases={
        "plain": _secret("web", data={"a": _TEXT}),
        "text": _secret("web", stringData={"a": "1"}),
        "basic": _secret("web", type="kubernetes.io/basic-auth", data={"username": _TEXT, "password": _TEXT}),
        "ssh": _secret("web", type="kubernetes.io/ssh-auth", data={"ssh-privatekey": _TEXT}),
        "tls": _secret("web", type="kubernetes.io/tls", data={"tls.crt": _TEXT, "tls.key": _TEXT}),
        "docker": _secret("web", type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": _OBJECT}),
        "dockercfg": _secret("web", type="kubernetes.io/dockercfg", data={".dockercfg": _OBJECT}),
        "own": _secret("web", type="example.com/own", data={"a": _TEXT}),
        "bootstrap": _secret("web", type="bootstrap.kubernetes.io/token", data={"token-id": _TEXT}),
    },
    stored={
        "plain": _secret("stored-plain", data={"a": _TEXT}),
        "immutable": _secret("stored-immutable", data={"a": _TEXT}, immutable=True),
        "tls": _secret("stored-tls", type="kubernetes.io/tls", data={"tls.crt": _TEXT, "tls.key": _TEXT}),
        "own": _secret("stored-own", type="example.com/own"),
    },
    mistakes=(
        *(mistake for key in _KEYS for mistake in at("data", {key: "eA=="})),
        *at("data", {"a": "x"}, {"a": "eA="}, {"a": 1}, {"a": None}, "x", {}, {"b c": "", "d": ""}, REMOVED),
        *at("stringData", {"a b": "x"}, {"b": "x"}, {"a": 1}, "x", {"tls.crt": "x"}, {"username": "u"}),
        *at("data[tls.crt]", REMOVED, "", "x"),
        *at("data[tls.key]", REMOVED, "", "eA=="),
        *at("data.username", REMOVED, ""),
        *at("data.password", REMOVED, ""),
        *together(("data.username", REMOVED), ("data.password", REMOVED)),
        *at("data[ssh-privatekey]", REMOVED, ""),
        *at("data[.dockerconfigjson]", REMOVED, "", "W10=", "eA==", "bnVsbA==", "MQ==", "e30"),
        *at("data[.dockercfg]", REMOVED, "", "W10=", "eA=="),
        *at("type", "kubernetes.io/tls", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "any", LONG, ""),
        *at("type", "kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson", "kubernetes.io/service-account-token"),
        *together(
            ("type", "kubernetes.io/service-account-token"),
            ("metadata.annotations", {"kubernetes.io/service-account.name": "default"}),
        ),
        *together(
            ("type", "kubernetes.io/service-account-token"),
            ("metadata.annotations", {"kubernetes.io/service-account.name": ""}),
        ),
        *at("stringData.large", _LARGE),
        *at("immutable", True, False, "yes"),
        *at("metadata.name", "UPPER", "a_b", LONG),
    ),
    changes=(
        *at("type", "Opaque", "kubernetes.io/tls", "example.com/other", "", REMOVED),
        *at("immutable", True, False, None, REMOVED),
        *at("data", {}, {"a": "eQ=="}, {"a": _TEXT, "b": _TEXT}, REMOVED),
        *at("stringData", {"a": "x"}, {"a": "y"}),
        *at("metadata.annotations", {"a": "b"}),
    ),
    pairs=30,
)

TABLES: Final = (_CONFIG_MAPS, _SECRETS)
