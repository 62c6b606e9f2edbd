"""The ClusterRole primitive: its aggregation rule is set after the edits of its rules."""

from collections.abc import Callable

import pytest
from kubernetes.client import V1AggregationRule, V1LabelSelector, V1PolicyRule

from ocf.errors import BuildError, MutationError
from ocf.objects import Manifest
from ocf.primitives import clusterrole

BASE: Manifest = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "web"},
}


def selecting(value: str) -> V1AggregationRule:
    return V1AggregationRule(cluster_role_selectors=[V1LabelSelector(match_labels={"to": value})])


def rendered(mutate: Callable[[clusterrole.Mutator], None], base: Manifest = BASE) -> Manifest:
    return clusterrole.Builder(base).with_mutation(clusterrole.Mutation("m", mutate)).build().render()


def written(value: str) -> Manifest:
    return {"clusterRoleSelectors": [{"matchLabels": {"to": value}}]}


def test_the_last_aggregation_rule_of_a_mutation_wins() -> None:
    def mutate(m: clusterrole.Mutator) -> None:
        m.set_aggregation_rule(selecting("first"))
        m.set_aggregation_rule(selecting("last"))

    assert rendered(mutate) == {**BASE, "aggregationRule": written("last")}


def test_none_clears_the_aggregation_rule() -> None:
    base = {**BASE, "aggregationRule": written("base")}
    assert rendered(lambda m: m.set_aggregation_rule(None), base) == BASE


def test_the_aggregation_rule_is_set_after_the_rules_and_as_it_was_when_recorded() -> None:
    seen: list[bool] = []
    rule = selecting("a")

    def mutate(m: clusterrole.Mutator) -> None:
        m.set_aggregation_rule(rule)
        m.edit_rules(lambda role: seen.append(role.raw.aggregation_rule is None))  # type: ignore[union-attr]  # a ClusterRole
        rule.cluster_role_selectors = []

    assert rendered(mutate)["aggregationRule"] == written("a")
    assert seen == [True]


def test_rules_are_appended_as_they_were_when_recorded() -> None:
    rule = V1PolicyRule(api_groups=[""], resources=["pods"], verbs=["get"])

    def mutate(m: clusterrole.Mutator) -> None:
        m.append_rule(rule)
        m.append_rule(rule)
        rule.verbs.append("list")

    one = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    assert rendered(mutate) == {**BASE, "rules": [one, one]}


@pytest.mark.parametrize("rules", [pytest.param([], id="empty"), pytest.param([{"verbs": ["get"]}], id="one rule")])
def test_rules_beside_an_aggregation_rule_are_rejected_because_the_control_plane_replaces_them(
    rules: list[Manifest],
) -> None:
    with pytest.raises(BuildError, match=r"^ClusterRole web: rules: Forbidden: .* remove the field$"):
        clusterrole.Builder({**BASE, "aggregationRule": written("a"), "rules": rules}).build()
    with pytest.raises(MutationError, match=r'mutation "m", edit_aggregation_rule: .*rules: Forbidden: '):
        rendered(lambda m: m.set_aggregation_rule(selecting("a")), {**BASE, "rules": rules})
