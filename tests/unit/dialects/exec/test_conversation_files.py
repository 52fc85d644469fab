"""What one connection has to do with files: it ends with the connection."""

from __future__ import annotations

from holdfast.config import FileLimits
from holdfast.dialects.exec.conversation import ConnectionFiles, MissingWatch


class Closing:
    """An open file, or a watch: notes that it was let go of."""

    def __init__(self) -> None:
        self.count = 0

    def close(self) -> None:
        self.count += 1

    stop = close


def test_everything_ends_with_the_connection() -> None:
    files, file, watch = ConnectionFiles(FileLimits()), Closing(), Closing()
    files.handles.reserve("h")
    files.handles.reserve("still opening")
    files.handles.put("h", file)  # type: ignore[arg-type]  # All that is asked of it here.
    files.missing.begin(1)
    files.missing.put(watch)

    files.close()
    files.close()

    assert (file.count, watch.count, len(files.handles)) == (1, 1, 0)


def test_a_newer_watch_takes_the_place_of_the_last() -> None:
    missing, first = MissingWatch(), Closing()

    begun = [missing.begin(3)]
    missing.put(first)
    begun += [missing.begin(number) for number in (2, 3, 4)]

    assert (begun, first.count) == ([True, False, False, True], 1)
    assert (missing.is_latest(3), missing.is_latest(4)) == (False, True)
