"""Which requests reach the page: one ASGI application is in front of all that Streamlit serves.

Static files and the web socket included: what is not let through here Streamlit does not see, whatever it serves.

- **Foreign names** (DNS rebinding): a page of a stranger whose name suddenly leads to this machine sends that name.
- **Foreign pages**: a browser states in ``Origin`` which page sends a request; other ports are other pages.
- **Who asks**: a token, or a proxy that has asked.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.dashboard.web.serving.access import Access
from pipeline.dashboard.web.serving.names import Place, is_loopback, read_host, read_origin, read_place, usual_form

HEALTH = "/_stcore/health"
"""Whether the page runs: the one thing that everybody may ask."""
_READING = ("GET", "HEAD")
_SHUT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Wirelake</title>
<p>This page is for those who have its token: open the link that <code>wirelake dashboard</code> printed,
or add <code>?token=…</code> with the token that its service was given.</p>
<p>If you have done so in this browser before, and a link led you here, <a href="">continue</a>.</p></html>"""
"""A browser keeps the cookie back (SameSite) on the way from another page; a click here is one from this page."""


class Gate:
    """Lets through to ``page`` what ``access`` allows, answers the rest itself, and adds ``headers`` to all answers.

    ``port`` is where it listens: browsers share cookies between the ports of a host, and another page may run there.
    """

    def __init__(self, page: ASGIApp, access: Access, port: int, headers: Mapping[str, str]) -> None:
        self._page = page
        self._headers = headers
        self._access = access
        self._cookie = f"wirelake-page-{port}"
        self._cookie_value = _derived(access.token) if access.token else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is no request (the server's begin and end).

        Raises:
            RuntimeError: the server speaks of something else.
        """
        match scope["type"]:
            case "lifespan":
                await self._page(scope, receive, send)
            case "http" | "websocket":
                answer = None if _is_health(scope) else self._refusal(scope) or self._stranger(scope)
                if answer is not None and scope["type"] == "websocket":
                    await send({"type": "websocket.close"})  # before it was accepted: the server answers 403
                else:
                    await (answer or self._inner)(scope, receive, self._guarded(send))
            case other:
                raise RuntimeError(f"nothing is known of {other} connections")

    async def _inner(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The page, which does not get ``Origin``: Streamlit would ask the internet whether an unknown one is ours."""
        kept = [(name, value) for name, value in scope["headers"] if name.lower() != b"origin"]
        await self._page({**scope, "headers": kept}, receive, send)

    def _guarded(self, send: Send) -> Send:
        """``send`` that adds the headers that a browser has to get with each answer."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        return sent

    def _refusal(self, scope: Scope) -> Response | None:
        """Why this request may not even ask: the name it uses, the page it comes from; None if it may."""
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        place = read_place(hosts[0]) if len(hosts) == 1 else None
        if place is None or not self._answers_to(place, scope):
            return _refused("This page does not answer to that name. To add it: wirelake dashboard --allow-host NAME")
        if origins:
            origin = read_origin(origins[0]) if len(origins) == 1 else None
            if origin is None or not origin.is_of(place):
                return _refused("Requests from other sites are refused.")
        if scope["type"] == "http" and scope["method"] not in _READING:
            return PlainTextResponse("This page is only read.", 405, {"Allow": ", ".join(_READING)})
        return None

    def _answers_to(self, place: Place, scope: Scope) -> bool:
        """Whether a name is ours. The address that a connection came to is: no stranger's name leads elsewhere then."""
        arrived = scope.get("server")
        reached = read_host(arrived[0]) if arrived else None
        return is_loopback(place.host) or place.host in self._access.names or place.host == reached

    def _stranger(self, scope: Scope) -> Response | None:
        """The answer to somebody who has not shown who they are; None if they have."""
        proxy, token = self._access.proxy, self._access.token
        headers = Headers(scope=scope)
        if proxy is not None:
            users = headers.getlist(proxy.header)
            if not self._is_from_proxy(scope) or len(users) != 1 or not users[0].strip():
                return _refused("This page is reached through its proxy, which says who you are.")
        if token is None or self._has_cookie(headers.getlist("cookie")):
            return None
        if scope["type"] == "http" and (link := self._opened(scope, token)) is not None:
            return link
        return HTMLResponse(_SHUT, 403, {"Cache-Control": "no-store"})

    def _is_from_proxy(self, scope: Scope) -> bool:
        peer = scope.get("client")
        if self._access.proxy is None or not peer:
            return False
        try:
            address = ipaddress.ip_address(usual_form(ipaddress.ip_address(peer[0])))
        except ValueError:
            return False
        return any(address in network for network in self._access.proxy.networks)

    def _has_cookie(self, headers: Iterable[str]) -> bool:
        pairs = (pair.strip().partition("=") for header in headers for pair in header.split(";"))
        return any(name == self._cookie and _same(value, self._cookie_value) for name, _, value in pairs)

    def _opened(self, scope: Scope, token: str) -> Response | None:
        """Where the link with the token leads: to the same address without it, which a cookie then opens."""
        parameters = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if not any(_same(value, token) for name, value in parameters if name == "token"):
            return None
        rest = urlencode([pair for pair in parameters if pair[0] != "token"])
        # One slash at its begin: two would lead to another machine.
        path = "/" + quote(scope["path"].lstrip("/"))
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303, {"Cache-Control": "no-store"})
        answer.set_cookie(self._cookie, self._cookie_value, httponly=True, samesite="strict")
        return answer


def _is_health(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["path"] == HEALTH and scope["method"] in _READING


def _refused(reason: str) -> Response:
    return PlainTextResponse(reason, 403, {"Cache-Control": "no-store"})


def _derived(token: str) -> str:
    """What the cookie holds in place of the token, which whoever reads the browser's files does not learn."""
    return hmac.new(token.encode(), b"wirelake page", hashlib.sha256).hexdigest()


def _same(given: str, right: str) -> bool:
    """Whether two texts are the same, in a time that reveals nothing about how far they are."""
    return hmac.compare_digest(
        *(hashlib.sha256(one.encode(errors="surrogateescape")).digest() for one in (given, right))
    )
