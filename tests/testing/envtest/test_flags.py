"""Flags of the user have precedence over the defaults."""

from datetime import timedelta
from pathlib import Path

import pytest

from ocf.testing.envtest import flags
from ocf.testing.envtest.certificates import CertificateFiles

PAIR = CertificateFiles(Path("/f/a.crt"), Path("/f/a.key"))
CA = Path("/f/ca.crt")


def test_everything_listens_on_loopback_only() -> None:
    api = flags.api_server(1, etcd_port=2, authority=CA, server=PAIR, client=PAIR, tokens=PAIR)
    etcd = flags.etcd(2, Path("/f"), authority=CA, server=PAIR)
    manager = flags.controller_manager(
        3, kubeconfig=CA, server=PAIR, controllers=["a"], hpa_sync_period=timedelta(seconds=1)
    )
    scheduler = flags.scheduler(4, configuration=CA, server=PAIR)
    kwok = flags.kwok(5, kubeconfig=CA, server=PAIR, stages=CA)
    assert {each["bind-address"] for each in (api, manager, scheduler)} == {"127.0.0.1"}
    assert kwok["server-address"] == "127.0.0.1:5"
    assert all("//127.0.0.1:" in value for name, value in etcd.items() if name.endswith("-urls"))


def test_etcd_requires_client_certificates() -> None:
    etcd = flags.etcd(2, Path("/f"), authority=CA, server=PAIR)
    assert (etcd["client-cert-auth"], etcd["trusted-ca-file"]) == ("true", str(CA))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, ["--a=1", "--b=2"], id="defaults"),
        pytest.param({"b": "3"}, ["--a=1", "--b=3"], id="replaced default"),
        pytest.param({"c": "3"}, ["--a=1", "--b=2", "--c=3"], id="in addition"),
        pytest.param({"a": None}, ["--b=2"], id="removed default"),
    ],
)
def test_flags_of_the_user_have_precedence(changes: dict[str, str | None], expected: list[str]) -> None:
    assert flags.arguments({"a": "1", "b": "2"}, changes) == expected


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        pytest.param(timedelta(milliseconds=250), "0.250000s", id="less than a second"),
        pytest.param(timedelta(minutes=2), "120.000000s", id="minutes"),
    ],
)
def test_the_sync_period_is_a_go_duration(period: timedelta, expected: str) -> None:
    manager = flags.controller_manager(3, kubeconfig=CA, server=PAIR, controllers=["a", "b"], hpa_sync_period=period)
    assert manager["horizontal-pod-autoscaler-sync-period"] == expected
    assert manager["controllers"] == "a,b"


def test_the_user_configures_the_scheduler() -> None:
    configuration = flags.scheduler_configuration(
        CA, {"podMaxBackoffSeconds": 1, "leaderElection": {"leaderElect": True}}
    )
    assert configuration["podMaxBackoffSeconds"] == 1
    assert configuration["leaderElection"] == {"leaderElect": True}
    assert configuration["clientConnection"]["kubeconfig"] == str(CA)
