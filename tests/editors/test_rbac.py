"""Editors of RBAC objects: rules have no key, subjects have kind, name and namespace."""

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.client import (
    RbacV1Subject,
    V1ClusterRole,
    V1ClusterRoleBinding,
    V1PolicyRule,
    V1Role,
    V1RoleBinding,
    V1RoleRef,
)

from ocf.editors import AggregationRuleEditor, BindingSubjectsEditor, PolicyRulesEditor
from ocf.errors import ConfigError
from ocf.objects import write_model

RULE = V1PolicyRule(api_groups=[""], resources=["pods"], verbs=["get"])
EITHER_ROLE = pytest.mark.parametrize("role", [V1Role, V1ClusterRole])


def rule(resource: str) -> V1PolicyRule:
    return V1PolicyRule(api_groups=[""], resources=[resource], verbs=["get"])


def resources(editor: PolicyRulesEditor) -> list[str]:
    return [(found.resources or [""])[0] for found in editor.raw.rules or []]


@EITHER_ROLE
def test_appending_is_unconditional(role: type[V1Role | V1ClusterRole]) -> None:
    editor = PolicyRulesEditor(role())
    for _ in range(2):
        editor.append_rule(RULE)
    assert resources(editor) == ["pods", "pods"]
    assert editor.raw.rules is not None
    assert editor.raw.rules[0] is not RULE


@EITHER_ROLE
def test_setting_replaces_all_rules_and_an_empty_list_is_a_value(role: type[V1Role | V1ClusterRole]) -> None:
    editor = PolicyRulesEditor(role(rules=[RULE]))
    editor.set_rules([rule("a"), rule("b")])
    assert resources(editor) == ["a", "b"]
    editor.set_rules([])
    assert write_model(editor.raw) == {"rules": []}
    editor.set_rules(None)
    assert write_model(editor.raw) == {}


@pytest.mark.parametrize(
    ("index", "left"),
    [
        pytest.param(0, ["b", "c"], id="first"),
        pytest.param(2, ["a", "b"], id="last"),
        pytest.param(3, ["a", "b", "c"], id="behind the last"),
        pytest.param(-1, ["a", "b", "c"], id="negative, which does not count from the end"),
    ],
)
def test_a_rule_is_removed_by_position(index: int, left: list[str]) -> None:
    editor = PolicyRulesEditor(V1Role(rules=[rule("a"), rule("b"), rule("c")]))
    editor.remove_rule_at(index)
    assert resources(editor) == left


def test_the_last_rule_removed_unsets_the_field() -> None:
    editor = PolicyRulesEditor(V1Role(rules=[RULE]))
    editor.remove_rule_at(0)
    editor.remove_rule_at(0)
    assert write_model(editor.raw) == {}
    editor.append_rule(RULE)
    editor.remove_rules()
    assert write_model(editor.raw) == {}


def binding(kind: type[V1RoleBinding | V1ClusterRoleBinding]) -> BindingSubjectsEditor:
    reference = V1RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="web")
    return BindingSubjectsEditor(kind(role_ref=reference))


def subjects(editor: BindingSubjectsEditor) -> list[tuple[str, str, str | None, str | None]]:
    return [(found.kind, found.name, found.namespace, found.api_group) for found in editor.raw.subjects or []]


EITHER_BINDING = pytest.mark.parametrize("kind", [V1RoleBinding, V1ClusterRoleBinding])


@EITHER_BINDING
def test_a_subject_is_one_kind_name_and_namespace(kind: type[V1RoleBinding | V1ClusterRoleBinding]) -> None:
    editor = binding(kind)
    for subject in (
        RbacV1Subject(kind="User", name="jane"),
        RbacV1Subject(kind="Group", name="jane"),
        RbacV1Subject(kind="ServiceAccount", name="jane", namespace="a"),
        RbacV1Subject(kind="ServiceAccount", name="jane", namespace="b"),
        RbacV1Subject(kind="User", name="jane", api_group="rbac.authorization.k8s.io"),
    ):
        editor.ensure_subject(subject)
    assert subjects(editor) == [
        ("User", "jane", None, "rbac.authorization.k8s.io"),
        ("Group", "jane", None, None),
        ("ServiceAccount", "jane", "a", None),
        ("ServiceAccount", "jane", "b", None),
    ]


@EITHER_BINDING
def test_service_accounts_have_short_forms(kind: type[V1RoleBinding | V1ClusterRoleBinding]) -> None:
    editor = binding(kind)
    editor.ensure_service_account("web", "shop")
    editor.ensure_service_account("web", "shop")
    editor.ensure_service_account("web", "other")
    assert subjects(editor) == [("ServiceAccount", "web", "shop", None), ("ServiceAccount", "web", "other", None)]
    editor.remove_service_account("web", "shop")
    assert subjects(editor) == [("ServiceAccount", "web", "other", None)]
    editor.remove_subject("ServiceAccount", "web", "other")
    assert editor.raw.subjects is None


def test_removing_a_subject_of_another_namespace_changes_nothing() -> None:
    editor = binding(V1RoleBinding)
    editor.ensure_service_account("web", "shop")
    editor.remove_subject("ServiceAccount", "web")
    editor.remove_subject("User", "web", "shop")
    assert subjects(editor) == [("ServiceAccount", "web", "shop", None)]
    editor.ensure_subject(RbacV1Subject(kind="User", name="jane"))
    editor.remove_subject("User", "jane")
    assert len(subjects(editor)) == 1


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        pytest.param(lambda r, _: r.append_rule({}), "rules: must be a kubernetes", id="rule"),
        pytest.param(lambda r, _: r.set_rules([RULE, {}]), "rules: must be a kubernetes", id="rules"),
        pytest.param(lambda r, _: r.remove_rule_at("1"), "index of rules: must be a whole number", id="index"),
        pytest.param(lambda _, b: b.ensure_subject("jane"), "subjects: must be a kubernetes", id="subject"),
        pytest.param(lambda _, b: b.ensure_service_account("web", None), "subjects: must be a text", id="namespace"),
        pytest.param(lambda _, b: b.remove_subject("User", 1), "subjects: must be a text", id="name"),
    ],
)
def test_a_value_of_another_type_is_rejected(edit: Callable[[Any, Any], None], problem: str) -> None:
    role, bound = PolicyRulesEditor(V1Role()), binding(V1RoleBinding)
    with pytest.raises(ConfigError, match=problem):
        edit(role, bound)
    assert role.raw.rules is None
    assert bound.raw.subjects is None


def test_an_aggregation_rule_is_checked() -> None:
    with pytest.raises(ConfigError, match="aggregationRule: must be a kubernetes"):
        AggregationRuleEditor(V1ClusterRole()).set_aggregation_rule({})  # type: ignore[arg-type]  # the point of the test
