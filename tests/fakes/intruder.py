"""A program that tries ways out of its sandbox, and says how far it came.

Run as a script, by whatever Python there is: standard library only.

usage: intruder.py WAY ABOUT
       intruder.py all [[WAY, ABOUT], ...]

ABOUT is JSON: where it is, and what it is to reach.  The answer is a line of JSON: `{"done": VALUE}`, or
`{"refused": NUMBER}` with the number of the error; for several ways, each tried by a process of its own, a
list of those, with `{"ended": STATUS}` for who gave no answer.
"""

from __future__ import annotations

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.fakes.intruder_calls import CALLS
from tests.fakes.intruder_files import About
from tests.fakes.intruder_races import RACES
from tests.fakes.intruder_tricks import WAYS


def attempt(way: str, about: dict[str, object]) -> dict[str, object]:
    try:
        return {"done": {**WAYS, **CALLS, **RACES}[way](About(**about))}  # type: ignore[arg-type]
    except OSError as error:
        return {"refused": error.errno}


def apart(way: str, about: dict[str, object]) -> dict[str, object]:
    """In a process that may be spoiled by it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(attempt(way, about)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        said = file.read()
    _, status = os.waitpid(pid, 0)
    answer: dict[str, object] = json.loads(said) if said else {"ended": status}
    return answer


if __name__ == "__main__":
    if sys.argv[1] == "all":
        answer: object = [apart(*job) for job in json.loads(sys.argv[2])]
    else:
        answer = attempt(sys.argv[1], json.loads(sys.argv[2]))
    sys.stdout.write(json.dumps(answer) + "\n")
