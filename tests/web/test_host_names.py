"""Private addresses in every notation, and registered domains."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.host_names import (
    is_local_name,
    is_private_host,
    is_public_address,
    parse_ip_address,
)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.5",
        "224.0.0.1",
        "239.255.255.250",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::8.8.8.8",
        "2002:a00:1::1",
    ],
)
def test_networks_that_are_nobodys_public_server_are_private(address):
    assert not is_public_address(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.1",
        "168.63.129.17",
        "172.15.255.255",
        "172.32.0.1",
        "192.0.1.1",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ],
)
def test_what_lies_beside_them_is_public(address):
    assert is_public_address(ip_address(address))


@pytest.mark.parametrize(
    "spelling",
    ["127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.0.0.1."],
)
def test_all_spellings_of_an_address_are_that_address(spelling):
    assert parse_ip_address(spelling) == IPv4Address("127.0.0.1")
    assert is_private_host(spelling)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "a.b.localhost"])
def test_localhost_is_this_machine_by_any_name_service(host):
    assert is_private_host(host)


@pytest.mark.parametrize(
    "host", ["a.test", "notlocalhost", "localhost.test", "10.test", "a.0x7f", "1.2.3.4.5", ""]
)
def test_a_name_tells_nothing_by_itself(host):
    assert parse_ip_address(host) is None
    assert not is_private_host(host)


@given(st.integers(0, 2**32 - 1))
def test_an_address_reads_alike_in_decimal_hexadecimal_and_octal(number):
    spellings = [str(number), hex(number), f"0{number:o}", f"[::ffff:{IPv4Address(number)}]"]
    assert {
        is_public_address(address) for each in spellings if (address := parse_ip_address(each))
    } == {is_public_address(IPv4Address(number))}


@given(st.integers(0, 2**128 - 1))
def test_an_address_of_a_url_is_private_by_its_host_when_it_is_by_its_value(number):
    address = IPv6Address(number)
    host = ada_url.URL(f"http://[{address}]/").hostname
    assert is_private_host(host) == (not is_public_address(address))


@given(st.text(max_size=30))
def test_no_text_raises(host):
    assert is_private_host(host) in (True, False)


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("intranet", True),
        ("INTRANET.", True),
        ("a.local", True),
        ("metadata.google.internal", True),
        ("router.home.arpa", True),
        ("nas.lan", True),
        ("a.localhost", True),
        ("a.test", False),
        ("local.example.org", False),
        ("internal.com", False),
        ("93.184.216.34", False),
        ("[2606:2800:220::1]", False),
    ],
)
def test_names_that_only_local_networks_know_are_local(host, is_local):
    assert is_local_name(host) is is_local
