"""Options of a process from its environment variables."""

from pathlib import Path
from typing import Literal

import pytest

from ocf.errors import ConfigError
from ocf.runtime.admission import FileCertificates, Service
from ocf.runtime.operator import Lease, Sharding, environment_options, environment_switch
from ocf.runtime.page import PageOptions


def test_without_variables_the_process_neither_elects_nor_serves_webhooks() -> None:
    options = environment_options("shop-operator", {})

    assert (options.namespaces, options.lease, options.admission) == ((), None, None)
    assert options.listen is not None
    assert options.listen.port == 8080
    assert options.metrics_prefix == "shop_operator"


def test_a_process_of_a_pod_uses_the_lease_of_its_namespace() -> None:
    assert environment_options("shops", {"POD_NAMESPACE": "ops"}).lease == Lease("shops", "ops")


def test_the_election_can_be_switched_off() -> None:
    assert environment_options("shops", {"POD_NAMESPACE": "ops", "LEADER_ELECTION": "false"}).lease is None


@pytest.mark.parametrize("by", ["uid", "namespace"])
def test_replicas_divide_the_owners_by_what_a_variable_says(by: Literal["uid", "namespace"]) -> None:
    options = environment_options("shops", {"POD_NAMESPACE": "ops", "SHARDING": by})
    assert options.sharding == Sharding(by=by)
    assert options.lease == Lease("shops", "ops")


def test_webhooks_are_served_for_a_service_with_a_certificate_of_their_own() -> None:
    admission = environment_options("shops", {"POD_NAMESPACE": "ops", "WEBHOOK_SERVICE": "hooks"}).admission

    assert admission is not None
    assert (admission.address, admission.port, admission.certificates) == (Service("hooks", "ops"), 9443, None)


def test_the_certificate_can_come_from_files() -> None:
    given = {"POD_NAMESPACE": "ops", "WEBHOOK_SERVICE": "hooks", "WEBHOOK_PORT": "1", "WEBHOOK_CERTIFICATES": "/certs"}
    admission = environment_options("shops", given).admission

    assert admission is not None
    assert admission.port == 1
    assert admission.certificates == FileCertificates(Path("/certs/tls.crt"), Path("/certs/tls.key"))


def test_the_page_is_served_on_the_loopback_address_if_it_has_a_port() -> None:
    assert environment_options("shops", {"PAGE_PORT": ""}).page is None
    assert environment_options("shops", {"PAGE_PORT": "9000"}).page == PageOptions(port=9000, host="127.0.0.1")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"PORT": "high"}, "PORT must be a port, 0 to 65535, got 'high'", id="port as text"),
        pytest.param({"PAGE_PORT": "on"}, "PAGE_PORT must be a port, 0 to 65535, got 'on'", id="port of the page"),
        pytest.param({"WEBHOOK_PORT": "65536"}, "WEBHOOK_PORT must be a port", id="port out of range"),
        pytest.param({"POD_NAMESPACE": "ops", "SHARDING": "name"}, "SHARDING must be uid or namespace", id="sharding"),
        pytest.param({"SHARDING": "uid"}, "SHARDING needs the lease", id="sharding without a lease"),
        pytest.param({"LEADER_ELECTION": "on"}, "LEADER_ELECTION must be true or false, got 'on'", id="switch"),
        pytest.param({"LEADER_ELECTION": "true"}, "LEADER_ELECTION needs POD_NAMESPACE", id="lease without namespace"),
        pytest.param({"WEBHOOK_SERVICE": "hooks"}, "WEBHOOK_SERVICE needs POD_NAMESPACE", id="webhooks without one"),
    ],
)
def test_an_invalid_environment_is_rejected(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        environment_options("shops", given)


@pytest.mark.parametrize(
    ("text", "value"), [pytest.param("true", True), pytest.param("false", False), pytest.param("", True)]
)
def test_an_empty_switch_has_its_default(text: str, *, value: bool) -> None:
    assert environment_switch({"STRICT": text}, "STRICT", default=True) is value
