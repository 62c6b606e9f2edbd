"""IngressSpecEditor: rules by host, TLS entries by their first host."""

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.client import (
    V1HTTPIngressPath,
    V1HTTPIngressRuleValue,
    V1IngressBackend,
    V1IngressRule,
    V1IngressServiceBackend,
    V1IngressSpec,
    V1IngressTLS,
    V1ServiceBackendPort,
)
from pydantic import ValidationError

from ocf.editors import IngressSpecEditor as Editor
from ocf.errors import ConfigError
from ocf.objects import write_model


def backend(name: str) -> V1IngressBackend:
    return V1IngressBackend(service=V1IngressServiceBackend(name=name, port=V1ServiceBackendPort(number=80)))


def rule(host: str | None, *paths: str) -> V1IngressRule:
    found = [V1HTTPIngressPath(path=path, path_type="Prefix", backend=backend("web")) for path in paths]
    return V1IngressRule(host=host, http=V1HTTPIngressRuleValue(paths=found) if paths else None)


def tls(secret: str, *hosts: str) -> V1IngressTLS:
    return V1IngressTLS(secret_name=secret, hosts=list(hosts) or None)


def edited(*edits: Callable[[Editor], None]) -> Any:
    editor = Editor(V1IngressSpec())
    for edit in edits:
        edit(editor)
    return write_model(editor.raw)


def hosts(spec: Any) -> list[str]:
    return [each.get("host", "") for each in spec.get("rules", [])]


def secrets(spec: Any) -> list[str]:
    return [each["secretName"] for each in spec.get("tls", [])]


def test_a_rule_is_replaced_by_host_with_all_its_paths() -> None:
    spec = edited(
        lambda e: e.ensure_rule(rule("a", "/one")),
        lambda e: e.ensure_rule(rule("b", "/")),
        lambda e: e.ensure_rule(rule("a", "/two")),
    )
    assert hosts(spec) == ["a", "b"]
    assert [path["path"] for path in spec["rules"][0]["http"]["paths"]] == ["/two"]


@pytest.mark.parametrize("unset", [pytest.param(None, id="unset"), pytest.param("", id="empty")])
def test_no_host_is_a_key(unset: str | None) -> None:
    spec = edited(
        lambda e: e.ensure_rule(rule(None, "/one")),
        lambda e: e.ensure_rule(rule("a")),
        lambda e: e.ensure_rule(rule(unset, "/two")),
    )
    assert hosts(spec) == ["", "a"]
    assert spec["rules"][0]["http"]["paths"][0]["path"] == "/two"
    assert edited(lambda e: e.ensure_rule(rule(unset)), lambda e: e.remove_rule("")) == {}


def test_removing_a_rule_keeps_the_others_and_the_last_one_unsets_the_list() -> None:
    both: list[Callable[[Editor], None]] = [lambda e: e.ensure_rule(rule("a")), lambda e: e.ensure_rule(rule("b"))]
    assert hosts(edited(*both, lambda e: e.remove_rule("c"), lambda e: e.remove_rule("a"))) == ["b"]
    assert edited(*both, lambda e: e.remove_rule("a"), lambda e: e.remove_rule("b")) == {}


def test_a_tls_entry_is_replaced_by_its_first_host() -> None:
    spec = edited(
        lambda e: e.ensure_tls(tls("old", "a", "b")),
        lambda e: e.ensure_tls(tls("other", "b")),
        lambda e: e.ensure_tls(tls("new", "a")),
    )
    assert spec["tls"] == [{"hosts": ["a"], "secretName": "new"}, {"hosts": ["b"], "secretName": "other"}]


@pytest.mark.parametrize("empty", [pytest.param(tls("x"), id="unset"), pytest.param(V1IngressTLS(hosts=[]), id="[]")])
def test_a_tls_entry_without_hosts_is_ignored(empty: V1IngressTLS) -> None:
    assert edited(lambda e: e.ensure_tls(empty)) == {}


def test_removing_tls_goes_by_the_first_host_and_removes_all_of_them() -> None:
    def duplicated(editor: Editor) -> None:
        editor.raw.tls = [tls("1", "a", "z"), tls("2", "b"), tls("3", "a"), tls("4"), tls("5", "z")]

    assert secrets(edited(duplicated, lambda e: e.remove_tls("a"))) == ["2", "4", "5"]
    assert secrets(edited(duplicated, lambda e: e.remove_tls("a", "b", "z"))) == ["4"]
    assert secrets(edited(duplicated, lambda e: e.remove_tls())) == ["1", "2", "3", "4", "5"]


def test_class_and_default_backend_are_set_and_unset() -> None:
    given = backend("web")

    def change(editor: Editor) -> None:
        editor.set_ingress_class_name("public")
        editor.set_default_backend(given)
        given.resource = None
        given.service = None

    service = {"name": "web", "port": {"number": 80}}
    assert edited(change) == {"ingressClassName": "public", "defaultBackend": {"service": service}}
    assert edited(change, lambda e: e.set_ingress_class_name(None), lambda e: e.set_default_backend(None)) == {}


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        pytest.param(lambda e: e.ensure_rule({"host": "a"}), "rules: must be a kubernetes", id="rule"),
        pytest.param(lambda e: e.ensure_tls({"hosts": []}), "tls: must be a kubernetes", id="tls"),
        pytest.param(lambda e: e.remove_rule(None), "rules: must be a text", id="host"),
        pytest.param(lambda e: e.remove_tls("a", 1), "tls: must be a text", id="hosts"),
        pytest.param(lambda e: e.set_default_backend("web"), "defaultBackend: must be a kubernetes", id="backend"),
    ],
)
def test_a_value_of_another_type_is_rejected(edit: Callable[[Editor], None], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        edited(edit)
    with pytest.raises(ValidationError):
        edited(lambda e: e.set_ingress_class_name(1))  # type: ignore[arg-type]  # the point of the test
