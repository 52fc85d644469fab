"""What a command said before its time was over."""

import holdfast

try:
    holdfast.run(
        ["sh", "-c", "echo step 1; sleep 60; echo step 2"], capture_output=True, text=True, timeout=0.5
    )
except holdfast.TimedOut as error:
    print("ended after", error.timeout, "seconds")
    print("it had said:", error.stdout)
