"""What the user asks for goes before what we would choose."""

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
    assert {api["bind-address"], manager["bind-address"]} == {"127.0.0.1"}
    assert all("//127.0.0.1:" in value for name, value in etcd.items() if name.endswith("-urls"))


def test_nobody_without_a_certificate_gets_into_etcd() -> None:
    etcd = flags.etcd(2, Path("/f"), authority=CA, server=PAIR)
    assert (etcd["client-cert-auth"], etcd["trusted-ca-file"]) == ("true", str(CA))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, ["--a=1", "--b=2"], id="ours"),
        pytest.param({"b": "3"}, ["--a=1", "--b=3"], id="in the place of ours"),
        pytest.param({"c": "3"}, ["--a=1", "--b=2", "--c=3"], id="in addition"),
        pytest.param({"a": None}, ["--b=2"], id="without one of ours"),
    ],
)
def test_the_user_has_the_last_word(changes: dict[str, str | None], expected: list[str]) -> None:
    assert flags.arguments({"a": "1", "b": "2"}, changes) == expected


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        pytest.param(timedelta(milliseconds=250), "0.250000s", id="less than a second"),
        pytest.param(timedelta(minutes=2), "120.000000s", id="minutes"),
    ],
)
def test_the_period_of_autoscaling_is_in_go_s_words(period: timedelta, expected: str) -> None:
    manager = flags.controller_manager(3, kubeconfig=CA, server=PAIR, controllers=["a", "b"], hpa_sync_period=period)
    assert manager["horizontal-pod-autoscaler-sync-period"] == expected
    assert manager["controllers"] == "a,b"
