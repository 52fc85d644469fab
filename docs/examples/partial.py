"""What a command said before its time was over."""

import holdfast

done = holdfast.run(
    ["sh", "-c", "echo step 1; sleep 60; echo step 2"], capture_output=True, text=True, timeout=0.5
)
print(done.outcome.kind.value, "-", done.outcome.detail)
print("it had said:", done.stdout)
