"""Hosts belong to partitions."""

from collections import Counter

from focused.rounds.partition import PartitionMap


def test_hosts_of_one_domain_belong_to_one_partition():
    urls = ["http://a.example.co.uk/1", "https://b.example.co.uk/", "http://example.co.uk/x?y"]
    assert len(set(map(PartitionMap(64).of_url, urls))) == 1


def test_by_host_the_hosts_of_a_domain_are_spread():
    urls = [f"http://h{n}.example.org/" for n in range(100)]
    assert len(set(map(PartitionMap(64, "host").of_url, urls))) > 30


def test_domains_are_spread_evenly():
    counts = Counter(map(PartitionMap(16).of_url, (f"http://site{n}.org/" for n in range(16_000))))
    assert len(counts) == 16
    assert max(counts.values()) < 1.15 * 1_000
