"""Pages in a real Chromium: what scripts add is read, and what they attack stays bounded."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from focused.rendering.chromium import ChromiumRenderer, can_unshare_network, process_tree
from focused.rendering.subrequests import RefusalReason, RenderFailure, RenderLimits, RenderResult
from tests.support.browser_pages import LIMITS, SANDBOX, Listener, Site, browser, listener, page
from tests.support.forked import is_running, wait_until

pytestmark = pytest.mark.long

PATIENT = replace(LIMITS, time_s=90.0)
JS, JSON = "text/javascript", "application/json"
URL = "https://site.example"


@dataclass
class Window:
    """A renderer and the loop that it lives in."""

    runner: asyncio.Runner
    renderer: ChromiumRenderer

    def render(self, html: str, site: Site | None = None) -> RenderResult:
        site = site or Site()
        return self.runner.run(self.renderer.render(page(html), site.fetch))


def open_window(runner: asyncio.Runner, limits: RenderLimits = LIMITS, **options: Any) -> Window:
    clock = runner.get_loop().time
    return Window(
        runner, ChromiumRenderer(limits, clock, browser_path=browser(), sandbox=SANDBOX, **options)
    )


@pytest.fixture(scope="module", params=["own network namespace", "flags alone"])
def unshare(request: Any) -> bool:
    is_own = request.param == "own network namespace"
    if is_own and not can_unshare_network():
        pytest.skip("the kernel allows no user namespaces")
    return is_own


@contextmanager
def opened_window(limits: RenderLimits, unshare: bool) -> Iterator[Window]:
    with asyncio.Runner() as runner:
        opened = open_window(runner, limits, unshare=unshare)
        yield opened
        runner.run(opened.renderer.close())


@pytest.fixture(scope="module")
def window(unshare: bool) -> Iterator[Window]:
    with opened_window(LIMITS, unshare) as opened:
        yield opened


@pytest.fixture(scope="module")
def patient_window(unshare: bool) -> Iterator[Window]:
    """A window for pages that come to rest, on a busy machine after many seconds."""
    with opened_window(PATIENT, unshare) as opened:
        yield opened


@pytest.fixture
def elsewhere() -> Iterator[Listener]:
    with listener() as opened:
        yield opened


def text_of(result: RenderResult) -> str:
    assert result.html is not None, (result.failure, result.detail)
    return result.html.decode()


def test_scripts_fetch_data_and_the_page_is_read_when_they_rest(patient_window):
    site = Site(
        {
            f"{URL}/app.js": (
                JS,
                "const s = await fetch('/api/list.json').then(r => r.json());"
                "for (const n of s) document.body.append(await fetch(n).then(r => r.text()), ' ');",
            ),
            f"{URL}/api/list.json": (JSON, '["/1.txt", "/2.txt"]'),
            f"{URL}/1.txt": ("text/plain", "first"),
            f"{URL}/2.txt": ("text/plain", "second"),
        }
    )
    result = patient_window.render('<script type=module src="/app.js"></script>', site)
    assert "first second" in text_of(result)
    assert result.requests == 4
    assert not result.is_cut


def test_waiting_for_the_host_does_not_count_for_the_time_of_a_page(unshare):
    limits = replace(LIMITS, time_s=8.0)
    site = Site(
        {f"{URL}/{n}.txt": ("text/plain", f"part {n}") for n in range(4)},
        before=lambda request: asyncio.sleep(limits.time_s / 3),
    )
    with opened_window(limits, unshare) as window:
        result = window.render(
            "<script type=module>for (let n = 0; n < 4; n++)"
            " document.body.append(await fetch(`/${n}.txt`).then(r => r.text()))</script>",
            site,
        )
    assert "part 3" in text_of(result)
    assert not result.is_cut


def test_code_that_is_busy_before_its_first_request_is_waited_for(patient_window):
    site = Site({f"{URL}/late.txt": ("text/plain", "late text")})
    result = patient_window.render(
        "<body><script>setTimeout(() => { const until = Date.now() + 800;"
        "while (Date.now() < until); fetch('/late.txt').then(r => r.text())"
        ".then(t => document.body.append(t)) }, 0)</script>",
        site,
    )
    assert "late text</body>" in text_of(result)


def test_images_fonts_media_and_beacons_are_not_fetched(window):
    site = Site()
    result = window.render(
        "<img src=/a.png><video src=/a.mp4></video><link rel=stylesheet href=/a.css>"
        "<style>@font-face {font-family: f; src: url(/f.woff)} body {font-family: f}</style>"
        "<p>text</p><script>navigator.sendBeacon('/b', 'x')</script>",
        site,
    )
    assert "<p>text</p>" in text_of(result)
    assert site.asked == []


def test_code_that_waits_for_a_style_sheet_continues(patient_window):
    result = patient_window.render(
        "<script>const l = document.createElement('link'); l.rel = 'stylesheet';"
        "l.href = '/a.css'; l.onload = () => document.body.append('after the sheet');"
        "document.head.append(l)</script>"
    )
    assert "after the sheet" in text_of(result)


def test_scripts_of_other_sites_are_refused(patient_window):
    site = Site({f"{URL}/own.js": (JS, "document.body.append('own')")})
    result = patient_window.render(
        "<body><script src=https://tracker.example/t.js></script><script src=/own.js></script>",
        site,
    )
    assert "own" in text_of(result)
    assert result.refused[RefusalReason.THIRD_PARTY] == 1
    assert site.asked == [f"{URL}/own.js"]


def test_pages_share_no_storage_and_no_cookies(window):
    script = (
        "<script>document.body.append('before:' + localStorage.x + document.cookie);"
        "localStorage.x = 1; document.cookie = 'a=b'</script>"
    )
    window.render(f"<body>{script}")
    assert "before:undefined<" in text_of(window.render(f"<body>{script}"))


def test_scripts_cannot_replace_what_reads_the_page(window):
    result = window.render(
        "<body>real<script>Object.defineProperty(Element.prototype, 'outerHTML',"
        "{get: () => 'forged'}); document.documentElement.__defineGetter__('outerHTML',"
        "() => 'forged')</script>"
    )
    assert "real" in text_of(result)


REACHING = {
    "fetch": "fetch('http://127.0.0.1:PORT/a').catch(e => 0)",
    "fetch without cors": "fetch('http://127.0.0.1:PORT/a', {mode: 'no-cors'}).catch(e => 0)",
    "post": "fetch('http://127.0.0.1:PORT/a', {method: 'POST', body: 'x'}).catch(e => 0)",
    "other notation": "fetch('http://0x7f.1:PORT/').catch(e => 0)",
    "ipv6": "fetch('http://[::ffff:127.0.0.1]:PORT/').catch(e => 0)",
    "name": "fetch('http://localhost:PORT/').catch(e => 0)",
    "metadata service": "fetch('http://169.254.169.254/latest/').catch(e => 0)",
    "image": "new Image().src = 'http://127.0.0.1:PORT/a.png'",
    "script element": (
        "const s = document.createElement('script'); s.src = 'http://127.0.0.1:PORT/a.js';"
        "document.head.append(s)"
    ),
    "frame": "document.body.innerHTML += '<iframe src=\"http://127.0.0.1:PORT/\"></iframe>'",
    "form": (
        'document.body.innerHTML += \'<form id=f method=post action="http://127.0.0.1:PORT/">'
        "</form>'; f.submit()"
    ),
    "location": "location = 'http://127.0.0.1:PORT/'",
    "popup": "open('http://127.0.0.1:PORT/')",
    "beacon": "navigator.sendBeacon('http://127.0.0.1:PORT/', 'x')",
    "ping": (
        'document.body.innerHTML += \'<a id=a href="#x" ping="http://127.0.0.1:PORT/">x</a>\';'
        "a.click()"
    ),
    "event source": "new EventSource('http://127.0.0.1:PORT/')",
    "web socket": "new WebSocket('ws://127.0.0.1:PORT/')",
    "web socket of a worker": (
        "new Worker(URL.createObjectURL(new Blob([\"new WebSocket('ws://127.0.0.1:PORT/')\"])))"
    ),
    "fetch of a worker": (
        "new Worker(URL.createObjectURL(new Blob([\"fetch('http://127.0.0.1:PORT/')\"])))"
    ),
    "web socket of a frame": (
        "document.body.innerHTML += '<iframe id=i></iframe>';"
        "new (i.contentWindow.WebSocket)('ws://127.0.0.1:PORT/')"
    ),
    "web rtc": (
        "const c = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:UDP'},"
        "{urls: 'turn:127.0.0.1:PORT?transport=tcp', username: 'u', credential: 'p'}]});"
        "c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o))"
    ),
    "web transport": "new WebTransport('https://127.0.0.1:UDP/').ready.catch(e => 0)",
    "service worker": "navigator.serviceWorker.register('/sw.js').catch(e => 0)",
    "prefetch": (
        'document.head.innerHTML += \'<link rel=prefetch href="http://127.0.0.1:PORT/">'
        '<link rel=preconnect href="http://127.0.0.1:PORT/">'
        '<link rel=dns-prefetch href="http://127.0.0.1:PORT/">\''
    ),
    "speculation": (
        "const s = document.createElement('script'); s.type = 'speculationrules';"
        's.text = \'{"prerender": [{"source": "list", "urls": ["http://127.0.0.1:PORT/"]}]}\';'
        "document.head.append(s)"
    ),
    "import": "import('http://127.0.0.1:PORT/a.js').catch(e => 0)",
    "download": (
        "document.body.innerHTML += '<a id=a download href=\"http://127.0.0.1:PORT/x.bin\">x</a>';"
        "a.click()"
    ),
    "favicon": "document.head.innerHTML += '<link rel=icon href=\"http://127.0.0.1:PORT/i.ico\">'",
    "style": "document.head.innerHTML += '<style>@import url(http://127.0.0.1:PORT/)</style>'",
}


@pytest.mark.parametrize("attack", REACHING)
def test_no_script_reaches_the_machine(window, elsewhere, attack):
    script = REACHING[attack].replace("PORT", str(elsewhere.port))
    script = script.replace("UDP", str(elsewhere.udp_port))
    site = Site()
    result = window.render(f"<body><p>still here</p><script>{script}</script>", site)
    assert "still here" in text_of(result)
    assert not elsewhere.was_reached()
    assert site.asked == []


@pytest.mark.parametrize(
    "address", ["file:///etc/hostname", "chrome://version/", "view-source:file:///etc/hostname"]
)
def test_no_script_reads_files(window, address):
    result = window.render(
        f"<body><p>still here</p><iframe src='{address}'></iframe><script>"
        f"fetch('{address}').then(r => r.text()).then(t => document.body.append('read ' + t))"
        f".catch(e => 0); setTimeout(() => location = '{address}', 0)</script>"
    )
    assert "still here" in text_of(result)
    assert "read " not in text_of(result).replace("'read '", "")


ENDLESS = {
    "alerts": ("for (let n = 0; n < 1e9; n++) alert(n)", None),
    "timers": ("setInterval(() => document.body.append('x'), 0)", None),
    "requests": ("setInterval(() => fetch('/x?' + Math.random()), 5)", None),
    "redirects": ("setInterval(() => { location = '/r?' + Math.random() }, 0)", None),
    "reloads": ("location.reload()", None),
    "popups": ("for (let n = 0; n < 500; n++) open('about:blank')", None),
    "history": ("setInterval(() => history.pushState(0, '', '/' + Math.random()), 0)", None),
    "loop": ("while (true) {}", RenderFailure.TIMEOUT),
    "promises": ("(function f() { Promise.resolve().then(f) })()", RenderFailure.TIMEOUT),
}


@pytest.mark.parametrize("attack", ENDLESS)
def test_a_page_that_never_rests_is_bounded(window, attack):
    script, failure = ENDLESS[attack]
    began = window.runner.get_loop().time()
    result = window.render(f"<body><p>still here</p><script>{script}</script>")
    assert window.runner.get_loop().time() - began < 120
    assert result.requests <= LIMITS.requests
    if failure is not None:
        assert result.failure is failure
    else:
        assert result.failure is RenderFailure.TIMEOUT or "still here" in text_of(result)
    assert "fine" in text_of(window.render("<body><script>document.write('fine')</script>"))


def test_a_memory_bomb_is_killed_and_named(window):
    patient = open_window(window.runner, PATIENT)
    result = patient.render(
        "<script>const kept = []; setInterval(() => { for (let n = 0; n < 4; n++)"
        " kept.push(new Uint8Array(5e7).fill(n)) }, 0)</script>"
    )
    window.runner.run(patient.renderer.close())
    assert result.failure is RenderFailure.MEMORY
    assert "fine" in text_of(window.render("<body><script>document.write('fine')</script>"))


def test_a_full_heap_ends_only_its_page(window):
    result = window.render("<script>const a = []; while (true) a.push({x: [1, 2, 3]})</script>")
    assert result.failure is not None  # out of memory, or too long in garbage collections
    assert "fine" in text_of(window.render("<body><script>document.write('fine')</script>"))


def test_a_huge_document_is_cut(window):
    limits = replace(PATIENT, html_bytes=100_000)
    small = open_window(window.runner, limits)
    script = "for (let n = 0; n < 20000; n++) document.body.append('many words ')"
    result = small.render(f"<body>start<script>{script}</script>")
    window.runner.run(small.renderer.close())
    assert "start" in text_of(result)
    assert len(text_of(result)) <= 100_000
    assert result.is_cut


def test_a_page_has_so_many_requests_and_bytes(window):
    limits = replace(PATIENT, requests=5)
    few = open_window(window.runner, limits)
    site = Site()
    result = few.render(
        "<script>for (let n = 0; n < 40; n++) fetch('/' + n).catch(e => 0)</script>", site
    )
    window.runner.run(few.renderer.close())
    assert len(site.asked) == result.requests == 5
    assert result.refused[RefusalReason.LIMIT] == 35
    assert result.is_cut


def test_a_killed_browser_is_replaced(window):
    assert text_of(window.render("<p>first</p>"))
    renderer = window.renderer
    before = renderer._current
    assert before is not None

    async def kill_meanwhile() -> RenderResult:
        site = Site(before=lambda request: os.kill(before.pid, signal.SIGKILL))
        html = "<script>fetch('/x')</script>"
        return await renderer.render(page(html), site.fetch)

    killed = window.runner.run(kill_meanwhile())
    assert killed.failure is RenderFailure.CRASHED
    assert "again" in text_of(window.render("<p>again</p>"))
    assert renderer._current is not before


@pytest.mark.parametrize("hangs", [False, True], ids=["driver ends", "driver hangs"])
def test_no_process_and_no_file_is_left(monkeypatch, hangs):
    # Not tmp_path: the path of Chromium's socket has a maximum length.
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        monkeypatch.setattr("tempfile.tempdir", folder)
        opened = open_window(runner)
        opened.render("<p>x</p><script>while (true) {}</script>")
        assert text_of(opened.render("<p>x</p>"))
        current = opened.renderer._current
        assert current is not None
        ours = process_tree(current.driver_pid)
        assert current.pid in ours
        assert len(ours) > 3
        if hangs:
            os.kill(current.driver_pid, signal.SIGSTOP)
        runner.run(opened.renderer.close())
        wait_until(lambda: not any(map(is_running, ours)))  # a killed process takes its time
        assert list(Path(folder).iterdir()) == []


@pytest.mark.parametrize("path", ["/nowhere/chromium", __file__])
def test_without_a_browser_pages_fail_by_name(path):
    with asyncio.Runner() as runner:
        renderer = ChromiumRenderer(
            LIMITS, runner.get_loop().time, browser_path=path, sandbox=False
        )
        result = runner.run(renderer.render(page("<p>x</p>"), Site().fetch))
    assert result.failure is RenderFailure.NO_BROWSER
    assert path in result.detail


def test_a_browser_that_does_not_start_is_tried_a_few_times(tmp_path):
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o700)
    with asyncio.Runner() as runner:
        renderer = ChromiumRenderer(
            LIMITS, runner.get_loop().time, browser_path=str(broken), sandbox=SANDBOX
        )
        result = runner.run(renderer.render(page("<p>x</p>"), Site().fetch))
    assert result.failure is RenderFailure.NO_BROWSER
    assert "did not start" in result.detail
