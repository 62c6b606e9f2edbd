"""NetworkPolicySpecEditor: rules are appended or removed all at once."""

import pytest
from kubernetes.client import (
    V1LabelSelector,
    V1NetworkPolicyEgressRule,
    V1NetworkPolicyIngressRule,
    V1NetworkPolicyPeer,
    V1NetworkPolicyPort,
    V1NetworkPolicySpec,
)

from ocf.editors import NetworkPolicySpecEditor
from ocf.errors import ConfigError
from ocf.objects import write_model


@pytest.fixture
def editor() -> NetworkPolicySpecEditor:
    return NetworkPolicySpecEditor(V1NetworkPolicySpec())


def test_ingress_rules_are_appended_as_copies_and_removed_all_at_once(editor: NetworkPolicySpecEditor) -> None:
    peer = V1NetworkPolicyPeer(pod_selector=V1LabelSelector(match_labels={"app": "web"}))
    rule = V1NetworkPolicyIngressRule()
    rule.var_from = [peer]
    editor.append_ingress_rule(rule)
    editor.append_ingress_rule(V1NetworkPolicyIngressRule())
    rule.ports = [V1NetworkPolicyPort(port=80)]
    allowed = {"from": [{"podSelector": {"matchLabels": {"app": "web"}}}]}
    assert write_model(editor.raw) == {"ingress": [allowed, {}]}
    editor.remove_ingress_rules()
    assert write_model(editor.raw) == {}


def test_egress_rules_likewise(editor: NetworkPolicySpecEditor) -> None:
    for port in (53, 53):
        editor.append_egress_rule(V1NetworkPolicyEgressRule(ports=[V1NetworkPolicyPort(port=port)]))
    assert write_model(editor.raw) == {"egress": [{"ports": [{"port": 53}]}] * 2}
    editor.remove_egress_rules()
    assert write_model(editor.raw) == {}


def test_a_rule_of_the_other_direction_is_rejected(editor: NetworkPolicySpecEditor) -> None:
    with pytest.raises(ConfigError, match=r"ingress: must be a kubernetes\.client\.V1NetworkPolicyIngressRule"):
        editor.append_ingress_rule(V1NetworkPolicyEgressRule())  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ConfigError, match=r"egress: must be a kubernetes\.client\.V1NetworkPolicyEgressRule"):
        editor.append_egress_rule(V1NetworkPolicyIngressRule())  # type: ignore[arg-type]  # the point of the test
    assert write_model(editor.raw) == {}


def test_selector_and_types_are_set_and_unset(editor: NetworkPolicySpecEditor) -> None:
    editor.set_pod_selector(V1LabelSelector())
    editor.set_policy_types(["Ingress", "Egress"])
    assert write_model(editor.raw) == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    editor.set_pod_selector(None)
    editor.set_policy_types(None)
    assert write_model(editor.raw) == {}
