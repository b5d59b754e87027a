"""Render pages in Chromium, by Playwright; the browser has no network.

Each page has a context of its own, without cookies and storage. Every request is intercepted: the
page itself is answered with the response that the crawl already has, other requests by the crawl's
own downloader, or not at all. What evades the interception finds no network: a launcher that
Playwright starts as if it were the browser executes it in an empty network namespace where the
kernel allows that, without even the loopback of the machine; and in any case the browser resolves
no name, has a proxy that does not exist, and sends no UDP.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from focused.child_processes import inherited_environment
from focused.rendering.page_run import CLOSE_S, START_S, OpenBrowser, PageRun
from focused.rendering.subrequests import (
    FetchSubrequest,
    RenderFailure,
    RenderLimits,
    RenderResult,
)
from focused.web.page import Fetched

logger = logging.getLogger(__name__)

PAGES_PER_BROWSER = 500
"""Pages after which a new browser is started."""

_WATCH_S = 0.1
_MAX_FAILED_STARTS = 4
_MAX_BACKOFF_S = 60.0

_ARGUMENTS = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://none.invalid:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-notifications",
    "--disable-speech-api",
    "--disable-file-system",
    "--dns-prefetch-disable",
    "--no-pings",
    "--blink-settings=imagesEnabled=false",
    "--site-per-process",
)


class BrowserUnavailableError(Exception):
    """No browser can be started."""


class ChromiumRenderer:
    """A renderer over one Chromium, which starts with the first page; in a running asyncio loop."""

    def __init__(
        self,
        limits: RenderLimits,
        clock: Callable[[], float],
        *,
        browser_path: str | None = None,
        sandbox: bool = True,
        user_agent: str | None = None,
        unshare: bool | None = None,
    ) -> None:
        """``clock`` returns monotonic seconds; ``browser_path`` None looks on the PATH.

        ``unshare`` False leaves the network namespace out; None uses one where that works.
        """
        self._limits = limits
        self._clock = clock
        self._path = browser_path
        self._sandbox = sandbox
        self._user_agent = user_agent
        self._unshare = unshare
        self._slots = asyncio.Semaphore(limits.pages)
        self._starting = asyncio.Lock()
        self._current: OpenBrowser | None = None
        self._failed_starts = 0
        self._may_start_at = 0.0
        self._is_closed = False

    async def render(self, fetched: Fetched, fetch: FetchSubrequest) -> RenderResult:
        """Render a response whose body is HTML; ``fetch`` serves what its scripts request.

        Never raises for what a page or browser does.
        """
        async with self._slots:
            try:
                current = await self._open()
            except BrowserUnavailableError as error:
                return RenderResult(failure=RenderFailure.NO_BROWSER, detail=str(error))
            current.in_use += 1
            current.pages += 1
            run = PageRun(current, fetched, fetch, self._limits, self._clock)
            try:
                result = await run.render(self._user_agent)
            finally:
                current.in_use -= 1
            if run.is_browser_lost or not current.browser.is_connected():
                await self._discard(current)
            if result.failure is RenderFailure.CRASHED:
                self._back_off()
            elif result.html is not None:
                self._failed_starts = 0
            return result

    async def close(self) -> None:
        """End the browser with all its processes."""
        self._is_closed = True
        if self._current is not None:
            await self._discard(self._current)

    async def _open(self) -> OpenBrowser:
        async with self._starting:
            current = self._current
            if (
                current is not None
                and current.browser.is_connected()
                and (current.pages < PAGES_PER_BROWSER or current.in_use)
            ):
                return current
            if current is not None:
                await self._discard(current)
            if self._is_closed:
                raise BrowserUnavailableError("the crawl ends")
            if self._failed_starts >= _MAX_FAILED_STARTS:
                raise BrowserUnavailableError("the browser failed too often")
            try:
                current = self._current = await self._start_patiently()
            except BrowserUnavailableError:
                self._failed_starts = _MAX_FAILED_STARTS
                raise
            return current

    async def _start_patiently(self) -> OpenBrowser:
        """Start the browser, a few times if it fails. Raises BrowserUnavailableError."""
        while True:
            wait_s = self._may_start_at - self._clock()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            try:
                return await self._start()
            except BrowserUnavailableError:
                raise
            except Exception as error:  # Playwright's, or the system's
                self._back_off()
                if self._failed_starts >= _MAX_FAILED_STARTS:
                    detail = str(error).strip().partition("\n")[0][:200]
                    raise BrowserUnavailableError(f"the browser did not start: {detail}") from error

    def _back_off(self) -> None:
        self._failed_starts += 1
        self._may_start_at = self._clock() + min(2.0 ** (self._failed_starts - 2), _MAX_BACKOFF_S)

    async def _start(self) -> OpenBrowser:
        browser_path = check_browser(self._path, sandbox=self._sandbox)
        from playwright.async_api import async_playwright  # slow to import

        if self._unshare is None:
            self._unshare = can_unshare_network()
        folder = Path(tempfile.mkdtemp(prefix="focused-browser-"))
        launcher = write_launcher(folder, browser_path, unshare=self._unshare)
        playwright = await async_playwright().start()
        try:
            heap_mb = int(self._limits.memory_mb / 3)
            browser = await playwright.chromium.launch(
                executable_path=launcher,
                args=[*_ARGUMENTS, f"--js-flags=--max-old-space-size={heap_mb}"],
                ignore_default_args=["--disable-popup-blocking"],
                chromium_sandbox=self._sandbox,
                # The crawl decides when it ends.
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=START_S * 1000,
                env={**inherited_environment(), "HOME": str(folder), "TMPDIR": str(folder)},
            )
        except BaseException:
            _end_processes(folder)
            with suppress(Exception):
                await asyncio.wait_for(playwright.stop(), CLOSE_S)
            raise
        pid, driver_pid = read_pids(folder) or (0, 0)
        opened = OpenBrowser(playwright, browser, folder, pid, driver_pid)
        opened.watchdog = asyncio.ensure_future(self._watch(opened))
        atexit.register(_end_processes, folder)
        logger.info(
            "started %s, %s", browser_path, "without network" if self._unshare else "offline"
        )
        return opened

    async def _discard(self, current: OpenBrowser) -> None:
        """End a browser, whatever state it is in."""
        if self._current is current:
            self._current = None
        if current.is_over:
            return
        current.is_over = True
        if current.watchdog is not None:
            current.watchdog.cancel()
        tree = process_tree(current.pid) if current.pid else []
        with suppress(Exception):
            await asyncio.wait_for(current.browser.close(), CLOSE_S)
        for pid in tree:
            kill_tree(pid)
        try:
            await asyncio.wait_for(current.playwright.stop(), CLOSE_S)
        except Exception:  # Playwright's; the driver may hang
            if current.driver_pid:
                kill_tree(current.driver_pid)
        atexit.unregister(_end_processes)
        shutil.rmtree(current.folder, ignore_errors=True)

    async def _watch(self, current: OpenBrowser) -> None:
        """Kill the largest page process when the browser exceeds its memory, then the browser."""
        limit_bytes = self._limits.memory_mb * 1e6
        has_killed = False
        while True:
            await asyncio.sleep(_WATCH_S if current.in_use else 10 * _WATCH_S)
            used = {pid: memory_bytes(pid) for pid in process_tree(current.pid)}
            if sum(used.values()) <= limit_bytes:
                has_killed = False
                continue
            current.killed_for_memory = True
            pages = [pid for pid in used if is_page_process(pid)]
            if has_killed or not pages:
                kill_tree(current.pid)
                return
            has_killed = True
            kill_tree(max(pages, key=used.__getitem__))


def check_browser(path: str | None, *, sandbox: bool) -> str:
    """Return the path of a browser that can be started. Raises BrowserUnavailableError."""
    try:
        import playwright  # noqa: F401
    except ModuleNotFoundError:
        raise BrowserUnavailableError(
            "playwright is not installed: pip install 'focused-crawler[javascript]'"
        ) from None
    found = find_browser(path)
    if found is None and path is not None:
        raise BrowserUnavailableError(f"FOCUSED_JAVASCRIPT_BROWSER: {path} is no program")
    if found is None:
        raise BrowserUnavailableError(
            "no browser is installed: apt install chromium, or set FOCUSED_JAVASCRIPT_BROWSER"
        )
    if sandbox and hasattr(os, "geteuid") and os.geteuid() == 0:
        raise BrowserUnavailableError(
            "Chromium's sandbox does not work as root: run the crawl as another user, or set "
            "FOCUSED_JAVASCRIPT_SANDBOX = False"
        )
    return found


def _end_processes(folder: Path) -> None:
    pids = read_pids(folder)
    if pids is not None:
        kill_tree(pids[0])
    shutil.rmtree(folder, ignore_errors=True)


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
"""Names of the browser on the PATH, in this order."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_UNSHARE = ("unshare", "--user", "--net", "--map-current-user", "--")
_PROBE_S = 10.0


def find_browser(path: str | None) -> str | None:
    """Return the path of the browser: ``path``, or the first one on the PATH."""
    if path is not None:
        return path if os.access(path, os.X_OK) and Path(path).is_file() else None
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def can_unshare_network() -> bool:
    """Whether a process can be started without network (Linux, user namespaces)."""
    try:
        probe = subprocess.run(
            [*_UNSHARE, "true"],
            check=False,
            capture_output=True,
            timeout=_PROBE_S,
            env=inherited_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def write_launcher(folder: Path, browser: str, *, unshare: bool) -> Path:
    """Write the launcher into ``folder``; return its path."""
    path = folder / "launcher"
    command = shlex.join([*(_UNSHARE if unshare else ()), browser])
    pid_file = shlex.quote(str(folder / "pids"))
    path.write_text(f'#!/bin/sh\necho $$ $PPID > {pid_file}\nexec {command} "$@"\n')
    path.chmod(0o700)
    return path


def read_pids(folder: Path) -> tuple[int, int] | None:
    """Return the process ids of browser and driver that the launcher in ``folder`` wrote."""
    try:
        browser, driver = map(int, (folder / "pids").read_text().split())
        return browser, driver
    except (OSError, ValueError):
        return None


def process_tree(pid: int) -> list[int]:
    """Return a process and its descendants (Linux; elsewhere the process alone)."""
    found = [pid]
    for each in found:
        found += _children(each)
    return found


def memory_bytes(pid: int) -> int:
    """Return the memory of a process that it does not share; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def is_page_process(pid: int) -> bool:
    """Whether the process runs the scripts of pages."""
    try:
        return b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def kill_tree(pid: int) -> None:
    """Kill a process, its descendants, and its process group if it leads one."""
    tree = process_tree(pid)
    with suppress(OSError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
    for each in tree:
        with suppress(OSError):
            os.kill(each, signal.SIGKILL)


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                yield from map(int, (task / "children").read_text().split())
