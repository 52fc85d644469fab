"""The environment of a child, step by step."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping, Sequence

import pytest

from holdfast.config import EnvironmentLimits
from holdfast.errors import LimitReached
from holdfast.host.environ import CORE, NEVER_INHERITED, Environment, check
from holdfast.model import EnvironmentPolicy, Inherit

OWN = {"PATH": "/bin", "HOME": "/root", "TERM": "xterm", "LC_TIME": "C", "API_KEY": "k", "EDITOR": "ed"}


def policy(
    inherit: Inherit = Inherit.ALL,
    *,
    ignore_default_excludes: bool = True,
    exclude: Sequence[str] = (),
    set_: Mapping[str, str] | None = None,
    include_only: Sequence[str] = (),
) -> EnvironmentPolicy:
    return EnvironmentPolicy(
        inherit=inherit,
        ignore_default_excludes=ignore_default_excludes,
        exclude=tuple(exclude),
        set=tuple((set_ or {}).items()),
        include_only=tuple(include_only),
    )


def child(
    own: Mapping[str, str], given: EnvironmentPolicy | None, overlay: Mapping[str, str | None] | None = None
) -> dict[str, str]:
    return Environment(own).child(given, overlay or {})


def test_without_a_policy_the_child_sees_exactly_the_overlay() -> None:
    assert child(OWN, None, {"A": "1", "MY_SECRET": "2"}) == {"A": "1", "MY_SECRET": "2"}


# Step 1: what to start from.


@pytest.mark.parametrize(
    ("inherit", "expected"),
    [
        (Inherit.ALL, OWN),
        (Inherit.CORE, {"PATH": "/bin", "HOME": "/root"}),
        (Inherit.NONE, {}),
    ],
)
def test_step_1_starts_from_all_of_the_servers_variables_the_core_or_none(
    inherit: Inherit, expected: dict[str, str]
) -> None:
    assert child(OWN, policy(inherit)) == expected


def test_every_core_name_is_inherited_in_any_spelling() -> None:
    """Names are compared without regard to case and keep the spelling they have."""
    own = {name.lower(): "x" for name in CORE} | dict.fromkeys(CORE, "y")

    assert child(own, policy(Inherit.CORE)) == own


# Step 2: what looks like a secret.


@pytest.mark.parametrize("name", ["API_KEY", "KEYS", "MONKEY", "my_secret_", "Token", "xTOKENx", "\nKEY\n"])
def test_step_2_removes_what_looks_like_a_secret(name: str) -> None:
    """Broad on purpose: MONKEY goes too."""
    own = {name: "x", "PLAIN": "y"}

    assert child(own, policy(ignore_default_excludes=False)) == {"PLAIN": "y"}


def test_step_2_is_left_out_on_demand() -> None:
    own = {"MONKEY": "x", "API_KEY": "y", "A_TOKEN": "z"}

    assert child(own, policy(ignore_default_excludes=True)) == own


# Step 3: what the client does not want.


@pytest.mark.parametrize(
    ("pattern", "gone"),
    [
        ("FOO", {"FOO"}),
        ("foo", {"FOO"}),
        ("FO?", {"FOO"}),
        ("F*", {"FOO", "FOOBAR", "F"}),
        ("*BAR", {"FOOBAR", "BAR"}),
        ("?", {"F"}),
        ("FO", set()),
        ("[FB]*", set()),
        ("FOO.", set()),
        ("", set()),
        ("*", {"FOO", "FOOBAR", "BAR", "F"}),
    ],
)
def test_step_3_removes_whole_names_that_match_a_pattern(pattern: str, gone: set[str]) -> None:
    """A star is any run, a question mark one character, the rest is literal; case does not count."""
    own = dict.fromkeys(("FOO", "FOOBAR", "BAR", "F"), "x")

    assert set(child(own, policy(exclude=[pattern]))) == set(own) - gone


def test_step_3_takes_several_patterns() -> None:
    own = {"A1": "x", "B2": "x", "C3": "x"}

    assert child(own, policy(exclude=["a*", "?2"])) == {"C3": "x"}


# Step 4: what the policy sets.


def test_step_4_sets_variables_that_steps_2_and_3_would_remove() -> None:
    given = policy(ignore_default_excludes=False, exclude=["A*"], set_={"A": "1", "API_KEY": "2", "B": "3"})

    assert child({"A": "0", "B": "0"}, given) == {"A": "1", "API_KEY": "2", "B": "3"}


# Step 5: what may stay.


def test_step_5_keeps_only_what_is_included_and_filters_set_too() -> None:
    given = policy(set_={"SET_IN": "1", "OUT": "2"}, include_only=["PA?H", "set_*"])

    assert child(OWN, given) == {"PATH": "/bin", "SET_IN": "1"}


def test_step_5_is_left_out_without_patterns() -> None:
    assert child(OWN, policy(include_only=[])) == OWN


# Step 6: what is never inherited.


@pytest.mark.parametrize("name", sorted(NEVER_INHERITED))
def test_step_6_removes_what_is_never_inherited_even_if_set(name: str) -> None:
    own = {name: "x", name.lower(): "x", "A": "y"}

    assert child(own, policy(set_={name.title(): "z"})) == {"A": "y"}


def test_step_6_removes_what_the_server_withholds() -> None:
    """An operator's own secrets are kept from children like the known ones."""
    environment = Environment({"MY_PASSWORD": "x", "A": "y"}, withheld=["my_password"])

    assert environment.child(policy(), {"My_Password": "z"}) == {"A": "y"}


# Step 7: what the request lays over it.


def test_step_7_lays_the_request_over_it_past_all_filters() -> None:
    given = policy(ignore_default_excludes=False, exclude=["B"], include_only=["PATH"])

    assert child(OWN, given, {"B": "1", "A_KEY": "2", "PATH": "/sbin"}) == {
        "B": "1",
        "A_KEY": "2",
        "PATH": "/sbin",
    }


def test_a_request_may_take_a_variable_away() -> None:
    """Exactly the one it names; and only for its own child."""
    environment = Environment({"PATH": "/bin", "Path": "x", "A": "1"})

    without = environment.child(policy(), {"PATH": None, "MISSING": None, "A": ""})

    assert without == {"Path": "x", "A": ""}
    assert environment.child(policy(), {}) == {"PATH": "/bin", "Path": "x", "A": "1"}


def test_without_a_policy_there_is_nothing_to_take_away() -> None:
    assert child(OWN, None, {"PATH": None, "A": "1"}) == {"A": "1"}


def test_what_the_policy_sets_can_be_taken_away_too() -> None:
    assert child(OWN, policy(Inherit.NONE, set_={"A": "1", "B": "2"}), {"A": None}) == {"B": "2"}


# Step 8: what not even the request may bring in.


@pytest.mark.parametrize("given", [None, policy(Inherit.NONE)])
def test_step_8_removes_the_servers_own_names_from_the_request(given: EnvironmentPolicy | None) -> None:
    overlay = dict.fromkeys([*NEVER_INHERITED, "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE"], "x")

    assert child({}, given, {**overlay, "node_repl_auth_token": "x", "A": "1"}) == {"A": "1"}


def test_step_8_removes_an_inherited_server_switch() -> None:
    assert child({"CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE": "1", "A": "2"}, policy()) == {"A": "2"}


# Beyond the steps.


def test_variables_that_are_not_utf_8_pass_through() -> None:
    """One such variable in the server's environment must not break every start."""
    own = {"N\udcff": "v\udcfe", "MY_KEY\udcff": "x"}

    assert child(own, policy(ignore_default_excludes=False)) == {"N\udcff": "v\udcfe"}


def test_a_result_is_the_callers_own() -> None:
    """Equal policies share one computation; what one caller does to its result stays with it."""
    environment = Environment({"A": "1"})
    environment.child(policy(), {})["A"] = "spoiled"

    assert environment.child(policy(), {"B": "2"}) == {"A": "1", "B": "2"}
    assert environment.child(policy(), {}) == {"A": "1"}


def test_later_changes_of_the_servers_environment_do_not_count() -> None:
    own = {"A": "1"}
    environment = Environment(own)
    own["B"] = "2"

    assert environment.child(policy(), {}) == {"A": "1"}


# Names that have a value in them.


@pytest.mark.parametrize("given", [None, policy(Inherit.NONE)])
def test_a_name_is_what_a_program_takes_for_one(given: EnvironmentPolicy | None) -> None:
    """A program is handed ``NAME=VALUE``, and takes what is before the first ``=`` for the name."""
    overlay = {
        "OPENAI_IDENTITY_TOKEN_FILE=/x": "y",
        "node_repl_auth_token=": "",
        "": "1",
        "=": "2",
        "A=b": "c",
    }

    assert child({}, given, overlay) == {"": "1", "=": "2", "A=b": "c"}
    assert child({}, policy(set_=overlay)) == {"": "1", "=": "2", "A=b": "c"}


def test_what_a_token_allows_is_asked_of_that_name_too() -> None:
    given = policy(Inherit.NONE, set_={"LD_PRELOAD=/x_OK": "1", "A_OK": "2", "A_OK=b": "3", "B=A_OK": "4"})

    assert Environment({}).child(given, {}, ("*_OK",)) == {"A_OK": "2", "A_OK=b": "3"}


# What a request may cost.


def test_no_pattern_takes_longer_than_it_is_long() -> None:
    """406 bytes of a request once stopped the server for good."""
    given = policy(
        Inherit.NONE, exclude=["*a" * 500 + "*c"], set_={"a" * 2000: "x"}, include_only=["*a" * 500 + "c"]
    )

    assert child({"A" * 2000: "x"}, given) == {}


class Text(str):
    """A text whose end can be seen."""


def test_nothing_is_kept_of_what_a_request_gives() -> None:
    """64 requests once pinned half a gigabyte."""
    environment = Environment(OWN)
    value, pattern = Text("x" * 1000), Text("y" * 5000)
    gone = [weakref.ref(value), weakref.ref(pattern)]

    environment.child(policy(set_={"A": value}), {})
    environment.child(policy(exclude=[pattern]), {})
    environment.child(policy(include_only=[pattern]), {})

    del value, pattern
    gc.collect()
    assert [look() for look in gone] == [None, None]


def test_what_is_kept_has_an_end() -> None:
    environment = Environment(OWN)
    patterns = [Text(f"x{number}") for number in range(200)]
    looks = [weakref.ref(pattern) for pattern in patterns]

    for pattern in patterns:
        assert environment.child(policy(exclude=[pattern]), {}) == OWN

    del pattern, patterns
    gc.collect()
    assert sum(look() is not None for look in looks) <= 64


def test_the_effort_is_known_before() -> None:
    """In characters: whoever has an event loop may decide to do it elsewhere."""
    environment = Environment({"A" * 10: "", "B" * 20: ""})
    given = policy(exclude=["xx"], set_={"C" * 100: "y" * 999}, include_only=["*", "z"])

    assert environment.effort(None) == 0
    assert environment.effort(given) == 30 + 100 + 4
    environment.child(given, {})
    assert environment.effort(given) == 100
    assert environment.effort(given, ("*",)) == 100 + 130
    assert environment.effort(policy(set_={"C" * 100: ""})) == 30


@pytest.mark.parametrize(
    ("given", "overlay", "name"),
    [
        (policy(set_={"A": "", "B": ""}), {"C": "", "D": None}, "variables"),
        (None, dict.fromkeys("ABCD", ""), "variables"),
        (policy(set_={"A" * 6: ""}), {"B" * 5: "x" * 99}, "name_bytes"),
        (policy(set_={"é" * 6: ""}), {}, "name_bytes"),
        (policy(exclude=["a", "b"], include_only=["c"]), {}, "patterns"),
        (policy(exclude=["a" * 10], include_only=["c" * 11]), {}, "pattern_bytes"),
        (policy(exclude=["\udcff" * 10]), {}, "pattern_bytes"),
    ],
)
def test_more_than_one_request_may_say_is_refused(
    given: EnvironmentPolicy | None, overlay: Mapping[str, str | None], name: str
) -> None:
    limits = EnvironmentLimits(variables=3, name_bytes=10, patterns=2, pattern_bytes=20)

    with pytest.raises(LimitReached) as caught:
        check(given, overlay, limits)

    assert (caught.value.name, caught.value.value) == (f"environment.{name}", getattr(limits, name))
    check(
        policy(exclude=["a" * 10], set_={"A" * 5: "x"}, include_only=["b" * 10]), {"B" * 5: "y" * 99}, limits
    )


# What a token allows.


def test_only_allowed_variables_are_inherited_whatever_the_policy_says() -> None:
    environment = Environment(OWN)
    everything = policy(include_only=())

    assert environment.child(everything, {}, ("LC_*", "HOME")) == {"HOME": "/root", "LC_TIME": "C"}
    assert environment.child(everything, {}, ()) == {}
    assert environment.child(everything, {}, ("*",)) == environment.child(everything, {})
    assert environment.child(everything, {}, ("home", "H?ME", "HOM")) == {}


def test_what_is_given_with_the_request_was_looked_at_before() -> None:
    """It is refused as a whole, and not silently left out here."""
    environment = Environment(OWN)

    assert environment.child(None, {"A": "1"}, ()) == {"A": "1"}
    assert environment.child(policy(), {"A": "1", "HOME": None}, ("HOME",)) == {"A": "1"}


def test_what_one_may_inherit_says_nothing_about_the_next() -> None:
    """Equal policies share one computation."""
    environment = Environment(OWN)

    assert environment.child(policy(), {}, ("HOME",)) == {"HOME": "/root"}
    assert environment.child(policy(), {}) == OWN
    assert environment.child(policy(), {}, ("PATH",)) == {"PATH": "/bin"}


@pytest.mark.parametrize("name", ["", "_LOGS", "_METRICS", "_TRACES"])
def test_what_the_server_shows_to_collectors_is_its_own(name: str) -> None:
    assert f"OTEL_EXPORTER_OTLP{name}_HEADERS" in NEVER_INHERITED
