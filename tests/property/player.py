"""Plays random scenarios against a server and holds every answer against the model."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence

from tests.fakes.client import Client, Message, Refusal, start_params, write_params
from tests.property.model import (
    COMMANDS,
    ENDLESS,
    WRITABLE,
    Book,
    Control,
    Read,
    Reconnect,
    Start,
    Step,
    Write,
)


class Player:
    """Plays one scenario in one session; every answer is held against the model."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._books: dict[str, Book] = {}
        self._writes = 0

    async def play(self, steps: Sequence[Step]) -> None:
        self._client = await self._connect(None)
        try:
            for step in steps:
                await self._step(step)
            await self._finish()
        finally:
            await self._client.close()

    async def _connect(self, session: str | None) -> Client:
        client = await Client.connect(self._url)
        client.on_message = self._hear
        await client.initialize(session)
        return client

    def _hear(self, message: Message) -> None:
        """Note every event at the moment it arrives; notifications come in the order of their numbers."""
        kind = message.get("method")
        if kind is None:
            return
        params = message["params"]
        book, seq = self._books[params["processId"]], params["seq"]
        if kind == "process/output":
            book.note_chunk(seq, params["stream"], base64.b64decode(params["chunk"]))
        elif kind == "process/exited":
            book.exited[seq] = params["exitCode"]
        else:
            assert kind == "process/closed"
            book.closed.add(seq)

    async def _step(self, step: Step) -> None:
        match step:
            case Start():
                await self._start(step)
            case Write():
                await self._write(step)
            case Read():
                await self._read(step)
            case Control(name=name, verb="signal"):
                if (book := self._books.get(name)) is not None:
                    book.interrupted = True
                answer = await self._client.call("process/signal", {"processId": name, "signal": "interrupt"})
                assert answer == {}
            case Control(name=name, verb="terminate"):
                await self._terminate(name)
            case Control(name=name):
                if (book := self._books.get(name)) is not None and book.kind not in ENDLESS:
                    await self._until_closed(book)
            case Reconnect():
                await self._reconnect(step)

    # Starts.

    async def _start(self, step: Start) -> None:
        taken = step.name in self._books
        argv, options = COMMANDS[step.kind]
        argv = [part.format(seed=step.seed) if part == "{seed}" else part for part in argv]
        requests = [("process/start", start_params(step.name, *argv, **options))]
        if not taken and step.kind != "missing":
            self._books[step.name] = Book(step.kind, step.seed)
            if step.behind == "terminate":
                self._books[step.name].terminated = True
                requests.append(("process/terminate", {"processId": step.name}))
            elif step.behind == "read":
                requests.append(("process/read", {"processId": step.name}))
        start, *behind = self._client.post_together(*requests)
        outcome = await asyncio.wait_for(start, 10)
        if taken:
            assert outcome["error"]["message"] == f"process {step.name} already exists"
        elif step.kind == "missing":
            assert outcome["error"]["data"]["fault"] == "program"
        elif "error" in outcome:
            assert step.behind == "terminate"
            assert outcome["error"]["message"] == f"process {step.name} start was cancelled"
            del self._books[step.name]
        for answer in behind:
            result = await self._client.result(answer)
            assert result.get("running", True), "a process that was just asked for can be terminated"
        if not taken and step.kind == "terminal" and step.behind != "terminate":
            book = self._books[step.name]
            await self._client.until(lambda: book.chunks)

    async def _terminate(self, name: str) -> None:
        book = self._books.get(name)
        was_over = book is None or bool(book.exited)
        surely_runs = book is not None and book.kind in ENDLESS and not book.disturbed
        if book is not None:
            book.terminated = True
        running = await self._client.terminate(name)
        assert not (running and was_over), "what has exited does not run"
        assert running or not surely_runs, "what nobody ended runs"

    # Writes.

    async def _write(self, step: Write) -> None:
        book = self._books.get(step.name)
        if step.retry and book is not None and book.write_ids:
            # Already accepted: accepted again, whatever the bytes, and not written.
            assert await self._offer(step.name, b"never written", book.write_ids[-1]) == "accepted"
        for size in step.sizes:
            data, write_id = self._new_write(size)
            was_over = book is not None and bool(book.exited)
            status = await self._offer(step.name, data, write_id)
            self._judge(book, status, was_over=was_over)
            if status == "accepted" and book is not None:
                book.accepted.append(data)
                book.write_ids.append(write_id)

    def _new_write(self, size: int) -> tuple[bytes, str]:
        self._writes += 1
        pattern = f"<{self._writes}>".encode()
        return (pattern * (size // len(pattern) + 1))[:size], f"w{self._writes}"

    async def _offer(self, name: str, data: bytes, write_id: str) -> str:
        try:
            return await self._client.write(name, data, write_id)
        except Refusal as refusal:
            return refusal.text

    def _judge(self, book: Book | None, status: str, *, was_over: bool) -> None:
        """``was_over``: the client knew of the exit before it wrote."""
        if book is None:
            assert status == "unknownProcess"
        elif book.kind not in WRITABLE or was_over:
            assert status == "stdinClosed"
        elif not book.disturbed:
            assert status == "accepted"
        elif book.terminated:
            assert status in ("accepted", "stdinClosed", "failed to write to process stdin")
        else:
            assert status in ("accepted", "stdinClosed")

    # Reads.

    async def _read(self, step: Read) -> None:
        book = self._books.get(step.name)
        after = 0 if book is None else max(0, book.known - step.back)
        params: Message = {"afterSeq": after, "waitMs": step.wait}
        if step.most is not None:
            params["maxBytes"] = step.most
        answer = await asyncio.wait_for(
            self._client.post("process/read", {"processId": step.name, **params}), 10
        )
        if book is None:
            assert answer["error"]["message"] == f"unknown process id {step.name}"
        else:
            self._take_page(book, answer["result"], after, step.most)

    def _take_page(self, book: Book, page: Message, after: int, most: int | None = None) -> None:
        """Hold a page against the rules of reading, and note what is new in it."""
        numbers = [chunk["seq"] for chunk in page["chunks"]]
        sizes = [len(base64.b64decode(chunk["chunk"])) for chunk in page["chunks"]]
        assert numbers == sorted(set(numbers))
        assert all(number > after for number in numbers)
        for chunk in page["chunks"]:
            book.note_chunk(chunk["seq"], chunk["stream"], base64.b64decode(chunk["chunk"]))
        if most is not None and numbers:
            assert page["nextSeq"] == numbers[-1] + 1
            assert sum(sizes[:-1]) < max(most, 1)
        assert page["closed"] <= page["exited"]
        assert page["exited"] == (page["exitCode"] is not None)
        assert page["failure"] is None

    # Disconnect and resume.

    async def _reconnect(self, step: Reconnect) -> None:
        """Come back after a loss; writes without an answer are repeated, in their order."""
        repeat: list[tuple[str, bytes, str]] = []
        for name, size in step.unanswered:
            if name in self._books:
                repeat.append((name, *self._new_write(size)))
                self._client.post("process/write", write_params(*repeat[-1]))
        session = self._client.session
        await (self._client.close() if step.how == "close" else self._client.abort())
        self._client = await self._connect(session)
        assert self._client.session == session
        for name, data, write_id in repeat:
            book = self._books[name]
            was_over = bool(book.exited)
            status = await self._offer(name, data, write_id)
            if status != "accepted" or book.kind not in WRITABLE:  # The first try may have been accepted.
                self._judge(book, status, was_over=was_over)
            if status == "accepted":
                book.accepted.append(data)
                book.write_ids.append(write_id)
        for name in list(self._books):
            await self._catch_up(name)

    async def _catch_up(self, name: str) -> None:
        """Read what was said while nobody was there, up to what is told anyway."""
        book = self._books[name]
        page = await self._client.read(name, afterSeq=book.known)
        self._take_page(book, page, book.known if not page["chunks"] else 0)
        self._note_end(book, page)

    def _note_end(self, book: Book, page: Message) -> None:
        """A page without a limit tells of exit and close by their numbers alone."""
        last = page["nextSeq"] - 1
        if page["closed"]:
            book.closed.add(last)
        if page["exited"] and not book.exited:
            taken = book.chunks.keys() | book.closed
            (number,) = set(range(1, last + 1)) - taken
            book.exited[number] = page["exitCode"]

    # The end.

    async def _finish(self) -> None:
        for name, book in self._books.items():
            if book.kind in ENDLESS and not book.exited:
                await self._drain(book)
                await self._terminate(name)
        for book in self._books.values():
            await self._until_closed(book)
            book.check()

    async def _drain(self, book: Book) -> None:
        """An echo that nobody disturbed gives everything back; wait for it before its end."""
        if not book.disturbed and book.kind in WRITABLE:
            prefix = len(b"ready\n") if book.kind == "terminal" else 0
            size = prefix + sum(map(len, book.accepted))
            await self._client.until(lambda: len(book.said("stdout", "pty")) >= size)

    async def _until_closed(self, book: Book) -> None:
        await self._client.until(lambda: book.closed)


async def play_all(url: str, scenarios: Sequence[Sequence[Step]]) -> None:
    """Play several scenarios at once, each in its own session."""
    results = await asyncio.gather(*(Player(url).play(steps) for steps in scenarios), return_exceptions=True)
    for steps, result in zip(scenarios, results, strict=True):
        if isinstance(result, BaseException):
            result.add_note(f"in the scenario {list(steps)!r}")
            raise result
