"""Runs commands without an event loop, like ``subprocess``: script.py"""

from __future__ import annotations

import holdfast


def main() -> None:
    listing = holdfast.run(["ls", "/"], capture_output=True, text=True, check=True)
    print(len(listing.stdout.splitlines()), "names in /")

    late = holdfast.run(["sh", "-c", "echo working; sleep 60"], capture_output=True, timeout=0.2)
    print("ended after", late.timeout, "seconds; it had said", late.stdout)

    with holdfast.sync.local() as host, host.start(["sort"], stdin=holdfast.PIPE) as process:
        out, _ = process.communicate(b"pear\napple\n")
        print("sorted:", (out or b"").decode().split())


if __name__ == "__main__":
    main()
