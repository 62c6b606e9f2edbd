"""Settings of the VPSie API: addresses, headers and names of fields."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from ocf.errors import ConfigError

__all__ = ["FieldNames", "Paths", "VPSieSettings"]

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths of the calls, relative to the base URL; `{cluster}` and `{group}` are filled in."""

    token: str = "/auth/from/api"  # noqa: S105 (an address)
    offers: str = "/k8s/offers"
    cluster: str = "/k8s/cluster/byId/{cluster}"
    groups: str = "/k8s/node/groups/byClusterId/{cluster}"
    add_group: str = "/k8s/cluster/add/group"
    add_worker: str = "/k8s/cluster/byId/{cluster}/add/slave/group/{group}"
    delete_worker: str = "/k8s/cluster/byId/{cluster}/delete/slave"


@dataclass(frozen=True, slots=True)
class FieldNames:
    """Names of fields in responses; the first one that is present and not empty is read."""

    workers: tuple[str, ...] = ("nodes", "slaves")
    identifier: tuple[str, ...] = ("identifier", "node_id", "id")
    host_name: tuple[str, ...] = ("hostname",)
    address: tuple[str, ...] = ("ip", "default_ip", "private_ip")
    role: tuple[str, ...] = ("role", "node_type")
    created: tuple[str, ...] = ("created_on",)
    monthly_price: tuple[str, ...] = ("price",)
    hourly_price: tuple[str, ...] = ("hourly_price",)
    disk: tuple[str, ...] = ("disk", "ssd")


@dataclass(frozen=True, slots=True)
class VPSieSettings:
    """How to call the VPSie API for one cluster.

    Args:
        cluster: UUID of the cluster.
        datacenters: Identifiers of the datacenters whose instance types are offered; at least one.
        base_url: Base URL, without a slash at its end; https, except on this machine.
        token_header: Header of a fixed token. `Authorization` sends `Bearer` and the token, any other header the token.
        refused_texts: Parts of messages, in lower case, of errors that a retry cannot help.
        exhausted_texts: Parts of messages, in lower case, of errors that say that a size is sold out. None are known.
        manager_roles: Values of a worker's role that mark nodes of the control plane, which are never touched.
        timeout: Longest duration of a request.
        paths: Paths of the calls.
        fields: Names of fields in responses.

    Raises:
        ConfigError: If the base URL is not https, or cluster or datacenters are missing.

    Example:
        >>> VPSieSettings("b2f0", ("fra",), base_url="http://api.example.com")
        Traceback (most recent call last):
        ocf.errors.ConfigError: base_url must start with https://, got 'http://api.example.com'
    """

    cluster: str
    datacenters: tuple[str, ...]
    base_url: str = "https://api.vpsie.com/v2"
    token_header: str = "Vpsie-Auth"  # noqa: S105 (the name of a header)
    refused_texts: tuple[str, ...] = (
        "exceeds the allowed limit",
        "quota exceeded",
        "plan does not allow",
        "maximum number of",
        "limit reached",
        "subscription does not allow",
        "has same selected size",
    )
    exhausted_texts: tuple[str, ...] = ()
    manager_roles: frozenset[str] = frozenset({"master", "manager", "control-plane"})
    timeout: timedelta = timedelta(seconds=30)
    paths: Paths = field(default_factory=Paths)
    fields: FieldNames = field(default_factory=FieldNames)

    def __post_init__(self) -> None:
        address = urlsplit(self.base_url)
        if address.scheme != "https" and not (address.scheme == "http" and address.hostname in _LOOPBACK):
            raise ConfigError(f"base_url must start with https://, got {self.base_url!r}")
        if not self.cluster or not self.datacenters:
            raise ConfigError("cluster and datacenters must not be empty")
