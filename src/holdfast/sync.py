"""``holdfast.sync``: the library for programs without an event loop.  Every call waits for its result.

It works in any thread, and also where an event loop already runs, as in a notebook: each host has a loop
and a thread of its own.
"""

from __future__ import annotations

from .api.sync import Completed, Handle, Host, Reader, Stdin, connect, local, run

__all__ = ["Completed", "Handle", "Host", "Reader", "Stdin", "connect", "local", "run"]
