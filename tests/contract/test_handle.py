"""What a program can do with a process in its hands, wherever the process runs."""

from __future__ import annotations

import asyncio
import signal

import pytest

from holdfast import (
    DEVNULL,
    PIPE,
    STDOUT,
    Host,
    Kind,
    Outcome,
    OutOfTurn,
    Size,
    SpawnFailed,
    Stream,
)
from holdfast.errors import NoTerminal
from tests.fakes.gate import Gate, gone
from tests.fakes.process import PATIENCE

SUCCESS = Outcome(Kind.EXIT, 0)


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


# What it says.


async def test_both_outputs_and_the_exit_code_come_back(host: Host) -> None:
    handle = await host.start(sh("echo out; echo err >&2; exit 3"))

    assert await handle.communicate() == (b"out\n", b"err\n")
    assert (handle.returncode, handle.outcome) == (3, Outcome(Kind.EXIT, 3))
    assert handle.usage is not None
    assert handle.args == sh("echo out; echo err >&2; exit 3")


async def test_output_is_read_as_lines_of_text(host: Host) -> None:
    handle = await host.start(["printf", r"one\r\ntw\303\244\nrest"])

    assert [line async for line in handle.lines()] == ["one\n", "twä\n", "rest"]


async def test_lines_are_given_while_the_process_runs(host: Host, gate: Gate) -> None:
    handle = await host.start(["sh", "-c", f"echo first; {gate.shell}; echo last"])

    async with asyncio.timeout(PATIENCE):
        lines = handle.lines()
        assert await anext(lines) == "first\n"
        gate.open()
        assert [line async for line in lines] == ["last\n"]


@pytest.mark.parametrize("by", ["chunks", "streams"])
async def test_output_is_cut_at_its_limit_to_the_byte(host: Host, by: str) -> None:
    script = sh("echo one; echo two >&2; seq 1 10000; exit 3")
    handle = await host.start(script, output_limit=100, truncate_output=True)

    if by == "chunks":
        said = b"".join([data async for data in handle])
    else:
        said = b"".join(each or b"" for each in await handle.communicate())

    assert await handle.wait() == Outcome(Kind.EXIT, 3)
    assert (len(said), handle.dropped) == (100, 8 + 48_894 - 100)


async def test_a_stream_is_read_line_by_line(host: Host) -> None:
    handle = await host.start(sh("echo one; echo two; printf three"))
    assert handle.stdout is not None

    assert [line async for line in handle.stdout] == [b"one\n", b"two\n", b"three"]
    assert handle.stdout.at_eof()
    assert await handle.stdout.read() == b""


async def test_output_is_iterated_in_the_order_in_which_it_came(host: Host, gate: Gate) -> None:
    handle = await host.start(sh(f"echo out; {gate.shell}; echo err >&2; {gate.shell}; echo end"))
    chunks = []

    async for chunk in handle.chunks():
        chunks.append((chunk.stream, chunk.data))
        if len(chunks) < 3:
            await gate.reached()
            gate.open()

    assert chunks == [(Stream.STDOUT, b"out\n"), (Stream.STDERR, b"err\n"), (Stream.STDOUT, b"end\n")]


async def test_iteration_gives_the_bytes_of_both_outputs(host: Host) -> None:
    handle = await host.start(sh("echo out; echo err >&2"))

    assert sorted([data async for data in handle]) == [b"err\n", b"out\n"]


async def test_an_iteration_that_was_broken_off_goes_on(host: Host, gate: Gate) -> None:
    handle = await host.start(sh(f"echo one; {gate.shell}; echo two"))

    async for data in handle:
        assert data == b"one\n"
        break
    gate.open()

    assert [data async for data in handle] == [b"two\n"]


async def test_output_is_read_in_one_way_only(host: Host) -> None:
    """What one way has taken the other would miss, without a word."""
    streamed = await host.start(sh("echo a; echo b"))
    iterated = await host.start(sh("echo a; echo b"))
    assert streamed.stdout is not None
    assert iterated.stdout is not None
    await streamed.stdout.readline()
    await anext(iterated.chunks())

    with pytest.raises(OutOfTurn, match="through stdout and stderr"):
        await anext(streamed.chunks())
    with pytest.raises(OutOfTurn, match="chunk by chunk"):
        await iterated.stdout.read()
    with pytest.raises(OutOfTurn, match="chunk by chunk"):
        await iterated.communicate()


async def test_communicate_gives_what_was_not_read_yet(host: Host) -> None:
    handle = await host.start(sh("echo one; echo two"))
    assert handle.stdout is not None
    await handle.stdout.readline()

    assert await handle.communicate() == (b"two\n", b"")


async def test_an_output_can_be_thrown_away_or_joined_to_the_other(host: Host) -> None:
    silent = await host.start(sh("echo out; echo err >&2"), stdout=DEVNULL)
    joined = await host.start(sh("echo out; echo err >&2"), stderr=STDOUT)

    assert await silent.communicate() == (None, b"err\n")
    out, err = await joined.communicate()
    assert out is not None
    assert (sorted(out.split()), err) == ([b"err", b"out"], None)


async def test_a_terminal_says_everything_on_stdout(host: Host) -> None:
    handle = await host.start(sh("stty size; echo err >&2"), terminal=Size(rows=5, cols=70))

    assert handle.stderr is None
    assert await handle.communicate() == (b"5 70\r\nerr\r\n", None)


async def test_a_terminal_gets_another_size(host: Host, gate: Gate) -> None:
    handle = await host.start(sh(f"{gate.shell}; stty size"), terminal=True)
    piped = await host.start(sh("true"))
    await gate.reached()

    await handle.resize(Size(rows=9, cols=99))
    gate.open()

    assert await handle.communicate() == (b"9 99\r\n", None)
    with pytest.raises(NoTerminal):
        await piped.resize(Size())


@pytest.mark.slow
async def test_a_reader_that_falls_behind_holds_the_process_up_and_loses_nothing(host: Host) -> None:
    size = 20_000_000
    handle = await host.start(sh(f"yes | head -c {size}; yes n | head -c {size} >&2"))
    read = {Stream.STDOUT: 0, Stream.STDERR: 0}

    async for chunk in handle.chunks():
        read[chunk.stream] += len(chunk.data)
        await asyncio.sleep(0)  # Others come first, each time.

    assert read == {Stream.STDOUT: size, Stream.STDERR: size}


# What it is told.


async def test_input_comes_back_in_order_and_whole(host: Host) -> None:
    handle = await host.start(["cat"], stdin=PIPE)
    data = b"".join(b"%d\n" % number for number in range(500_000))

    assert await handle.communicate(data) == (data, b"")
    assert await handle.wait() == SUCCESS


async def test_a_process_that_does_not_want_its_input_is_none_the_worse_for_it(host: Host) -> None:
    ended = await host.start(["true"], stdin=PIPE)
    deaf = await host.start(sh("exec <&-; echo said"), stdin=PIPE)

    assert await ended.communicate(bytes(1_000_000)) == (b"", b"")
    assert await deaf.communicate(bytes(1_000_000)) == (b"said\n", b"")


async def test_writes_arrive_in_order_without_a_drain(host: Host) -> None:
    handle = await host.start(["cat"], stdin=PIPE)
    assert handle.stdin is not None
    assert handle.stdout is not None

    handle.stdin.write(b"one\n")
    handle.stdin.writelines([b"two\n", bytearray(b"three\n")])
    assert await handle.stdout.readline() == b"one\n"
    handle.stdin.write(b"four\n")
    handle.stdin.close()
    await handle.stdin.wait_closed()

    assert await handle.stdout.read() == b"two\nthree\nfour\n"


async def test_a_write_to_a_process_that_has_ended_breaks_at_the_drain(host: Host) -> None:
    handle = await host.start(["true"], stdin=PIPE)
    assert handle.stdin is not None
    await handle.wait()

    handle.stdin.write(bytes(200_000))

    with pytest.raises(BrokenPipeError):
        await handle.stdin.drain()
    assert handle.stdin.is_closing()
    handle.stdin.write(b"dropped")


async def test_without_a_pipe_there_is_nothing_to_read(host: Host) -> None:
    handle = await host.start(["cat"])

    assert handle.stdin is None
    assert await handle.communicate() == (b"", b"")


async def test_a_terminal_is_typed_into(host: Host) -> None:
    handle = await host.start(sh("stty -echo; echo ready; read line; echo got $line"), terminal=True)
    assert handle.stdin is not None
    assert handle.stdout is not None
    await handle.stdout.readline()

    handle.stdin.write(b"this\n")

    assert await handle.stdout.read() == b"got this\r\n"


# Its end.


async def test_several_tasks_wait_and_one_that_is_cancelled_takes_nobody_along(
    host: Host, gate: Gate
) -> None:
    handle = await host.start(sh(f"{gate.shell}; exit 4"))
    await gate.reached()
    async with asyncio.TaskGroup() as group:
        first, second = group.create_task(handle.wait()), group.create_task(handle.wait())
        await asyncio.sleep(0)

        first.cancel()
        await asyncio.sleep(0)
        gate.open()

    assert first.cancelled()
    assert second.result() == Outcome(Kind.EXIT, 4)
    assert await handle.wait() == Outcome(Kind.EXIT, 4)


async def test_the_return_code_is_minus_the_number_of_the_signal(host: Host, gate: Gate) -> None:
    handle = await host.start(sh(gate.shell))
    await gate.reached()
    assert handle.returncode is None

    await handle.terminate()

    assert (await handle.wait()).signal == signal.SIGTERM
    assert handle.returncode == -signal.SIGTERM


async def test_a_signal_is_sent_and_a_kill_cannot_be_caught(host: Host, gate: Gate) -> None:
    handle = await host.start(
        sh(f"trap 'echo usr1' USR1; trap '' TERM; {gate.shell}; while :; do sleep 1; done")
    )
    assert handle.stdout is not None
    await gate.reached()

    await handle.send_signal(signal.SIGUSR1)
    assert await handle.stdout.readline() == b"usr1\n"
    await handle.terminate()
    await handle.kill()
    await handle.wait()

    assert handle.returncode == -signal.SIGKILL
    await handle.kill()


async def test_an_end_takes_the_whole_tree_along(host: Host, gate: Gate) -> None:
    handle = await host.start(sh(f"setsid sh -c 'echo $$; {gate.shell}' & wait"))
    assert handle.stdout is not None
    other = int(await handle.stdout.readline())
    await gate.reached()

    ended = await handle.end()

    await gone(other)
    assert (ended.running, list(ended.survivors)) == (True, [])
    assert handle.outcome == Outcome(Kind.TERMINATED, None, signal.SIGKILL, "client")


async def test_leaving_the_block_ends_what_still_runs(host: Host, gate: Gate) -> None:
    async with await host.start(sh(gate.shell)) as handle:
        await gate.reached()

    assert handle.outcome is not None
    assert handle.outcome.kind is Kind.TERMINATED


async def test_wait_does_not_wait_for_those_who_hold_the_output(host: Host, gate: Gate) -> None:
    handle = await host.start(sh(f"({gate.shell}; echo late) & echo early"))
    assert handle.stdout is not None
    await gate.reached()

    async with asyncio.timeout(PATIENCE):
        assert await handle.wait() == SUCCESS
    gate.open()

    assert await handle.stdout.read() == b"early\nlate\n"


async def test_communicate_gives_those_who_hold_the_output_a_limited_time(host: Host, gate: Gate) -> None:
    handle = await host.start(sh(f"({gate.shell}) & echo early"))
    await gate.reached()

    assert await handle.communicate(drain=0.05) == (b"early\n", b"")


async def test_a_handle_can_be_used_after_the_end(host: Host) -> None:
    """Whoever is told of the end last must not be told an error."""
    handle = await host.start(sh("echo said"), stdin=PIPE)
    assert handle.stdin is not None
    await handle.wait()

    await handle.send_signal(signal.SIGTERM)
    await handle.terminate()
    handle.stdin.write_eof()
    assert not (await handle.end()).running
    assert await handle.communicate(b"unheard") == (b"said\n", b"")
    assert await handle.communicate() == (b"", b"")
    assert await handle.wait() == SUCCESS
    assert [handle.returncode, repr(handle)[:8]] == [0, "<Handle "]
    async with handle:
        pass


async def test_a_process_that_takes_too_long_is_ended_by_its_host(host: Host) -> None:
    handle = await host.start(sh("sleep 1000"), timeout=0.05)

    assert (await handle.wait()).kind is Kind.TIMEOUT


# Starts that fail.


async def test_a_start_that_fails_says_what_is_at_fault(host: Host) -> None:
    with pytest.raises(SpawnFailed, match="nowhere"):
        await host.start(["/nowhere"])
    with pytest.raises(SpawnFailed, match="missing"):
        await host.start(["true"], cwd="/missing")
