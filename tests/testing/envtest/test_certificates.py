"""Certificates identify users and servers, and are signed by the authority."""

from __future__ import annotations

import builtins
import ssl
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from ocf.errors import ConfigError
from ocf.testing.envtest.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def read(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def test_a_user_is_the_common_name_and_groups_are_organizations(authority: Authority) -> None:
    subject = read(authority.client("system:node:a", ["dev", "ops"]).certificate).subject
    assert [part.value for part in subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)] == ["system:node:a"]
    assert [part.value for part in subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)] == ["dev", "ops"]


def test_a_user_without_groups_has_no_organization(authority: Authority) -> None:
    """An organization that the library adds would be a group."""
    subject = read(authority.client("me").certificate).subject
    assert subject.rfc4514_string() == "CN=me"


@pytest.mark.parametrize(
    ("user", "groups"), [("system:serviceaccount:" + "a" * 43, ()), ("me", ["b" * 65]), ("me", [""]), ("", ())]
)
def test_a_name_that_a_certificate_does_not_hold_is_named(authority: Authority, user: str, groups: list[str]) -> None:
    """As in https://github.com/patrickpr/YAOG/issues/7, whose error named neither the field nor the limit."""
    with pytest.raises(ConfigError, match=r"a certificate holds names of 1 to 64 characters, got (0|65)"):
        authority.client(user, groups)
    assert read(authority.client("c" * 64).certificate).subject.rfc4514_string() == f"CN={'c' * 64}"


def test_a_user_has_no_extension_for_other_names(authority: Authority) -> None:
    """Go rejects a critical extension with an empty list."""
    with pytest.raises(x509.ExtensionNotFound):
        read(authority.client("me").certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)


def test_certificates_of_servers_and_clients_are_valid_for_a_week(authority: Authority) -> None:
    for pair in (authority.server("server"), authority.client("me")):
        certificate = read(pair.certificate)
        assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(days=7, hours=1)


def test_a_server_certificate_may_have_more_host_names(authority: Authority) -> None:
    names = read(authority.server("hooks", "hooks.shop.svc").certificate).extensions
    found = names.get_extension_for_class(x509.SubjectAlternativeName).value
    assert found.get_values_for_type(x509.DNSName) == ["localhost", "hooks.shop.svc"]
    assert [str(address) for address in found.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_every_certificate_has_files_of_its_own(authority: Authority) -> None:
    """Also if names differ only in characters that file names cannot have, or equal the administrator's."""
    pairs = [authority.client(user) for user in ("a:b", "a/b", "a-b", "a-b", "../a")]
    assert len({pair.key for pair in pairs} | {pair.certificate for pair in pairs}) == 10
    assert {pair.key.parent for pair in pairs} == {authority.certificate.parent}


def test_keys_are_readable_by_the_user_only(authority: Authority) -> None:
    keys = [authority.client("a").key, authority.server("b").key, authority.signing_keys("c").key]
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}


def shake_hands(server: ssl.SSLObject, client: ssl.SSLObject, exchange: Callable[[], None]) -> None:
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                exchange()


def test_a_server_and_a_client_of_one_authority_accept_each_other_under_strict_rules(authority: Authority) -> None:
    pair, mine = authority.server("server"), authority.client("me")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.certificate)
    serving.verify_mode = ssl.CERT_REQUIRED
    serving.load_cert_chain(pair.certificate, pair.key)
    asking = ssl.create_default_context(cafile=authority.certificate)
    asking.load_cert_chain(mine.certificate, mine.key)
    for context in (serving, asking):
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = asking.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    shake_hands(server, client, lambda: None)
    assert server.version() == client.version() == "TLSv1.3"
    assert server.getpeercert() is not None


def test_without_trustme_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "trustme":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match="needs the package trustme: pip install"):
        Authority(tmp_path)


def test_importing_the_package_loads_nothing_that_only_a_start_needs() -> None:
    heavy = {"pytest", "cryptography", "trustme", "kubernetes", "rich.progress"}
    program = f"import ocf.testing.envtest, sys; print({heavy} & sys.modules.keys() or 'none')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert done.stdout.strip() == "none"
