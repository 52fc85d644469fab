"""Commands on this host, without any server."""

import holdfast

done = holdfast.run(["sort"], input="b\na\n", capture_output=True, text=True, timeout=10)
print(done.stdout.split(), done.outcome.kind.value)
