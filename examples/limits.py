"""Runs one command within limits and says how it ended: limits.py ws://IP:PORT [COMMAND ARGUMENT...]"""

from __future__ import annotations

import json
import sys
from typing import Any

from websockets.sync.client import connect

BOUNDS = {
    "timeoutMs": 5000,
    "graceMs": 500,
    "outputBytesLimit": 1 << 20,
    "limits": {"memoryBytes": 256 << 20, "cpuSeconds": 1, "processes": 16},
}


def run(url: str, argv: list[str]) -> dict[str, Any]:
    """Start ``argv`` on the server at ``url``; return what is told of its end."""
    with connect(url, max_size=None) as server:
        # `holdfast` says that we know the extensions: then every end has an outcome.
        greeting = {"clientName": "limits", "holdfast": 1}
        server.send(json.dumps({"id": 1, "method": "initialize", "params": greeting}))
        server.send(json.dumps({"method": "initialized"}))
        start = {
            "processId": "bounded",
            "argv": argv,
            "cwd": "file:///",
            "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
            "tty": False,
            **BOUNDS,
        }
        server.send(json.dumps({"id": 2, "method": "process/start", "params": start}))
        for text in server:
            message = json.loads(text)
            if "error" in message:
                sys.exit(message["error"]["message"])
            if message.get("id") == 2:
                print("kept by:", message["result"]["limits"])
            if message.get("method") == "process/exited":
                end: dict[str, Any] = message["params"]
                return end
    sys.exit("the server has gone")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    told = run(sys.argv[1], sys.argv[2:] or ["sh", "-c", "sleep 60 & sleep 60"])
    print("outcome:", told["outcome"])
    print("usage:", told["usage"])
