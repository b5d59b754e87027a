"""Settings that send a crawl to a replay server."""

from __future__ import annotations

from typing import Any

from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError

REPLAY_SETTING = "FOCUSED_REPLAY"
_HANDLER = "focused.scrapy_addon.replay_handler.ReplayDownloadHandler"


def replay_settings(address: str) -> dict[str, Any]:
    """Return the settings that send a crawl to the replay server at ``HOST:PORT``.

    Raises ConfigurationError for an invalid address.
    """
    check_replay_address(address)
    return {
        REPLAY_SETTING: address,
        "DOWNLOAD_HANDLERS": {"http": _HANDLER, "https": _HANDLER},
    }


def install_replay(settings: BaseSettings) -> bool:
    """Enable the replay if ``FOCUSED_REPLAY`` is set; return whether it is.

    Replaces all handlers of http and https: a replayed crawl must not reach the live Web.
    """
    address = settings.get(REPLAY_SETTING)
    if not address:
        return False
    ours = replay_settings(address)["DOWNLOAD_HANDLERS"]
    handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), **ours}
    settings.set("DOWNLOAD_HANDLERS", handlers, priority="cmdline")
    return True


def check_replay_address(address: str) -> None:
    """Raise ConfigurationError for anything but ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigurationError(
            f"{REPLAY_SETTING} is {address!r}; expected HOST:PORT, such as 127.0.0.1:8080"
        )
