"""Tells webhooks of the ends of processes.

What must hold:

1. Nobody waits for a webhook but the task that sends to it, and each attempt has a deadline.
2. What waits to be sent is bounded; beyond that an end is not told, and counted.
3. A redirect is not followed: the operator has allowed the URL, and not where it leads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from uuid import uuid4

from holdfast.backend import HostedBackend
from holdfast.errors import HoldfastError
from holdfast.model import Exit, HttpHeader, HttpRequest
from holdfast.protocol.webhooks import end_notice
from holdfast.telemetry import Telemetry
from holdfast.webhooks import SIGNATURE, WebhookPolicy, signed

from .entries import Entry

_log = logging.getLogger(__name__)

_MOST = 1024
"""Ends that wait to be told, those that wait for another attempt included."""

_AT_ONCE = 8
"""Requests at once."""

_SECONDS = 10.0
"""For one attempt."""

_DELAYS = (1.0, 5.0, 25.0, 120.0)
"""Seconds before each further attempt: a receiver that is restarted is back by then."""

_AGAIN = frozenset((408, 425, 429))
"""Refusals that may be none a moment later, as are all of a server's own failures."""


class _Delivery:
    """One end, on its way to one URL."""

    __slots__ = ("attempts", "body", "url")

    def __init__(self, url: str, body: bytes) -> None:
        self.url = url
        self.body = body
        self.attempts = 0


class WebhookSender:
    """Sends what clients have asked for to the URLs that the operator has allowed."""

    def __init__(
        self,
        policy: WebhookPolicy,
        backend: HostedBackend,
        telemetry: Telemetry,
        *,
        delays: Sequence[float] = _DELAYS,
        most: int = _MOST,
    ) -> None:
        self._policy = policy
        self._backend = backend
        self._telemetry = telemetry
        self._delays = delays
        self._most = most
        self._pending = 0
        self._ready: deque[_Delivery] = deque()
        self._timers: dict[_Delivery, asyncio.TimerHandle] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def check(self, url: str) -> str:
        """Return a URL in its plain form.

        Raises:
            BadRequest: It may not be notified.
        """
        return self._policy.check(url)

    def ended(self, entry: Entry, end: Exit | None) -> None:
        """A process has ended for which its client wants somebody to be told."""
        if self._is_closed:
            return
        if self._pending >= self._most:
            self._telemetry.webhook_done("dropped")
            return
        name, pid = entry.request.alias, entry.process.pid
        body = end_notice(uuid4().hex, time.time(), entry.name, name, pid, end)
        self._pending += 1
        self._put(_Delivery(entry.request.notify, body))

    def _put(self, delivery: _Delivery) -> None:
        self._timers.pop(delivery, None)
        self._ready.append(delivery)
        if len(self._workers) < _AT_ONCE:
            task = asyncio.get_running_loop().create_task(self._work())
            self._workers.add(task)
            task.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        while self._ready:
            await self._attempt(self._ready.popleft())

    async def _attempt(self, delivery: _Delivery) -> None:
        delivery.attempts += 1
        status, reason = None, ""
        try:
            status = await self._post(delivery)
        except HoldfastError as error:
            reason = str(error)
        if status is not None and 200 <= status < 300:
            self._done("delivered")
        elif (status is None or status >= 500 or status in _AGAIN) and delivery.attempts <= len(self._delays):
            self._telemetry.webhook_done("retried")
            delay = self._delays[delivery.attempts - 1]
            self._timers[delivery] = asyncio.get_running_loop().call_later(delay, self._put, delivery)
        else:
            _log.warning("a webhook was not told of an end: %s", reason or f"it answered {status}")
            self._done("failed")

    async def _post(self, delivery: _Delivery) -> int:
        """Send it; return the status of the answer."""
        headers = (
            HttpHeader("content-type", "application/json"),
            HttpHeader(SIGNATURE, signed(self._policy.secret, int(time.time()), delivery.body)),
        )
        request = HttpRequest("POST", delivery.url, headers, delivery.body, timeout=_SECONDS, follow=False)
        response = await self._backend.http.request(request)
        await response.aclose()
        return response.status

    def _done(self, result: str) -> None:
        self._pending -= 1
        self._telemetry.webhook_done(result)

    def close(self) -> None:
        """Tell nobody anything more, and give up what is under way."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        for worker in self._workers:
            worker.cancel()
        self._timers.clear()
        self._ready.clear()
