"""TypeScript: declarations of an endpoint."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from holdfast.cli.schema import CATALOGS
from holdfast.schema.typescript import write
from tests.fakes.catalog import CATALOG

CALLS = """\
/** Every method, with what it takes and gives. */
export interface Calls {
  /** Draw `it`. */
  "draw": { params: DrawParams; result: DrawResult };
  /** Draw no more. */
  "draw/stop": { params?: Record<string, never> | null; result: Nothing };
}

/** What the client may tell. */
export interface ClientNotifications {
  /** It was seen. */
  "seen": unknown;
}

/** What the server tells. */
export interface ServerNotifications {
  /** Something was drawn. */
  "drawn": Drawn;
}
"""

TYPES = """\
/** What to draw. And more than a summary needs. */
export interface DrawParams {
  /** Either `a|b` or *\\/ whatever. */
  name: string;
  path: string;
  form?: Round | Square | null;
  /** Default: `"red"`. */
  colour?: Colour;
  /** Default: `[]`. */
  fills?: (string | null)[];
  labels?: Record<string, string> | null;
  data?: string | null;
  /** Ten if absent. */
  count?: number | null;
}

export interface Round {
  type: "round";
  radius: number;
}

/** Four equal sides. */
export interface Square {
  type: "square";
  /** Default: `1`. */
  side?: number;
}

/** What it looks like. */
export type Colour = "red" | "blue";

export interface DrawResult {
  size: number;
  parts: Colour[];
  done: boolean;
  note?: string;
  /** Told if there is one. */
  hole?: Hole | null;
  keepers?: Record<string, string>;
  main?: Colour;
}

/** What is missing. */
export interface Hole {
  /** Null if it has none. */
  depth: number | null;
}

/** `{}`. */
export interface Nothing {}

/** Something was drawn. */
export interface Drawn {
  data: string;
}
"""

WORDS = {"string", "number", "boolean", "null", "unknown", "never", "Record", "Pick"}


def test_methods_and_notifications_are_maps_by_name() -> None:
    """With them a client's ``call`` and ``on`` are typed in a line each."""
    assert CALLS in write([CATALOG])


def test_types_are_interfaces_and_unions_with_the_words_of_the_source() -> None:
    """What may be left out has a mark, and no text can end a comment."""
    assert TYPES in write([CATALOG])


def test_only_stamped_notifications_say_when_they_were_sent() -> None:
    assert "emittedAtMs: number" in write([CATALOG])
    assert "emittedAtMs" not in write([replace(CATALOG, stamped=False)])


def test_each_endpoint_has_its_namespace_when_there_are_two() -> None:
    """Their types have the same names."""
    text = write(list(CATALOGS.values()))

    assert re.findall(r"^export declare namespace (\w+) \{$", text, re.MULTILINE) == ["exec", "app"]
    assert text.count("  export interface InitializeParams {") == 2


@pytest.mark.parametrize("name", CATALOGS)
def test_every_name_that_is_used_is_declared_once(name: str) -> None:
    """Without a compiler at hand this finds what it would complain about first."""
    text = re.sub(r"/\*\*.*?\*/|//.*|\"[^\"]*\"", "", write([CATALOGS[name]]))
    declared = re.findall(r"^export (?:interface|type) (\w+)", text, re.MULTILINE)
    used = set(re.findall(r"\b[A-Z]\w\w+\b", text))

    assert len(declared) == len(set(declared))
    assert used - set(declared) - WORDS == set()
    assert text.count("{") == text.count("}")
