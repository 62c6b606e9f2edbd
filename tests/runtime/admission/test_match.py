"""Which requests a webhook is for."""

from typing import Any

import pytest

from ocf.errors import BuildError
from ocf.runtime.admission import Match, Operation


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"operations": ()}, "at least one operation"),
        ({"operations": ["*"]}, r"`operations` .* got \['\*'\]"),
        ({"operations": ["create"]}, "`operations` .* got"),
        ({"operations": Operation.CREATE}, "`operations` of a match must be a list"),
        ({"subresources": "status"}, "`subresources` of a match must be a list"),
        ({"scope": "namespaced"}, "`scope` of a match must be one of .* got 'namespaced'"),
        ({"policy": "exact"}, "`policy` of a match must be one of .* got 'exact'"),
        ({"everywhere": "no"}, "`everywhere` of a match must be one of None, True, False, got 'no'"),
        ({"subresources": ()}, "at least one subresource"),
        ({"namespaces": {"matchLabels": {"a b": "c"}}}, "`namespaces` of a match is invalid: .*a b"),
        ({"objects": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "`objects` of a match is invalid: .*Is"),
    ],
)
def test_a_match_that_no_api_server_accepts_is_refused(changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Match(**changed)


def test_subresources_are_resources_of_the_rule() -> None:
    match = Match(operations=[Operation.UPDATE], subresources=["", "status"], scope="Namespaced")
    assert match.rule("", "v1", "pods") == {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["pods", "pods/status"],
        "scope": "Namespaced",
    }


@pytest.mark.parametrize(
    ("group", "left_out"),
    [("", True), ("apps", True), ("*", True), ("rbac.authorization.k8s.io", True), ("example.com", False)],
)
def test_what_kubernetes_needs_is_left_out_unless_the_kind_is_a_custom_resource(group: str, left_out: bool) -> None:
    assert (Match().left_out(group, ["ops"]) == ["kube-system", "kube-public", "kube-node-lease", "ops"]) is left_out
    assert Match(everywhere=True).left_out(group, ["ops"]) == []


def test_namespaces_are_left_out_beside_what_the_author_selects() -> None:
    exists = {"key": "tier", "operator": "Exists"}
    left_out = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["ops"]}
    match = Match(namespaces={"matchExpressions": [exists]})
    assert match.namespace_selector(["ops"]) == {"matchExpressions": [exists, left_out]}
    assert match.namespace_selector([]) == {"matchExpressions": [exists]}
