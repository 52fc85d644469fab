"""Does what a model asks for, and shows it what came of it: agent.py [URL]

Without a URL the commands run in this program, with one on the server there.
"""

import sys

from holdfast import STDOUT, HeadTail, HoldfastError, sync

SHOWN = HeadTail(head=10, tail=10)
"""What the model is shown of an output."""

WISHES = ["echo $((6 * 7)) | tr 4 5", "seq 1 1000", "echo waiting; sleep 1000", "no-such-program"]
"""They stand for a model."""


def tool(host: sync.Host, line: str) -> str:
    """Run one command line; return what the model should know of it."""
    try:
        done = host.run(
            line, shell=True, cwd=host.info.temp, capture=SHOWN, stderr=STDOUT, errors="replace", timeout=2
        )
    except HoldfastError as error:
        return f"not run: {error}"
    return f"{done.outcome}: {done.stdout!r}"


with sync.connect(sys.argv[1]) if sys.argv[1:] else sync.local() as host:
    for line in WISHES:
        print(tool(host, line), flush=True)
