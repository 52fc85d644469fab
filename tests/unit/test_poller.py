"""One epoll for pipes, terminals, ends and sockets, behind any loop or as the loop's own selector."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from holdfast.poller import NEWS_ONLY, READABLE, WRITABLE, Poller
from tests.fakes.process import PATIENCE, eventually, open_files


class Counter:
    """A source that counts, and does something the first time."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.times = 0
        self._then = then
        self._called = asyncio.Event()

    def on_ready(self, events: int) -> None:
        self.times += 1
        if self.times == 1:
            self._then()
        self._called.set()

    async def called(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._called.wait()
        self._called.clear()


@contextmanager
def polling() -> Iterator[Poller]:
    poller = Poller()
    poller.attach(asyncio.get_running_loop())
    try:
        yield poller
    finally:
        poller.close()


@contextmanager
def pipes(count: int) -> Iterator[list[tuple[int, int]]]:
    made = [os.pipe() for _ in range(count)]
    try:
        yield made
    finally:
        for pair in made:
            for fd in pair:
                os.close(fd)


async def test_a_source_is_called_when_its_descriptor_is_readable() -> None:
    with polling() as poller, pipes(2) as [(reader, writer), (other, _)]:
        source, quiet = Counter(), Counter()
        poller.add(reader, source)
        poller.add(other, quiet)

        os.write(writer, b"x")
        await source.called()

        assert quiet.times == 0


async def test_a_source_is_called_again_as_long_as_it_is_readable() -> None:
    """So that a source may take a part and leave the rest for the next turn."""
    with polling() as poller, pipes(1) as [(reader, writer)]:
        source = Counter()
        poller.add(reader, source)
        os.write(writer, b"x")

        for _ in range(3):
            await source.called()

        assert source.times >= 3


async def test_a_source_can_wait_for_room_to_write() -> None:
    with polling() as poller, pipes(1) as [(_, writer)]:
        source = Counter()
        poller.add(writer, source, WRITABLE)

        await source.called()


async def test_a_source_that_was_removed_is_not_called_any_more() -> None:
    with polling() as poller, pipes(2) as [(one, write_one), (two, write_two)]:
        removed, barrier = Counter(), Counter()
        poller.add(one, removed)
        poller.add(two, barrier)
        poller.remove(one)

        os.write(write_one, b"x")
        os.write(write_two, b"x")
        await barrier.called()

        assert removed.times == 0


async def test_a_source_may_remove_another_of_the_same_batch() -> None:
    """One process's end can be another's: neither may be called after it is gone."""
    with polling() as poller, pipes(2) as [(one, write_one), (two, write_two)]:
        first = Counter(lambda: poller.remove(two))
        second = Counter(lambda: poller.remove(one))
        poller.add(one, first)
        poller.add(two, second)
        os.write(write_one, b"x")
        os.write(write_two, b"x")

        done, pending = await asyncio.wait(
            [asyncio.ensure_future(first.called()), asyncio.ensure_future(second.called())],
            return_when=asyncio.FIRST_COMPLETED,
        )

        for task in (*done, *pending):
            task.cancel()
        assert min(first.times, second.times) == 0


async def test_what_is_deferred_is_done_at_the_end_of_the_batch() -> None:
    """What many events lead to is done once, after the last of them."""
    order: list[str] = []
    with polling() as poller, pipes(2) as [(one, write_one), (two, write_two)]:
        for fd, name in ((one, "one"), (two, "two")):

            def ready(fd: int = fd, name: str = name) -> None:
                poller.remove(fd)
                order.append(name)
                poller.defer(lambda: order.append(f"after {name}"))

            poller.add(fd, Counter(ready))
        os.write(write_one, b"x")
        os.write(write_two, b"x")

        await eventually(lambda: len(order) == 4)

    assert sorted(order[:2]) == ["one", "two"]
    assert order[2:] == [f"after {name}" for name in order[:2]]


async def test_a_flood_leaves_the_loop_its_turns() -> None:
    """Everybody else's requests are handled between two batches."""
    with polling() as poller, pipes(600) as made:
        sources = []
        for reader, writer in made:
            sources.append(Counter())
            poller.add(reader, sources[-1])
            os.write(writer, b"x")

        await asyncio.wait_for(asyncio.gather(*(source.called() for source in sources)), PATIENCE)

        assert min(source.times for source in sources) >= 1


async def test_closing_gives_its_descriptor_back() -> None:
    before = open_files()
    with polling():
        assert len(open_files()) == len(before) + 1

    assert open_files().items() <= before.items()


async def test_deferred_work_that_fails_is_logged_and_the_rest_is_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What one client's bytes lead to must not end the loop of all, or lose the bytes of another."""
    done = asyncio.Event()

    def fail() -> None:
        raise RuntimeError("broken work")

    def ready() -> None:
        poller.remove(reader)
        poller.defer(fail)
        poller.defer(done.set)

    with polling() as poller, pipes(1) as [(reader, writer)]:
        poller.add(reader, Counter(ready))
        os.write(writer, b"x")

        async with asyncio.timeout(PATIENCE):
            await done.wait()

    assert "broken work" in caplog.text


async def test_news_are_told_once_if_that_is_wanted() -> None:
    """What stays so would keep the loop busy; what is new is told all the same."""
    with polling() as poller, pipes(1) as [(reader, writer)]:
        source = Counter()
        poller.add(reader, source, READABLE | NEWS_ONLY)
        os.write(writer, b"x")
        await source.called()
        for _ in range(20):
            await asyncio.sleep(0)
        assert source.times == 1

        os.write(writer, b"y")

        await source.called()
        assert source.times == 2


async def test_what_is_deferred_outside_a_batch_is_done_soon() -> None:
    done = asyncio.Event()
    with polling() as poller:
        poller.defer(done.set)
        assert not done.is_set()

        async with asyncio.timeout(PATIENCE):
            await done.wait()


async def test_a_source_that_fails_is_logged_and_the_others_are_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One process's trouble must not end the loop of all."""

    def fail() -> None:
        raise RuntimeError("broken source")

    with polling() as poller, pipes(2) as [(one, write_one), (two, write_two)]:
        broken, sound = Counter(fail), Counter()
        poller.add(one, broken)
        poller.add(two, sound)
        os.write(write_one, b"x")
        os.write(write_two, b"x")

        await sound.called()
        await broken.called()

    assert [record.getMessage() for record in caplog.records] == ["a source failed"]


async def test_what_a_source_waits_for_can_be_changed() -> None:
    with polling() as poller, pipes(1) as [(_, writer)]:
        source = Counter(lambda: poller.modify(writer, 0))
        poller.add(writer, source, WRITABLE)
        await source.called()
        assert source.times == 1

        poller.modify(writer, WRITABLE)
        await source.called()

        poller.remove(writer)


# As the selector of a loop.


def in_own_loop(main: Callable[[Poller], Awaitable[None]]) -> None:
    """Run in a loop whose selector is the poller, as the server does."""
    poller = Poller()
    before = open_files()
    with asyncio.Runner(loop_factory=poller.new_loop) as runner:
        runner.run(_call(main, poller))
    assert poller.epoll.closed
    assert len(open_files()) == len(before) - 1


async def _call(main: Callable[[Poller], Awaitable[None]], poller: Poller) -> None:
    async with asyncio.timeout(PATIENCE):
        await main(poller)


def test_as_a_selector_it_serves_its_sources_and_the_loops_own() -> None:
    async def main(poller: Poller) -> None:
        with pipes(2) as [(one, write_one), (two, write_two)]:
            source, of_loop = Counter(), asyncio.Event()
            poller.add(one, source)
            asyncio.get_running_loop().add_reader(two, of_loop.set)

            os.write(write_one, b"x")
            await source.called()
            assert not of_loop.is_set()
            os.write(write_two, b"x")
            await of_loop.wait()

            asyncio.get_running_loop().remove_reader(two)
            poller.remove(one)

    in_own_loop(main)


def test_as_a_selector_it_carries_streams_in_both_directions_and_to_their_end() -> None:
    """Everything else in the loop must find what it would find with any other."""

    async def main(poller: Poller) -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.read())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            data = bytes(range(256)) * 20_000
            writer.write(data)
            writer.write_eof()
            assert await reader.read() == data
            writer.close()
            await writer.wait_closed()

    in_own_loop(main)


def test_as_a_selector_it_wakes_for_timers_threads_and_refused_connections() -> None:
    async def main(poller: Poller) -> None:
        loop = asyncio.get_running_loop()
        early = loop.time()
        await asyncio.sleep(0.003)
        assert loop.time() - early >= 0.003
        assert await asyncio.to_thread(lambda: 7) == 7
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*unused.getsockname())

    in_own_loop(main)


async def test_what_the_system_has_no_room_for_is_watched_as_soon_as_it_has() -> None:
    """A descriptor that is read again later must not be forgotten for want of memory."""
    with polling() as poller, pipes(1) as [(reader, writer)]:
        source = Counter()
        # A descriptor that is watched already cannot be added: an error as good as any other.
        poller.epoll.register(reader, 0)
        poller.add_again(reader, source)
        os.write(writer, b"x")
        poller.epoll.unregister(reader)

        await source.called()
        poller.remove(reader)


async def test_what_waits_to_be_watched_can_be_removed() -> None:
    with polling() as poller, pipes(2) as [(reader, writer), (other, other_writer)]:
        removed, kept = Counter(), Counter()
        for fd, source in ((reader, removed), (other, kept)):
            poller.epoll.register(fd, 0)
            poller.add_again(fd, source)
        poller.remove(reader)
        for end in (writer, other_writer):
            os.write(end, b"x")
        for fd in (reader, other):
            poller.epoll.unregister(fd)

        await kept.called()
        assert removed.times == 0
        poller.remove(other)


@pytest.mark.parametrize("what", ["call_soon", "call_later"])
def test_what_a_source_gives_its_loop_to_do_is_done_at_once(what: str) -> None:
    """The selector goes on by itself only while the loop has nothing to do."""

    async def main(poller: Poller) -> None:
        loop = asyncio.get_running_loop()
        with pipes(1) as [(reader, writer)]:
            done: asyncio.Future[None] = loop.create_future()

            def give() -> None:
                os.read(reader, 1)
                if what == "call_soon":
                    loop.call_soon(done.set_result, None)
                else:
                    loop.call_later(0.01, done.set_result, None)

            poller.add(reader, Counter(give))
            os.write(writer, b"x")
            await done
            poller.remove(reader)

    in_own_loop(main)


def test_a_loop_that_a_source_stops_is_stopped_before_the_next_event() -> None:
    poller = Poller()
    with asyncio.Runner(loop_factory=poller.new_loop) as runner, pipes(1) as [(reader, writer)]:
        source = Counter(runner.get_loop().stop)
        poller.add(reader, source)

        async def wait() -> None:
            await asyncio.sleep(0)
            os.write(writer, b"x")  # Nobody reads it: the source is ready whenever it is looked at.
            await asyncio.sleep(PATIENCE)

        with pytest.raises(RuntimeError, match="stopped before"):
            runner.run(wait())

        assert source.times == 1
        poller.remove(reader)


def test_a_timer_comes_in_time_though_a_source_has_something_to_do_without_end() -> None:
    async def main(poller: Poller) -> None:
        with pipes(1) as [(reader, writer)]:
            busy = Counter()
            poller.add(reader, busy)
            os.write(writer, b"x")  # Nobody reads it: the source is ready whenever it is looked at.

            await asyncio.sleep(0.05)

            assert busy.times > 1
            poller.remove(reader)

    in_own_loop(main)


def test_a_thread_wakes_a_loop_whose_selector_goes_on_by_itself() -> None:
    async def main(poller: Poller) -> None:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        with pipes(1) as [(reader, writer)]:
            busy = Counter()
            poller.add(reader, busy)
            os.write(writer, b"x")

            thread = threading.Thread(target=loop.call_soon_threadsafe, args=(done.set,))
            thread.start()
            await done.wait()

            thread.join()
            poller.remove(reader)

    in_own_loop(main)
