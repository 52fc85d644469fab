"""A script without an event loop."""

from holdfast import CommandFailed, sync

with sync.connect("ws://127.0.0.1:8765") as host:
    print(host.run(["echo", "hello"], capture_output=True, text=True, check=True).stdout, end="")

    try:
        host.run(["sh", "-c", "echo no such page >&2; exit 4"], capture_output=True, text=True, check=True)
    except CommandFailed as error:
        print("failed with", error.returncode, "and said", error.stderr, end="")

    with host.start(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.1; done"]) as process:
        for data in process:
            print("came:", data)
    print(process.wait().kind.value, process.returncode)
