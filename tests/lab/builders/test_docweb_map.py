"""The map of the documentation web."""

from itertools import pairwise

from focused.web.urls import host_of, normalize_url
from focused_lab.builders.docweb_rules import (
    TIERS,
    load_aliases,
    load_disallowed_paths,
    load_doc_packages,
)


def test_each_tier_holds_the_one_before():
    small, medium, full = (
        {package.package for package in load_doc_packages(tier)} for tier in TIERS
    )
    assert small < medium < full


def test_a_page_of_a_tier_is_a_page_of_the_next():
    for smaller, larger in pairwise(TIERS):
        with_api = {package.package for package in load_doc_packages(smaller) if package.with_api}
        assert with_api <= {p.package for p in load_doc_packages(larger) if p.with_api}


def test_the_small_tier_has_at_least_forty_packages_on_forty_hosts():
    packages = load_doc_packages("small")
    assert len(packages) >= 40
    assert len({host_of(package.base) for package in packages}) >= 40


def test_no_two_packages_stand_at_one_address():
    bases = [package.base for package in load_doc_packages("full")]
    assert len(set(bases)) == len(bases)


def test_bases_are_normalised_folders():
    for package in load_doc_packages("full"):
        assert normalize_url(package.base) == package.base
        assert package.base.endswith("/")


def test_roots_are_absolute_and_categories_are_paths_from_the_top():
    for package in load_doc_packages("full"):
        assert package.root.startswith("/usr/share/")
        assert package.category.startswith("Top/")


def test_every_alias_points_at_a_mapped_host():
    hosts = {host_of(package.base) for package in load_doc_packages("full")}
    for alias in load_aliases():
        host = alias.replacement.partition("/")[0]
        assert "\\" in host or host in hosts, alias.replacement


def test_hosts_with_rules_for_robots_are_mapped_hosts():
    hosts = {host_of(package.base) for package in load_doc_packages("full")}
    assert load_disallowed_paths().keys() <= hosts
