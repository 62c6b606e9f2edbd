"""Models of the Gateway API (`gateway.networking.k8s.io/v1`).

Source: https://gateway-api.sigs.k8s.io/reference/spec/, with the defaults of the definitions.
"""

from __future__ import annotations

from pydantic import Field

from ocf.objects.third_party.base import ApiModel, ApiObject, Condition

__all__ = [
    "Fraction",
    "HTTPBackendRef",
    "HTTPHeaderMatch",
    "HTTPPathMatch",
    "HTTPQueryParamMatch",
    "HTTPRequestMirrorFilter",
    "HTTPRequestRedirectFilter",
    "HTTPRoute",
    "HTTPRouteFilter",
    "HTTPRouteMatch",
    "HTTPRouteRule",
    "HTTPRouteSpec",
    "HTTPRouteStatus",
    "ParentReference",
    "RouteParentStatus",
]


class ParentReference(ApiModel):
    """A Gateway, or another parent, that a route attaches to."""

    group: str = "gateway.networking.k8s.io"
    kind: str = "Gateway"
    name: str
    namespace: str | None = None
    section_name: str | None = None
    port: int | None = None


class HTTPPathMatch(ApiModel):
    """The path of a request."""

    type: str = "PathPrefix"
    value: str = "/"


class HTTPHeaderMatch(ApiModel):
    """A header of a request."""

    type: str = "Exact"
    name: str
    value: str


class HTTPQueryParamMatch(ApiModel):
    """A query parameter of a request."""

    type: str = "Exact"
    name: str
    value: str


class HTTPRouteMatch(ApiModel):
    """Requests that a rule applies to."""

    path: HTTPPathMatch = Field(default_factory=HTTPPathMatch)
    headers: list[HTTPHeaderMatch] | None = None
    query_params: list[HTTPQueryParamMatch] | None = None
    method: str | None = None


class BackendReference(ApiModel):
    """An object that receives requests; a Service unless it names another kind."""

    group: str = ""
    kind: str = "Service"
    name: str
    namespace: str | None = None
    port: int | None = None


class Fraction(ApiModel):
    """A part of the requests."""

    numerator: int
    denominator: int = 100


class HTTPRequestMirrorFilter(ApiModel):
    """A backend that gets a copy of each request, or of a part of them."""

    backend_ref: BackendReference
    percent: int | None = None
    fraction: Fraction | None = None


class HTTPRequestRedirectFilter(ApiModel):
    """A redirect as the answer to each request."""

    status_code: int = 302


class HTTPRouteFilter(ApiModel):
    """A step in the processing of a request; fields of other types of filters are kept as they are."""

    type: str
    request_mirror: HTTPRequestMirrorFilter | None = None
    request_redirect: HTTPRequestRedirectFilter | None = None


class HTTPBackendRef(BackendReference):
    """A backend of a rule, with its share of the requests."""

    weight: int = 1
    filters: list[HTTPRouteFilter] | None = None


class HTTPRouteRule(ApiModel):
    """Matches, filters and backends."""

    name: str | None = None
    matches: list[HTTPRouteMatch] = Field(default_factory=lambda: [HTTPRouteMatch()])
    filters: list[HTTPRouteFilter] | None = None
    backend_refs: list[HTTPBackendRef] | None = None


class HTTPRouteSpec(ApiModel):
    """Parents, host names and rules of a route."""

    parent_refs: list[ParentReference] | None = None
    hostnames: list[str] | None = None
    rules: list[HTTPRouteRule] | None = None


class RouteParentStatus(ApiModel):
    """What one controller reports about one parent."""

    parent_ref: ParentReference
    controller_name: str = ""
    conditions: list[Condition] | None = None


class HTTPRouteStatus(ApiModel):
    """Reports about the parents."""

    parents: list[RouteParentStatus] | None = None


class HTTPRoute(ApiObject):
    """A route of HTTP requests from Gateways to Services."""

    spec: HTTPRouteSpec | None = None
    status: HTTPRouteStatus | None = None
