"""The messages themselves, with a WebSocket and nothing else."""

import base64
import json

from websockets.sync.client import connect

with connect("ws://127.0.0.1:8765", max_size=None) as server:

    def send(**message: object) -> None:
        server.send(json.dumps(message))

    send(id=1, method="initialize", params={"clientName": "first"})
    server.recv()  # Holds the session's identifier, with which one can come back.
    send(method="initialized")

    start = {
        "processId": "greeter",
        "argv": ["sh", "-c", "read name; echo hello $name; exit 3"],
        "cwd": "file:///tmp",
        "env": {"PATH": "/usr/bin:/bin"},
        "tty": False,
        "pipeStdin": True,
    }
    send(id=2, method="process/start", params=start)
    chunk = base64.b64encode(b"world\n").decode()
    send(id=3, method="process/write", params={"processId": "greeter", "writeId": "1", "chunk": chunk})

    for text in server:
        print(text)
        if json.loads(text).get("method") == "process/closed":
            break
