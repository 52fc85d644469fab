"""Fetch what a result left out."""

import holdfast
from holdfast import HeadTail

with holdfast.sync.local() as host:
    done = host.run(["seq", "1", "100000"], capture=HeadTail(300, 300), keep=True, retain=1_000_000)
    process = host.attach(done.identifier)
    middle = process.read_range("stdout", offset=done.omitted.stdout_at, length=25)
    print(f"{len(middle.data)} of {middle.total} bytes: {middle.data.decode()!r}")
