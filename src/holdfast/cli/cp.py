"""``holdfast cp``: copies files between this file system and that of a host."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable

from holdfast.api.host import Host
from holdfast.errors import FileFailed, FileRefused
from holdfast.files import TreeCount
from holdfast.wording import counted

from .copy_sides import CopySide, FileReader, FileWriter, HostSide, LocalSide, PathKind
from .copy_streams import copy_from_input, copy_to_output
from .interrupts import cancelled_by_signals
from .options import wants_json
from .quantities import format_bytes
from .report import ExitCode, Failure, cut, is_terminal_stream, plain, say
from .show import tell_json
from .target import perform, url_of
from .terminal import screen_size

BLOCK = 1 << 20
"""Bytes of one read or write: the most that a server takes."""

_AT_ONCE = 4
"""Blocks that are requested together, so that the latency of the server is paid once for all of them."""


def cp(arguments: argparse.Namespace) -> int:
    """Copy a file or directory between this file system and that of a host."""
    _check(arguments)

    async def work(host: Host) -> int:
        here: CopySide = LocalSide()
        # Without a server both sides are this file system.
        there: CopySide = here if url_of(arguments) is None else HostSide(host.files, host.info.cwd)
        # Not if the file itself is on the screen, or somebody is typing it.
        streamed = arguments.quiet or "-" in (arguments.source, arguments.target)
        shown = is_terminal_stream(sys.stderr) and not streamed
        progress = Progress(_show if shown else _hide, time.monotonic, lambda: (screen_size() or (0, 80))[1])

        def complain(words: str) -> None:
            progress.end()
            say(words)

        copy = FileCopy(
            there if arguments.source.startswith(":") else here,
            there if arguments.target.startswith(":") else here,
            begin=progress.begin,
            advance=progress.advance,
            skip=_hide if arguments.quiet else say,
            complain=complain,
            tree=_trees(host, arguments),
        )
        try:
            with cancelled_by_signals() as received:
                await _run(copy, arguments)
        except asyncio.CancelledError:
            progress.end()
            number = received[0] if received else signal.SIGINT
            raise Failure(
                f"interrupted: {arguments.source} is not copied completely"
                f" (copied: {counted(copy.files, 'file')}, {counted(copy.bytes, 'byte')})",
                128 + number,
            ) from None
        except OSError as error:
            if arguments.target == "-" and isinstance(error, BrokenPipeError):
                raise  # Whoever reads our output has seen enough.
            raise _failure(arguments, error) from None
        finally:
            progress.end()
        if wants_json(arguments):
            tell_json({"files": copy.files, "bytes": copy.bytes, "changed": copy.changed})
        return ExitCode.FAILED if copy.changed else 0

    return perform(arguments, work, embedded=True)


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what makes no sense, whatever is at the two paths."""
    if not (arguments.source.startswith(":") or arguments.target.startswith(":")):
        raise Failure(
            "one of the two has to be on the server: put a colon before its path, such as :/tmp/file"
        )
    if arguments.target == "-" and wants_json(arguments):
        raise Failure("'-o json' and the file would both go to the standard output; leave one of them out")


async def _run(copy: FileCopy, arguments: argparse.Namespace) -> None:
    source, target = arguments.source.removeprefix(":"), arguments.target.removeprefix(":")
    if arguments.source == "-":
        await copy.from_input(0, target)
    elif arguments.target == "-":
        await copy.to_output(source, 1)
    else:
        await copy.copy(source, target, recursive=arguments.recursive)


def _failure(arguments: argparse.Namespace, error: OSError) -> Failure:
    """What did not work, with the path if that is not among the arguments."""
    words = f"cannot copy {arguments.source} to {arguments.target}: "
    if isinstance(error, FileRefused):
        return Failure(words + str(error))
    words += str(error.strerror)
    if isinstance(error, FileFailed):
        words += f" (os error {error.number})"
    where = os.fsdecode(error.filename) if error.filename else arguments.target
    return Failure(words if where in words else f"{words}: {where}")


def _trees(host: Host, arguments: argparse.Namespace) -> CopyTree | None:
    """How whole directories are copied; None if both are on the server."""
    if arguments.source.startswith(":") and arguments.target.startswith(":"):
        return None

    async def copy(source: str, target: str, advance: Callable[[int], object]) -> TreeCount:
        if arguments.target.startswith(":"):
            return await host.files.upload(source, target, on_progress=advance)
        outside = arguments.outside_links
        return await host.files.download(source, target, outside_links=outside, on_progress=advance)

    return copy


def _show(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _hide(text: str) -> None:
    """Drop a message."""


CopyTree = Callable[[str, str, Callable[[int], object]], Awaitable[TreeCount]]
"""Copies a directory, given both paths and somebody who is told the number of bytes that were transferred."""


class FileCopy:
    """Copies a file, or a directory with everything in it, block by block and in bounded memory."""

    def __init__(
        self,
        source: CopySide,
        target: CopySide,
        *,
        begin: Callable[[str, int | None], None],
        advance: Callable[[int], None],
        skip: Callable[[str], None],
        complain: Callable[[str], None],
        tree: CopyTree | None = None,
    ) -> None:
        """
        Args:
            tree: Copies whole directories; without it, file by file.
            begin: Called before each file, with its name and size.
            advance: Called with the number of bytes that were copied since the last call.
            skip: Called with a message about each path that is left out.
            complain: Called with a message about each file that changed while it was copied.
        """
        self._source = source
        self._target = target
        self._begin = begin
        self._advance = advance
        self._skip = skip
        self._complain = complain
        self._tree = tree
        self.files = 0
        self.bytes = 0
        self.changed = 0
        """Files whose size changed while they were copied."""

    async def copy(self, path: str, to: str, *, recursive: bool) -> None:
        """Copy ``path`` to ``to``, or into ``to`` if that is a directory, as the program ``cp`` does.

        Raises:
            Failure: The two paths do not allow it.
            HoldfastError, OSError: A file could not be read or written.
        """
        path = path or "."
        source, target = self._source.absolute(path), self._target.absolute(to)
        kind = await self._source.kind(source)
        if kind is PathKind.MISSING:
            raise Failure(f"there is no file {path}")
        if kind is PathKind.OTHER:
            raise Failure(f"{path} is neither a file nor a directory")
        there = await self._target.kind(target)
        if there is PathKind.DIRECTORY:
            target = os.path.join(target, os.path.basename(source) or "root")
            there = await self._target.kind(target)
        elif to.endswith("/") and kind is PathKind.FILE:
            raise Failure(f"there is no directory {to}")
        if self._source is self._target and target == source:
            raise Failure(f"{path} and {to} are the same file")
        if kind is PathKind.DIRECTORY:
            if not recursive:
                raise Failure(f"{path} is a directory; copy it with -r")
            if there not in (PathKind.DIRECTORY, PathKind.MISSING):
                raise Failure(f"{to} is there already and is not a directory")
            if self._source is self._target and target.startswith(os.path.join(source, "")):
                raise Failure(f"cannot copy {path} into itself")
            await (self._directory(source, target) if self._tree is None else self._whole(source, target))
        elif there is PathKind.DIRECTORY:
            raise Failure(f"{target} is there already and is a directory")
        else:
            await self._file(source, target)

    async def from_input(self, fd: int, to: str) -> None:
        """Copy what comes from a descriptor to a file; raises what ``copy`` does."""
        self.bytes = await copy_from_input(fd, self._target, to, self._advance)
        self.files = 1

    async def to_output(self, path: str, fd: int) -> None:
        """Copy a file to a descriptor; raises what ``copy`` does."""
        self.bytes = await copy_to_output(self._source, path, fd, self._advance)
        self.files = 1

    async def _whole(self, source: str, target: str) -> None:
        assert self._tree is not None
        self._begin(os.path.basename(source), None)
        count = await self._tree(source, target, self._advance)
        self.files, self.bytes = count.files, count.bytes
        for name in count.omitted:
            self._skip(f"{os.path.join(source, name)} is left out: it cannot be copied")

    async def _directory(self, source: str, target: str) -> None:
        # A list instead of recursion, which would limit how deep directories may be.
        waiting = [(source, target)]
        while waiting:
            source, target = waiting.pop()
            await self._target.make_directory(target)
            for name in await self._source.names(source):
                one, to = os.path.join(source, name), os.path.join(target, name)
                kind = await self._source.kind(one)
                if kind is PathKind.FILE:
                    await self._file(one, to)
                elif kind is not PathKind.DIRECTORY:
                    self._skip(f"{one} is left out: it is neither a file nor a directory")
                elif await self._source.is_link(one):
                    self._skip(f"{one} is left out: it is a link to a directory")
                else:
                    waiting.append((one, to))

    async def _file(self, source: str, target: str) -> None:
        reader = await self._source.reader(source)
        try:
            size = await reader.size()
            self._begin(os.path.basename(source), size)
            writer = await self._target.writer(target, await self._source.mode(source))
            try:
                copied, now = await self._contents(reader, writer, size)
                if copied < size and now != size:
                    await writer.discard()
                    self._change(
                        f"{source} became shorter",
                        f", from {counted(size, 'byte')} to {now}; it is not copied",
                    )
                    return
                await writer.complete(copied)
            except BaseException:
                await writer.discard()
                raise
        finally:
            reader.close()
        self.files += 1
        if now != size:
            self._change(f"{source} became longer", f"; the copy has its first {counted(size, 'byte')}")

    def _change(self, what: str, consequence: str) -> None:
        self.changed += 1
        self._complain(f"{what} while it was copied{consequence}")

    async def _contents(self, reader: FileReader, writer: FileWriter, size: int) -> tuple[int, int]:
        """Copy a file of that size; return the bytes copied, and the size that the file has at the end."""
        offset, rest = 0, b""
        while True:
            end = min(offset + _AT_ONCE * BLOCK, size)
            reads = [_block(reader, at, min(BLOCK, end - at)) for at in range(offset, end, BLOCK)]
            if end == size:
                reads.append(_block(reader, size, BLOCK))  # Empty, unless the file has grown.
            blocks = await asyncio.gather(*reads)
            if end == size:
                rest = blocks.pop()
            offset += await self._put(writer, offset, _beginning(blocks))
            if offset < end or end == size:
                break
        if offset == size and not rest:
            return offset, size
        now = await reader.size()
        if now == size == offset:
            # A file of the kernel, as in /proc, has more bytes than its size says: read to its end.
            while rest:
                offset += await self._put(writer, offset, [rest])
                rest = await _block(reader, offset, BLOCK)
        return offset, now

    async def _put(self, writer: FileWriter, offset: int, blocks: list[bytes]) -> int:
        """Write consecutive blocks, of which only the last may be short; return the number of bytes."""
        await asyncio.gather(*(writer.write(offset + n * BLOCK, block) for n, block in enumerate(blocks)))
        count = sum(map(len, blocks))
        self.bytes += count
        self._advance(count)
        return count


def _beginning(blocks: list[bytes]) -> list[bytes]:
    """Return the blocks up to the first that is not full: behind it there would be a hole."""
    short = next((n for n, block in enumerate(blocks) if len(block) < BLOCK), len(blocks))
    return blocks[: short + 1]


async def _block(reader: FileReader, offset: int, length: int) -> bytes:
    """Read ``length`` bytes from ``offset`` on; fewer only at the end of the file."""
    data = await reader.read(offset, length)
    if not data or len(data) == length:
        return data
    pieces, done = [data], len(data)
    while data and done < length:
        data = await reader.read(offset + done, length - done)
        pieces.append(data)
        done += len(data)
    return b"".join(pieces)


# Progress.

_FIRST_DRAWING = 0.5
"""Seconds before anything is drawn: most copies take less."""

_REDRAWING = 0.1
"""Seconds between two drawings."""

_BAR_WIDTH = 24
_NAME_WIDTH = 20


class Progress:
    """Draws the progress of copying files, one after the other, on one line of a terminal."""

    def __init__(
        self, write: Callable[[str], object], clock: Callable[[], float], width: Callable[[], int]
    ) -> None:
        """
        Args:
            write: Writes to the terminal.
            clock: Returns the time in seconds.
            width: Returns the number of columns that the terminal has now.
        """
        self._write = write
        self._width = width
        self._clock = clock
        self._started = clock()
        self._due = self._started + _FIRST_DRAWING
        self._name = ""
        self._size: int | None = None
        self._done = 0
        self._total = 0
        self._is_shown = False

    def begin(self, name: str, size: int | None) -> None:
        """Start with another file; ``size`` is None if it is not known."""
        self._name, self._size, self._done = plain(name), size, 0

    def advance(self, count: int) -> None:
        """Add bytes that were copied, and draw if the last drawing is old enough."""
        self._done += count
        self._total += count
        now = self._clock()
        if now >= self._due:
            self._due = now + _REDRAWING
            self._draw(now)

    def end(self) -> None:
        """Erase the line."""
        if self._is_shown:
            self._is_shown = False
            self._write("\r\x1b[K")

    def _draw(self, now: float) -> None:
        self._is_shown = True
        speed = self._total / max(now - self._started, 0.001)
        # The last column stays empty: some terminals wrap as soon as it is written to.
        line = progress_line(self._name, self._done, self._size, speed)[: max(0, self._width() - 1)]
        self._write(f"\r{line}\x1b[K")


def progress_line(name: str, done: int, size: int | None, speed: float) -> str:
    """Return one drawing: name, bar and percentage if the size is known, bytes, and bytes per second."""
    head = f"{cut(name, _NAME_WIDTH):{_NAME_WIDTH}}"
    tail = f"{format_bytes(done):>9}  {format_bytes(speed)}/s"
    if not size:
        return f"{head}  {tail}"
    share = min(1.0, done / size)
    full = int(share * _BAR_WIDTH)
    return f"{head}  [{'#' * full}{'.' * (_BAR_WIDTH - full)}] {share:4.0%}  {tail}"
