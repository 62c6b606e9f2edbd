"""Editors of kinds of other projects: entries are replaced by what identifies them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.client import V1LabelSelector

from ocf.editors import (
    CertificateSpecEditor,
    HTTPRouteSpecEditor,
    PrometheusRuleSpecEditor,
    ScaledObjectSpecEditor,
    ServiceMonitorSpecEditor,
)
from ocf.errors import ConfigError
from ocf.objects import write_model
from ocf.objects.third_party.cert_manager import CertificatePrivateKey, CertificateSpec, IssuerRef
from ocf.objects.third_party.gateway import HTTPBackendRef, HTTPRouteRule, HTTPRouteSpec, ParentReference
from ocf.objects.third_party.keda import ScaledObjectSpec, ScaleTargetRef, ScaleTrigger
from ocf.objects.third_party.prometheus import (
    Endpoint,
    NamespaceSelector,
    PrometheusRuleSpec,
    Rule,
    RuleGroup,
    ServiceMonitorSpec,
)


def route() -> HTTPRouteSpecEditor:
    return HTTPRouteSpecEditor(HTTPRouteSpec())


def scaled() -> ScaledObjectSpecEditor:
    return ScaledObjectSpecEditor(ScaledObjectSpec(scale_target_ref=ScaleTargetRef(name="web"), triggers=[]))


def certified() -> CertificateSpecEditor:
    return CertificateSpecEditor(CertificateSpec(secret_name="tls", issuer_ref=IssuerRef(name="a")))


def monitor() -> ServiceMonitorSpecEditor:
    return ServiceMonitorSpecEditor(ServiceMonitorSpec(selector=V1LabelSelector(), endpoints=[]))


def alerts() -> PrometheusRuleSpecEditor:
    return PrometheusRuleSpecEditor(PrometheusRuleSpec(groups=[RuleGroup(name="web")]))


class TestHTTPRoute:
    def test_a_parent_is_identified_by_all_its_fields(self) -> None:
        spec = route()
        for parent in (
            ParentReference(name="a"),
            ParentReference(name="a", group="gateway.networking.k8s.io", kind="Gateway"),
            ParentReference(name="a", section_name="http"),
            ParentReference(name="a", port=80),
        ):
            spec.ensure_parent_ref(parent)
        assert len(spec.raw.parent_refs or []) == 3
        spec.remove_parent_ref(ParentReference(name="a", section_name="http"))
        assert [(parent.section_name, parent.port) for parent in spec.raw.parent_refs or []] == [
            (None, None),
            (None, 80),
        ]

    def test_a_rule_is_replaced_by_its_name_as_a_whole(self) -> None:
        spec = route()
        spec.append_rule(HTTPRouteRule())
        spec.ensure_rule(HTTPRouteRule(name="a", backend_refs=[HTTPBackendRef(name="web")]))
        spec.ensure_rule(HTTPRouteRule(name="a"))
        spec.append_rule(HTTPRouteRule())
        assert [(rule.name, rule.backend_refs) for rule in spec.raw.rules or []] == [
            (None, None),
            ("a", None),
            (None, None),
        ]
        spec.remove_rule("a")
        assert len(spec.raw.rules or []) == 2
        spec.remove_rules()
        assert write_model(spec.raw) == {}

    def test_host_names_are_a_set_in_order(self) -> None:
        spec = route()
        spec.ensure_hostname("b", "a", "b")
        assert spec.raw.hostnames == ["b", "a"]
        spec.remove_hostname("b", "a")
        assert write_model(spec.raw) == {}


class TestScaledObject:
    def test_a_trigger_is_replaced_by_its_name(self) -> None:
        spec = scaled()
        spec.append_trigger(ScaleTrigger(type="cpu", metadata={}))
        spec.ensure_trigger(ScaleTrigger(type="cron", name="day", metadata={"timezone": "UTC"}))
        spec.ensure_trigger(ScaleTrigger(type="kafka", name="day", metadata={}))
        assert [(trigger.type, trigger.name) for trigger in spec.raw.triggers] == [("cpu", None), ("kafka", "day")]
        spec.remove_triggers("cpu")
        spec.remove_trigger("day")
        assert spec.raw.triggers == []

    def test_numbers_are_set_and_unset(self) -> None:
        spec = scaled()
        setters: list[Callable[[int | None], None]] = [
            spec.set_min_replica_count,
            spec.set_max_replica_count,
            spec.set_idle_replica_count,
            spec.set_polling_interval,
            spec.set_cooldown_period,
        ]
        bare = write_model(spec.raw)
        for number, setter in enumerate(setters):
            setter(number)
        named = {"minReplicaCount": 0, "maxReplicaCount": 1, "idleReplicaCount": 2, "pollingInterval": 3}
        assert write_model(spec.raw) == {**bare, **named, "cooldownPeriod": 4}
        for setter in setters:
            setter(None)
        assert write_model(spec.raw) == bare

    def test_the_target_is_replaced_by_a_copy(self) -> None:
        spec, target = scaled(), ScaleTargetRef(name="db", kind="StatefulSet")
        spec.set_scale_target_ref(target)
        target.name = "other"
        assert spec.raw.scale_target_ref.name == "db"


class TestCertificate:
    def test_names_and_usages_are_sets_in_order(self) -> None:
        spec = certified()
        spec.ensure_dns_name("b", "a", "b")
        spec.ensure_usage("server auth", "server auth")
        assert (spec.raw.dns_names, spec.raw.usages) == (["b", "a"], ["server auth"])
        spec.remove_dns_name("a", "b")
        spec.remove_usage("server auth")
        assert (spec.raw.dns_names, spec.raw.usages) == (None, None)

    def test_fields_are_set_and_unset(self) -> None:
        spec = certified()
        bare = write_model(spec.raw)
        spec.set_common_name("web")
        spec.set_duration("24h")
        spec.set_renew_before("8h")
        spec.set_private_key(CertificatePrivateKey(rotation_policy="Always"))
        fields = {"commonName": "web", "duration": "24h", "renewBefore": "8h"}
        assert write_model(spec.raw) == {**bare, **fields, "privateKey": {"rotationPolicy": "Always"}}
        unsetters: list[Callable[[None], None]] = [
            spec.set_common_name,
            spec.set_duration,
            spec.set_renew_before,
            spec.set_private_key,
        ]
        for unset in unsetters:
            unset(None)
        assert write_model(spec.raw) == bare
        spec.set_secret_name("other")
        spec.set_issuer_ref(IssuerRef(name="b", kind="ClusterIssuer"))
        issuer = {"name": "b", "kind": "ClusterIssuer"}
        assert write_model(spec.raw) == {"secretName": "other", "issuerRef": issuer}


class TestServiceMonitor:
    def test_an_endpoint_is_identified_by_port_and_path(self) -> None:
        spec = monitor()
        for endpoint in (
            Endpoint(port="metrics"),
            Endpoint(port="metrics", path="/metrics", interval="10s"),
            Endpoint(port="metrics", path="/other"),
            Endpoint(target_port=9090),
            Endpoint(target_port=9090, interval="20s"),
        ):
            spec.ensure_endpoint(endpoint)
        assert [(each.path, each.interval) for each in spec.raw.endpoints] == [
            ("/metrics", "10s"),
            ("/other", None),
            (None, "20s"),
        ]
        spec.remove_endpoint("metrics")
        spec.remove_endpoint(9090)
        assert [each.path for each in spec.raw.endpoints] == ["/other"]

    def test_selectors_and_labels(self) -> None:
        spec = monitor()
        spec.set_selector(V1LabelSelector(match_labels={"app": "web"}))
        spec.set_namespace_selector(NamespaceSelector(any=True))
        spec.set_job_label("app")
        spec.ensure_target_label("tier", "tier")
        assert write_model(spec.raw) == {
            "endpoints": [],
            "selector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": {"any": True},
            "jobLabel": "app",
            "targetLabels": ["tier"],
        }
        spec.remove_target_label("tier")
        spec.set_namespace_selector(None)
        spec.set_job_label(None)
        assert set(write_model(spec.raw)) == {"endpoints", "selector"}


class TestPrometheusRule:
    def test_a_rule_is_replaced_by_its_alert_or_record(self) -> None:
        spec = alerts()
        for rule in (
            Rule(alert="a", expr="1"),
            Rule(record="a", expr="2"),
            Rule(alert="a", expr="3", pending_for="5m"),
        ):
            spec.ensure_rule("web", rule)
        written = [{"alert": "a", "expr": "3", "for": "5m"}, {"record": "a", "expr": "2"}]
        assert write_model(spec.raw) == {"groups": [{"name": "web", "rules": written}]}
        spec.remove_rule("web", alert="a")
        spec.remove_rule("other", record="a")
        assert write_model(spec.raw)["groups"][0]["rules"] == written[1:]

    def test_a_group_is_replaced_by_its_name_with_all_its_rules(self) -> None:
        spec = alerts()
        spec.ensure_rule("web", Rule(alert="a", expr="1"))
        spec.ensure_group(RuleGroup(name="web", interval="1m"))
        assert write_model(spec.raw) == {"groups": [{"name": "web", "interval": "1m"}]}
        spec.remove_group("web")
        assert write_model(spec.raw) == {}


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        pytest.param(
            lambda: route().ensure_rule(HTTPRouteRule()), "rules: an entry without a name cannot be replaced", id="rule"
        ),
        pytest.param(
            lambda: scaled().ensure_trigger(ScaleTrigger(type="cpu", metadata={})),
            "triggers: an entry without a name cannot be replaced",
            id="trigger",
        ),
        pytest.param(lambda: route().ensure_parent_ref({"name": "a"}), "parentRefs: must be a ", id="parent"),  # type: ignore[arg-type]  # the point of the test
        pytest.param(lambda: monitor().ensure_endpoint({}), "endpoints: must be a ", id="endpoint"),  # type: ignore[arg-type]  # the point of the test
        pytest.param(lambda: certified().ensure_dns_name(1), "dnsNames: must be a text", id="name"),  # type: ignore[arg-type]  # the point of the test
        pytest.param(
            lambda: alerts().ensure_rule("db", Rule(alert="a", expr="1")),
            r'there is no group "db" \(groups: web\); add it with ensure_group',
            id="group",
        ),
        pytest.param(
            lambda: alerts().ensure_rule("web", Rule(expr="1")),
            "a rule needs the name of an alert or of a record",
            id="rule without a name",
        ),
    ],
)
def test_what_has_no_identity_or_another_type_is_rejected(edit: Callable[[], Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        edit()
