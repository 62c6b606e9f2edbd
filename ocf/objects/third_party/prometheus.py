"""Models of the Prometheus Operator (`monitoring.coreos.com/v1`).

Source: https://prometheus-operator.dev/docs/api-reference/api/, with the defaults of the definitions.
"""

from kubernetes.client import V1LabelSelector
from pydantic import ConfigDict, Field

from ocf.objects.third_party.base import ApiModel, ApiObject

__all__ = [
    "Authorization",
    "BasicAuth",
    "Endpoint",
    "KeySelector",
    "NamespaceSelector",
    "OAuth2",
    "PrometheusRule",
    "PrometheusRuleSpec",
    "RelabelConfig",
    "Rule",
    "RuleGroup",
    "SecretOrConfigMap",
    "ServiceMonitor",
    "ServiceMonitorSpec",
    "TLSConfig",
]


class RelabelConfig(ApiModel):
    """A change of labels before or after a scrape."""

    source_labels: list[str] | None = None
    separator: str | None = None
    target_label: str | None = None
    regex: str | None = None
    modulus: int | None = None
    replacement: str | None = None
    action: str = "replace"


class KeySelector(ApiModel):
    """A key of a Secret or of a ConfigMap."""

    name: str = ""
    key: str
    optional: bool | None = None


class SecretOrConfigMap(ApiModel):
    """A key of one of the two."""

    secret: KeySelector | None = None
    config_map: KeySelector | None = None


class TLSConfig(ApiModel):
    """Certificates for the connection."""

    ca: SecretOrConfigMap | None = None
    cert: SecretOrConfigMap | None = None
    key_secret: KeySelector | None = None
    server_name: str | None = None
    insecure_skip_verify: bool | None = None


class BasicAuth(ApiModel):
    """User name and password."""

    username: KeySelector | None = None
    password: KeySelector | None = None


class Authorization(ApiModel):
    """The header `Authorization`."""

    type: str | None = None
    credentials: KeySelector | None = None


class OAuth2(ApiModel):
    """Client credentials of OAuth 2."""

    client_id: SecretOrConfigMap
    client_secret: KeySelector
    token_url: str
    scopes: list[str] | None = None
    endpoint_params: dict[str, str] | None = None
    tls_config: TLSConfig | None = None
    proxy_connect_header: dict[str, list[KeySelector]] | None = None


class Endpoint(ApiModel):
    """A port of the Service that is scraped."""

    port: str | None = None
    target_port: int | str | None = None
    path: str | None = None
    scheme: str | None = None
    interval: str | None = None
    scrape_timeout: str | None = None
    honor_labels: bool | None = None
    params: dict[str, list[str]] | None = None
    relabelings: list[RelabelConfig] | None = None
    metric_relabelings: list[RelabelConfig] | None = None
    authorization: Authorization | None = None
    basic_auth: BasicAuth | None = None
    bearer_token_secret: KeySelector | None = None
    oauth2: OAuth2 | None = None
    proxy_connect_header: dict[str, list[KeySelector]] | None = None
    tls_config: TLSConfig | None = None


class NamespaceSelector(ApiModel):
    """Namespaces of the Services; the namespace of the monitor if both fields are unset."""

    any: bool | None = None
    match_names: list[str] | None = None


class ServiceMonitorSpec(ApiModel):
    """Services and endpoints."""

    selector: V1LabelSelector
    endpoints: list[Endpoint]
    namespace_selector: NamespaceSelector | None = None
    job_label: str | None = None
    target_labels: list[str] | None = None
    pod_target_labels: list[str] | None = None


class ServiceMonitor(ApiObject):
    """Services that Prometheus scrapes."""

    spec: ServiceMonitorSpec


def _rule_key(name: str) -> str:
    return "for" if name == "pending_for" else name


class Rule(ApiModel):
    """An alerting rule, with `alert`, or a recording rule, with `record`."""

    # Type checkers take an alias of a field for its only name.
    model_config = ConfigDict(alias_generator=_rule_key)

    alert: str | None = None
    record: str | None = None
    expr: int | str
    pending_for: str | None = None
    keep_firing_for: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class RuleGroup(ApiModel):
    """Rules that are evaluated one after another."""

    name: str
    interval: str | None = None
    limit: int | None = None
    query_offset: str | None = Field(default=None, alias="query_offset")
    partial_response_strategy: str | None = Field(default=None, alias="partial_response_strategy")
    labels: dict[str, str] | None = None
    rules: list[Rule] | None = None


class PrometheusRuleSpec(ApiModel):
    """Groups of rules."""

    groups: list[RuleGroup] | None = None


class PrometheusRule(ApiObject):
    """Recording and alerting rules."""

    spec: PrometheusRuleSpec | None = None
