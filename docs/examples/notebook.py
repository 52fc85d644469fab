"""Cells of a notebook."""

from holdfast import sync

host = sync.connect("ws://127.0.0.1:8765").open()

done = host.run(["echo", "from a cell"], capture_output=True, text=True)
print(done.stdout, end="")

host.close()
