"""Runs one command on a server and shows what it says: hello.py ws://IP:PORT [COMMAND ARGUMENT...]"""

from __future__ import annotations

import base64
import json
import sys

from websockets.sync.client import connect


def run(url: str, argv: list[str]) -> int:
    """Start ``argv`` on the server at ``url``, copy its output to ours, return its exit code."""
    code = 1
    # A server's answers can be large; how large is up to the client's requests.
    with connect(url, max_size=None) as server:
        server.send(json.dumps({"id": 1, "method": "initialize", "params": {"clientName": "hello"}}))
        server.send(json.dumps({"method": "initialized"}))
        start = {
            "processId": "hello",
            "argv": argv,
            "cwd": "file:///",
            "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
            "tty": False,
        }
        server.send(json.dumps({"id": 2, "method": "process/start", "params": start}))
        for text in server:
            message = json.loads(text)
            if "error" in message:
                print(message["error"]["message"], file=sys.stderr)
                return code
            match message.get("method"):
                case "process/output":
                    sys.stdout.buffer.write(base64.b64decode(message["params"]["chunk"]))
                case "process/exited":
                    code = message["params"]["exitCode"]
                case "process/closed":
                    break
    return code


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(run(sys.argv[1], sys.argv[2:] or ["sh", "-c", "echo hello from process $$; exit 0"]))
