"""Judges programs, many at once, each within limits: harness.py [URL]

Without a URL they run in this program, with one on the server there.
"""

import sys

from holdfast import Completed, HoldfastError, Limits, sync

TASKS = {
    "right": "print(6 * 7)",
    "wrong": "print(6 * 9)",
    "broken": "raise SystemExit(1)",
    "endless": "while True: pass",
    "greedy": "x = b'x' * (1 << 30)",
    "loud": "while True: print('loud')",
}


def judge(done: Completed[bytes] | HoldfastError) -> str:
    """The verdict on one program, whose answer should be 42."""
    if isinstance(done, HoldfastError):
        return f"not judged: {done}"  # Our trouble, not the program's: to be tried again.
    if not done.ok:
        return str(done.outcome)
    return "passed" if done.stdout.strip() == b"42" else "wrong answer"


with sync.connect(sys.argv[1]) if sys.argv[1:] else sync.local() as host:
    programs = [[sys.executable, "-c", program] for program in TASKS.values()]
    limits = Limits(memory=256 << 20, cpu=2, processes=32)
    results = host.map(
        programs, limit=8, return_exceptions=True, timeout=30, output_limit=1 << 20, limits=limits
    )
    verdicts = [judge(done) for done in results]

for name, verdict in zip(TASKS, verdicts, strict=True):
    print(f"{name:8} {verdict}")
print("passed", verdicts.count("passed"), "of", len(TASKS))
