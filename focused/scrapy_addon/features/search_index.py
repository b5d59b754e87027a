"""The feature of the index pipeline: items go to a search server while the crawl runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError
from focused.scrapy_addon.driver_features import Component, DriverParts, require_library
from focused.scrapy_addon.setting import Setting, SettingType
from focused.topic import Topic

if TYPE_CHECKING:
    from focused.search.server_address import ServerAddress

SETTINGS = (
    Setting(
        "FOCUSED_INDEX_URL",
        SettingType.TEXT,
        None,
        "Index of OpenSearch, Elasticsearch or Solr that receives the items: "
        "`opensearch+https://USER@HOST:9200/INDEX`, `elasticsearch+https://...` or "
        "`solr+http://HOST:8983/solr/CORE`. The environment variable `FOCUSED_INDEX_PASSWORD` has "
        "the password. See docs/how-to/search-servers.md#while-crawling.",
    ),
    Setting(
        "FOCUSED_INDEX_CA_CERTS",
        SettingType.PATH,
        None,
        "File of certificates (PEM) to trust for `FOCUSED_INDEX_URL`.",
    ),
)

STATISTICS = {
    "indexed": "Items that the server of `FOCUSED_INDEX_URL` indexed; not in `stats.json`.",
    "index_failures": "Items that it refused or missed; not in `stats.json`.",
}


def check(settings: BaseSettings) -> None:
    """Raise ConfigurationError for an address that is unusable."""
    if settings["FOCUSED_INDEX_URL"]:
        index_address(settings)


def is_on(topic: Topic, settings: BaseSettings) -> bool:
    """Whether ``FOCUSED_INDEX_URL`` names a server."""
    return bool(settings["FOCUSED_INDEX_URL"])


def connect(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Install the pipeline; items get the fields that it indexes unless others are named."""
    from focused.search.server_address import CLIENT_LIBRARIES

    address = index_address(settings)
    require_library(CLIENT_LIBRARIES[address.kind], "FOCUSED_INDEX_URL")
    from focused.scrapy_addon.index_pipeline import INDEXED_FIELDS, IndexPipeline

    pipeline = Component(
        "ITEM_PIPELINES",
        "IndexPipeline",
        900,
        lambda driver: IndexPipeline.of_driver(address, driver),
    )
    return DriverParts(components=[pipeline], defaults={"FOCUSED_ITEM_FIELDS": INDEXED_FIELDS})


def index_address(settings: BaseSettings) -> ServerAddress:
    """Return the address in FOCUSED_INDEX_URL. Raises ConfigurationError."""
    from focused.search.server_address import parse_address

    text, ca_certs = settings["FOCUSED_INDEX_URL"], settings["FOCUSED_INDEX_CA_CERTS"]
    try:
        return parse_address(text, os.environ, None if ca_certs is None else str(ca_certs))
    except ConfigurationError as error:
        raise ConfigurationError(f"FOCUSED_INDEX_URL: {error}") from None
