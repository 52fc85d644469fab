"""A thousand connections in one program, and a load that does not wait for the server.

What is due is sent when it is due, whether or not the last answer has come, so that a server that is
slow is seen to be slow.  Between two looks at the sockets nothing waits: how long that takes is kept,
because an answer that comes meanwhile is seen so much later than it came.
"""

from __future__ import annotations

import base64
import json
import select
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any

from bench.client import Client, Process
from bench.servers import Running

ECHO = b"sixty-four bytes that are written to a program and come back....\n"
BURST = 256 * 1024
_PATIENCE = 60.0


class Member(Client):
    """One of the connections; refusals are counted instead of raised."""

    room = 1 << 14

    def __init__(self, url: str, errors: Counter[str]) -> None:
        self.errors = errors
        self.asked: dict[int, Process | None] = {}
        """Requests without an answer; with the process, if it is a start."""
        super().__init__(url)

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def has_more(self) -> bool:
        return bool(self._out)

    def ask(self, method: str, params: Any, answer: Callable[[Any], None]) -> None:
        """A request whose answer is waited for at the end."""

        def answered(result: Any) -> None:
            del self.asked[number]
            answer(result)

        self.request(method, params, answered)
        number = self._next_id
        self.asked[number] = None

    def _decoded(self, message: dict[str, Any]) -> None:
        if "error" in message:
            self.errors[f"{message['error']['code']} {message['error']['message'][:80]}"] += 1
            self.asked.pop(message["id"], None)
            self._answers.pop(message["id"], None)
        else:
            super()._decoded(message)


class Crowd:
    """The load: connections, processes, and what is due when."""

    def __init__(self, server: Running, connections: int, processes: int, seed: int) -> None:
        self._chance = Random(seed)
        self.errors: Counter[str] = Counter()
        self.status, self.starts, self.echoes = array("d"), array("d"), array("d")
        """Seconds from the request to the answer; of an echo, to the last byte."""
        self.late, self.spans = array("d"), array("d")
        """Our own lag: from when it was due to when it was sent, and between two looks at the sockets."""
        self.requests = self.received = self.bursts = 0
        self._epoll = select.epoll()
        self._members = [Member(server.url, self.errors) for _ in range(connections)]
        self._by_fd = {member.fileno(): member for member in self._members}
        for member in self._members:
            self._epoll.register(member, select.EPOLLIN)
        self._turn = 0
        self._talking: set[Member] = set()
        """Those who have something to send."""
        self._sleepers: deque[tuple[Member, Process]] = deque()
        self._cats: list[tuple[Member, Process, list[float]]] = []
        self._ending: set[tuple[Member, Process, int]] = set()
        self._populate(processes)

    # Processes.

    def _populate(self, count: int) -> None:
        """Half of them sleep, half of them give back what they are given."""
        for number in range(count):
            if number % 2:
                self._start_sleeper()
            else:
                self._start_cat()
            if number % 50 == 49:
                self._wait_quiet()
        self._wait_quiet()
        self.starts = array("d")

    def _next(self) -> Member:
        self._turn = (self._turn + 1) % len(self._members)
        member = self._members[self._turn]
        self._talking.add(member)
        return member

    def _start(self, member: Member, argv: list[str], *, stdin: bool = False) -> Process:
        process = member.start(argv, stdin=stdin)
        request, began = member._next_id, time.perf_counter()
        member.asked[request] = process
        started = member._answers[request]

        def answered(result: Any) -> None:
            del member.asked[request]
            started(result)
            self.starts.append(process.answered - began)

        member._answers[request] = answered
        self.requests += 1
        return process

    def _start_sleeper(self) -> None:
        member = self._next()
        self._sleepers.append((member, self._start(member, ["/bin/sleep", "10000"])))

    def _start_cat(self) -> None:
        member, sent = self._next(), [0.0, 0.0]
        process = self._start(member, ["/bin/cat"], stdin=True)

        def got(size: int) -> None:
            self.received += size
            sent[1] -= size
            if sent[1] == 0:
                self.echoes.append(time.perf_counter() - sent[0])

        process.on_output = got
        self._cats.append((member, process, sent))

    # What is due.

    def ask_status(self) -> None:
        member, began = self._next(), time.perf_counter()
        member.ask("environment/status", None, lambda _: self.status.append(time.perf_counter() - began))
        self.requests += 1

    def write(self) -> None:
        """Something to one of those who give it back, unless the last is still under way."""
        member, process, sent = self._chance.choice(self._cats)
        if sent[1] or not process.answered:
            return
        self.requests += 1
        sent[:] = [time.perf_counter(), float(len(ECHO))]
        params = {
            "processId": process.name,
            "chunk": base64.b64encode(ECHO).decode(),
            "writeId": str(self.requests),
        }
        self._talking.add(member)
        member.send_write(json.dumps(params).encode())

    def replace(self) -> None:
        """End the oldest sleeper, and start another."""
        member, process = self._sleepers.popleft()
        member.ask("process/terminate", {"processId": process.name}, _ignore)
        self.requests += 1
        self._talking.add(member)
        self._ending.add((member, process, 0))
        self._start_sleeper()

    def burst(self) -> None:
        """A program that says much and ends."""
        member = self._next()
        self._ending.add(
            (member, self._start(member, ["/usr/bin/head", "-c", str(BURST), "/dev/zero"]), BURST)
        )

    def _look_at_ends(self) -> None:
        for each in [each for each in self._ending if each[1].done]:
            member, process, expected = each
            self._ending.discard(each)
            member.forget(process)
            if process.received != expected:
                self.errors[f"{process.received} bytes instead of {expected}"] += 1
            self.received += process.received
            self.bursts += bool(expected)

    # The loop.

    def run(self, seconds: float, rates: dict[Callable[[], None], float]) -> None:
        """Do each of these so many times a second, for so long."""
        began = time.perf_counter()
        due = {work: began + 1 / rate for work, rate in rates.items()}
        looks = began + 0.1
        end = began + seconds
        while (now := time.perf_counter()) < end:
            for work, rate in rates.items():
                while due[work] <= now:
                    self.late.append(now - due[work])
                    due[work] += 1 / rate
                    work()
            if now > looks:
                self._look_at_ends()
                looks = now + 0.1
            self._turn_once(max(0.0, min(due.values()) - time.perf_counter()))
        self._wait_quiet()
        self._look_at_ends()
        if self._ending:
            self.errors["ends that were not told"] += len(self._ending)

    def _turn_once(self, wait: float) -> None:
        for member in self._talking:
            member.flush()
        self._talking.clear()
        events = self._epoll.poll(wait)
        began = time.perf_counter()
        for fd, _ in events:
            member = self._by_fd[fd]
            member.receive()
            if member.has_more:  # The answer to a ping.
                self._talking.add(member)
        self.spans.append(time.perf_counter() - began)

    def _wait_quiet(self) -> None:
        """Wait until every request has its answer, and every end that was asked for has come."""
        deadline = time.perf_counter() + _PATIENCE
        while any(member.asked for member in self._members) or self._ending:
            self._look_at_ends()
            if time.perf_counter() > deadline:
                missing = sum(len(member.asked) for member in self._members)
                self.errors["requests without an answer"] += missing
                return
            self._turn_once(0.05)

    def close(self) -> None:
        for member in self._members:
            member.close()
        self._epoll.close()


def _ignore(result: Any) -> None:
    """That it came is enough."""
