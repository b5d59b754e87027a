"""One replayed answer on the wire: which headers still hold, bodies whole, slow or cut."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiohttp import web
from multidict import CIMultiDict

from focused.recorded.faults import Fault, FaultKind

# RFC 9110, section 7.6.1: for one connection only. The last two describe the
# body as it travelled then; it is kept decoded.
_NOT_PASSED_ON = frozenset(
    {
        "connection",
        "proxy-connection",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "proxy-authenticate",
        "content-length",
        "content-encoding",
    }
)
_SLOW_BEAT_S = 0.05


def headers_to_pass_on(recorded: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the recorded headers that still hold for a decoded body on a new connection."""
    headers = CIMultiDict(recorded)
    gone = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    for name in {name.lower() for name in headers} & (_NOT_PASSED_ON | gone):
        headers.popall(name)
    # aiohttp would say application/octet-stream; empty is nearest to "not told".
    headers.setdefault("Content-Type", "")
    return headers


async def send(
    request: web.BaseRequest, response: web.Response, fault: Fault | None
) -> web.StreamResponse:
    """Send the response as the fault has it; return what aiohttp shall regard as sent."""
    kind = None if fault is None else fault.kind
    if kind is FaultKind.DROP_HEADERS and request.transport is not None:
        request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/ht")
        request.transport.close()
    elif kind in (FaultKind.DROP_BODY, FaultKind.SLOW) and request.method != "HEAD":
        assert fault is not None and isinstance(response.body, bytes)
        return await _send_in_pieces(request, response, response.body, fault.bytes_per_s)
    else:
        await response.prepare(request)
        await response.write_eof()
    return response


async def _send_in_pieces(
    request: web.BaseRequest, response: web.Response, body: bytes, bytes_per_s: float | None
) -> web.StreamResponse:
    """Send the body slowly or, without a speed, half of it and then hang up."""
    pieces = web.StreamResponse(status=response.status, headers=response.headers)
    pieces.content_length = len(body)
    await pieces.prepare(request)
    if bytes_per_s is None:
        await pieces.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()
        return pieces
    step = max(1, int(bytes_per_s * _SLOW_BEAT_S))
    for at in range(0, len(body), step):
        piece = body[at : at + step]
        await asyncio.sleep(len(piece) / bytes_per_s)
        await pieces.write(piece)
    await pieces.write_eof()
    return pieces
