"""Commands within limits, and why they ended."""

import holdfast
from holdfast import Limits

COMMANDS = {
    "memory": "x = b'x' * (1 << 30)",
    "processor time": "while True: pass",
    "output": "while True: print('more' * 1000)",
}

for what, program in COMMANDS.items():
    done = holdfast.run(
        ["python3", "-c", program],
        capture_output=True,
        output_limit=1 << 20,
        limits=Limits(memory=128 << 20, cpu=1, processes=16, files=64),
    )
    print(f"{what}: {done.outcome.kind.value}")
