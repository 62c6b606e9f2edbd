"""Errors of addresses and CIDRs, with the texts of the API server."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf_server.validation.addresses import (
    address_errors,
    endpoint_errors,
    network_errors,
    parse_address,
    parse_network,
)


@given(address=st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_a_canonical_address_is_read_and_valid(address: IPv4Address | IPv6Address) -> None:
    expected = getattr(address, "ipv4_mapped", None) or address
    assert parse_address(str(address)) == expected
    assert bool(list(address_errors(str(address), "ip", canonical=True))) == (expected != address)


@given(address=st.ip_addresses(v=4), length=st.integers(0, 32))
def test_a_network_is_read_without_the_bits_of_the_host(address: IPv4Address, length: int) -> None:
    network = ip_network((address, length), strict=False)
    assert parse_network(f"{address}/{length}") == network
    assert bool(list(network_errors(f"{address}/{length}", "cidr"))) == (network.network_address != address)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("10.0.0", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", id="too short"),
        pytest.param("fe80::1%eth0", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", id="with a zone"),
        pytest.param("010.0.0.1", "must not have leading 0s", id="leading zeros"),
        pytest.param("::ffff:10.0.0.1", "must not be an IPv4-mapped IPv6 address", id="IPv4 in IPv6"),
        pytest.param("2001:DB8::1", 'must be in canonical form ("2001:db8::1")', id="capital letters"),
    ],
)
def test_the_problem_of_an_address_is_named(text: str, problem: str) -> None:
    assert [error.detail for error in address_errors(text, "ip", canonical=True)] == [problem]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("10.0.0.0", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)", id="no length"),
        pytest.param("10.0.0.0/08", "must not have leading 0s in IP or prefix length", id="leading zeros"),
        pytest.param("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address", id="IPv4 in IPv6"),
        pytest.param("10.0.0.1/8", "must not have bits set beyond the prefix length", id="bits of the host"),
    ],
)
def test_the_problem_of_a_network_is_named(text: str, problem: str) -> None:
    assert [error.detail for error in network_errors(text, "cidr")] == [problem]


def test_an_address_of_a_mapped_network_is_one_of_ipv4() -> None:
    assert parse_network("::ffff:10.0.0.0/104") == ip_network("10.0.0.0/8")
    assert parse_address("::ffff:10.0.0.1") == ip_address("10.0.0.1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("::", "may not be unspecified (::)", id="unspecified"),
        pytest.param("127.1.2.3", "may not be in the loopback range (127.0.0.0/8, ::1/128)", id="loopback"),
        pytest.param("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)", id="link-local"),
        pytest.param(
            "224.0.0.1",
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
            id="multicast",
        ),
    ],
)
def test_an_endpoint_cannot_have_a_special_address(text: str, words: str) -> None:
    assert [error.detail for error in endpoint_errors(text, "ip")] == [words]
