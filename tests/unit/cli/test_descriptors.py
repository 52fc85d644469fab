"""The descriptors we were started with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.cli.descriptors import open_standard_files


@pytest.mark.slow
def test_closed_ones_are_taken_and_others_are_left_alone() -> None:
    script = (
        "import os\n"
        "from holdfast.cli.descriptors import open_standard_files\n"
        "os.close(0); os.close(2)\n"
        "open_standard_files()\n"
        "print(os.readlink('/proc/self/fd/0'), os.readlink('/proc/self/fd/2'), os.open('/', 0) > 2)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "/dev/null /dev/null True\n"


def test_with_all_of_them_nothing_changes() -> None:
    before = os.listdir("/proc/self/fd")

    open_standard_files()

    assert os.listdir("/proc/self/fd") == before
