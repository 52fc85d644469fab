"""Rules for files, and a look at the number of a failure."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access, Rule, Rules


def raw(path: Path) -> bytes:
    return os.fsencode(path)


def rules(*given: tuple[Path | str, Access]) -> Rules:
    return Rules([Rule(str(path), access) for path, access in given])


def ruled(*given: tuple[Path | str, Access], follow: bool = True) -> Resolver:
    return Resolver(rules(*given), follow=follow)


@contextmanager
def fails(number: int) -> Iterator[None]:
    """What is done fails with this number of the system's."""
    with pytest.raises(OSError) as failed:  # noqa: PT011  (the number is looked at)
        yield
    assert errno.errorcode[failed.value.errno or 0] == errno.errorcode[number]
