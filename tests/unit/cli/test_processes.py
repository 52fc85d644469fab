"""Commands that ask a server about its processes, or change them."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import client
from tests.fakes.server import eventually_sync, program_at
from tests.fakes.terminal import Call, holdfast, person_at

pytestmark = pytest.mark.slow

# ps.


def test_those_that_run_are_shown_and_with_a_also_those_that_have_ended(far: Call) -> None:
    far("run", "-d", "--name", "ps-ended", "--", "sh", "-c", "exit 3")
    far("wait", "-q", "ps-ended")
    far("run", "-d", "--name", "ps-runs", "--", "sleep", "1000")

    live, everything = far("ps").out, far("ps", "-a").out
    far("kill", "--grace", "0", "ps-runs")

    assert re.search(r"^ps-runs +[0-9a-f]{12} +\d+ +running +\d+s ago +sleep 1000$", live, re.MULTILINE)
    assert "ps-ended" not in live
    assert re.search(r"^ps-ended +[0-9a-f]{12} +\d+ +exit 3 ", everything, re.MULTILINE)
    assert live.splitlines()[0].split() == ["NAME", "ID", "PID", "STATE", "STARTED", "COMMAND"]


def test_names_alone_are_for_other_programs(far: Call) -> None:
    far("run", "-d", "--name", "ps-named", "--", "sleep", "1000")

    names = far("ps", "-q").out.splitlines()
    listed = json.loads(far("ps", "-o", "json").out)
    far("kill", "--grace", "0", "ps-named")

    assert "ps-named" in names
    (one,) = [one for one in listed if one["name"] == "ps-named"]
    assert (one["state"], one["argv"], one["kept"]) == ("running", ["sleep", "1000"], True)


def test_a_terminal_gets_colours_and_lines_that_fit_unless_told_otherwise() -> None:
    with program_at() as (_, url):
        with person_at("run", "-d", "--name", "p", "-H", url, "--", "sleep", "1" * 60) as starter:
            starter.wait()
        with person_at("ps", "-H", url, cols=60) as person:
            person.wait()
            coloured = person.shown
        with person_at("ps", "--no-trunc", "-H", url, cols=60, env={"NO_COLOR": "1"}) as person:
            person.wait()
            plain = person.shown

    assert b"\x1b[32mrunning\x1b[0m" in coloured
    assert (
        max(len(line.replace(b"\x1b[32m", b"").replace(b"\x1b[0m", b"")) for line in coloured.split(b"\r\n"))
        <= 60
    )
    assert b"\x1b" not in plain
    assert b"1" * 60 in plain


HOSTILE = "\x1b]0;owned\x07\x1b[2Jinnocent\nroot-shell"


def test_names_of_others_give_the_terminal_no_orders(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any client may choose any identifier, and whoever looks at the list has not chosen it."""

    async def start_others(url: str) -> None:
        async with client(url) as other:
            for identifier in (HOSTILE, "n" * 5000):
                await other.start(identifier, "sleep", "1000", keep=True)

    with program_at() as (_, url):
        monkeypatch.setenv("HOLDFAST_URL", url)
        asyncio.run(start_others(url))
        names, table, whole = call("ps", "-q").out, call("ps").out, call("ps", "--no-trunc").out
        document = json.loads(call("ps", "-o", "json").out)
        refused = call("logs", "\x1b[2J\nholdfast: all is well")
        waiting = call("kill", "--grace", "0", HOSTILE, "\x1b[2J\nno such name")

    shown = r"\x1b]0;owned\x07\x1b[2Jinnocent\nroot-shell"
    assert names == f"{shown}\n{'n' * 5000}\n"
    assert [len(text.splitlines()) for text in (table, whole)] == [3, 3]
    assert table.splitlines()[1].startswith(shown)
    assert max(map(len, table.splitlines())) < 300
    assert "n" * 5000 in whole
    assert [one["name"] for one in document] == [HOSTILE, "n" * 5000]
    assert waiting.out == f"{shown}\n"
    for said in (refused.err, waiting.err):
        assert "\x1b" not in said
        assert len(said.splitlines()) == 1


def test_a_complaint_about_arguments_gives_the_terminal_no_orders(call: Call) -> None:
    """They may come from a list of names."""
    said = call("ps", "\x1b[2J")

    assert (said.code, "\x1b" in said.err) == (2, False)


# wait.


def test_the_code_is_the_processes(far: Call) -> None:
    far("run", "-d", "--name", "wait-one", "--", "sh", "-c", "exit 9")

    assert far("wait", "wait-one") == (9, "", "")


def test_of_several_it_is_the_first_that_is_not_0_and_all_are_printed(far: Call) -> None:
    for name, code in (("wait-a", 0), ("wait-b", 4), ("wait-c", 5)):
        far("run", "-d", "--name", name, "--", "sh", "-c", f"exit {code}")

    assert far("wait", "wait-a", "wait-b", "wait-c") == (4, "0\n4\n5\n", "")
    assert far("wait", "-q", "wait-a", "wait-b") == (4, "", "")


def test_json_has_the_outcome(far: Call) -> None:
    far("run", "-d", "--name", "wait-json", "--timeout", "100ms", "--", "sleep", "1000")

    said = far("wait", "-o", "json", "wait-json")
    words = far("wait", "wait-json")

    (one,) = json.loads(said.out)
    assert (said.code, one["name"], one["exitCode"], one["outcome"]["kind"]) == (
        124,
        "wait-json",
        124,
        "timeout",
    )
    assert "holdfast: wait-json: it was ended because its time was over" in words.err


def test_nobody_waits_for_an_unknown_name(far: Call) -> None:
    assert far("wait", "nobody").code == 125


# kill and signal.


def test_a_signal_is_sent_to_the_process(far: Call) -> None:
    script = "trap 'exit 6' USR1; echo ready; while :; do sleep 0.05; done"
    far("run", "-d", "--name", "signal-one", "--", "sh", "-c", script)
    while "ready" not in far("logs", "signal-one").out:
        pass

    sent = far("signal", "-o", "json", "signal-one", "usr1")
    assert (sent.code, sent.err) == (0, "")
    assert json.loads(sent.out) == {"name": "signal-one", "signal": "SIGUSR1", "tree": False}
    assert far("wait", "signal-one").code == 6


def test_a_signal_to_the_tree_reaches_who_has_left_the_group(far: Call) -> None:
    script = "setsid sh -c \"trap 'echo caught; exit' USR1; echo ready; while :; do sleep 0.05; done\"; true"
    far("run", "-d", "--name", "signal-tree", "--", "sh", "-c", f"trap : USR1; {script}")
    while "ready" not in far("logs", "signal-tree").out:
        pass

    assert far("signal", "--tree", "signal-tree", "USR1") == (0, "", "")
    assert far("wait", "signal-tree").code == 0


def test_all_are_ended_and_one_that_cannot_be_found_is_told(far: Call) -> None:
    for name in ("kill-a", "kill-b"):
        far("run", "-d", "--name", name, "--", "sleep", "1000")

    said = far("kill", "kill-a", "nobody", "kill-b")
    codes = [far("wait", name).code for name in ("kill-a", "kill-b")]

    assert (said.code, said.out) == (125, "kill-a\nkill-b\n")
    assert said.err == "holdfast: no process named 'nobody'; 'holdfast ps -a' shows those that there are\n"
    assert codes == [143, 143]


@pytest.mark.timeout(60)
def test_several_are_ended_at_once_and_not_one_grace_after_another(far: Call, tmp_path: Path) -> None:
    """The first ends when the second was asked to: one after the other, that would take until its kill."""
    door = tmp_path / "asked"

    def is_ready(name: str) -> bool:
        return far("logs", name).out == "ready\n"

    waits = f"trap '' TERM; echo ready; while [ ! -e {door} ]; do sleep 0.05; done; exit 7"
    opens = f"trap 'touch {door}; exit 8' TERM; echo ready; while :; do sleep 0.05; done"
    for name, script in (("kill-waits", waits), ("kill-opens", opens)):
        far("run", "-d", "--name", name, "--", "sh", "-c", script)
        eventually_sync(partial(is_ready, name))
    said = far("kill", "--grace", "1h", "kill-waits", "kill-opens", "kill-waits")

    assert (said.code, said.out) == (0, "kill-waits\nkill-opens\n")
    assert [far("wait", name).code for name in ("kill-waits", "kill-opens")] == [7, 8]


def test_without_a_grace_nobody_is_asked_and_json_says_who_ran(far: Call) -> None:
    far("run", "-d", "--name", "kill-now", "--", "sh", "-c", "trap '' TERM; sleep 1000")

    said = far("kill", "--grace", "0", "-o", "json", "kill-now")
    again = far("kill", "-q", "kill-now")

    assert json.loads(said.out) == [{"name": "kill-now", "running": True, "survivors": []}]
    assert again == (0, "", "")
    assert far("wait", "kill-now").code == 137


# write and resize.


def test_data_is_written_as_it_is_and_the_end_after_it(far: Call) -> None:
    far("run", "-d", "-i", "--name", "write-data", "--", "cat")

    first = far("write", "write-data", "one ")
    second = far("write", "-o", "json", "write-data", "two", "--eof")

    assert (first, second.code, second.err) == ((0, "", ""), 0, "")
    assert json.loads(second.out) == {"name": "write-data", "bytes": 3, "eof": True}
    assert far("wait", "write-data").code == 0
    assert far("logs", "write-data").out == "one two"


def test_without_data_it_is_our_input(far: Call, url: str) -> None:
    far("run", "-d", "-i", "--name", "write-input", "--", "cat")
    done = holdfast("write", "-H", url, "write-input", "--eof", data=b"given\n" * 50_000)
    far("wait", "write-input")

    assert done.returncode == 0
    assert far("logs", "write-input").out == "given\n" * 50_000


def test_a_process_without_input_is_told_with_the_reason(far: Call) -> None:
    far("run", "-d", "--name", "write-none", "--", "sleep", "1000")

    said = far("write", "write-none", "x")
    far("kill", "--grace", "0", "write-none")

    assert said.code == 125
    assert "takes no input: it was started without -i" in said.err


def test_a_terminal_gets_another_size_and_a_pipe_has_none(far: Call) -> None:
    script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done"
    far("run", "-d", "-t", "--name", "resize-tty", "--", "sh", "-c", script)
    far("run", "-d", "--name", "resize-pipe", "--", "sleep", "1000")
    while "ready" not in far("logs", "resize-tty").out:
        pass

    done, refused = far("resize", "-o", "json", "resize-tty", "31x97"), far("resize", "resize-pipe", "31x97")
    far("wait", "resize-tty")
    far("kill", "--grace", "0", "resize-pipe")

    assert (done.code, refused.code) == (0, 125)
    assert json.loads(done.out) == {"name": "resize-tty", "rows": 31, "cols": 97}
    assert "start it with -t" in refused.err
    assert "31 97" in far("logs", "resize-tty").out


# What a start does with a name.


def test_a_name_of_what_has_ended_is_free(far: Call) -> None:
    """A restart under the same name that silently does nothing costs trust."""
    far("run", "-d", "--name", "names-web", "--", "echo", "first")
    far("wait", "-q", "names-web")
    (first,) = [one for one in listed(far) if one["name"] == "names-web"]

    started = far("run", "-d", "--name", "names-web", "--", "echo", "second")
    far("wait", "-q", "names-web")

    assert started == (0, "names-web\n", "")
    assert far("logs", "names-web").out == "second\n"
    assert far("logs", first["id"][:12]).out == "first\n"


def test_a_name_that_runs_is_refused_with_what_to_do_and_replaced_on_request(far: Call) -> None:
    far("run", "-d", "--name", "names-busy", "--", "sleep", "1000")

    refused = far("run", "-d", "--name", "names-busy", "--", "echo", "new")
    replaced = far("run", "-d", "--replace", "--name", "names-busy", "--", "echo", "new")
    far("wait", "-q", "names-busy")

    assert refused.code == 125
    assert all(word in refused.err for word in ("'names-busy' is taken", "attach", "kill", "--replace"))
    assert (replaced.code, far("logs", "names-busy").out) == (0, "new\n")
    assert [one["state"] for one in listed(far) if one["name"] == "names-busy"] == ["closed"] * 2


def test_what_was_followed_to_its_end_is_in_no_list(far: Call) -> None:
    said = far("run", "--name", "names-followed", "--", "sh", "-c", "echo said; exit 3")

    assert said == (3, "said\n", "")
    assert "names-followed" not in [one["name"] for one in listed(far)]


def test_with_rm_nothing_is_listed_after_the_end(far: Call) -> None:
    far("run", "-d", "--rm", "--name", "names-rm", "--", "sh", "-c", "exit 4")

    assert far("wait", "names-rm").code == 4
    assert "names-rm" not in [one["name"] for one in listed(far)]


def test_without_a_name_one_is_made_that_can_be_said(far: Call) -> None:
    name = far("run", "-d", "--", "true").out.strip()

    assert re.fullmatch(r"[a-z]+-[a-z]+", name)
    assert far("wait", name).code == 0


def test_an_idempotent_start_finds_what_was_started(far: Call) -> None:
    once = ("run", "--idempotent", "--name", "names-once", "--", "sh", "-c", "echo $$; exit 5")

    first, second = far(*once), far(*once)

    assert first.code == second.code == 5
    assert first.out == second.out


@pytest.mark.parametrize("option", ["--replace", "--idempotent"])
def test_options_about_a_name_need_one(far: Call, option: str) -> None:
    said = far("run", option, "--", "true")

    assert said.code == 125
    assert "add --name NAME" in said.err


def listed(far: Call) -> list[dict[str, Any]]:
    """All processes that the server knows."""
    found: list[dict[str, Any]] = json.loads(far("ps", "-a", "-o", "json").out)
    return found


def test_who_waits_for_input_is_told_if_it_is_asked(far: Call) -> None:
    """Nobody is looked at otherwise."""
    far("run", "-d", "-i", "--name", "waiting-cat", "--", "cat")
    far("run", "-d", "--name", "waiting-not", "--", "sleep", "1000")

    def looked() -> dict[str, bool | None]:
        listed = json.loads(far("ps", "--waiting", "-o", "json").out)
        return {one["name"]: one["waitingForInput"] for one in listed if one["name"].startswith("waiting-")}

    eventually_sync(lambda: looked() == {"waiting-cat": True, "waiting-not": False})
    lines = {line.split()[0]: line for line in far("ps", "--waiting").out.splitlines()}

    assert lines["waiting-cat"].split()[3] == "waiting"
    assert lines["waiting-not"].split()[3] == "running"
    assert " waiting " not in far("ps").out
    assert not any("waitingForInput" in one for one in json.loads(far("ps", "-o", "json").out))
