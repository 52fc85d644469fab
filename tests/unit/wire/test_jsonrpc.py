"""The envelope: which texts are which messages, and the words for those that are none."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import ErrorBody, Malformed, Message, Notification, Request, Response, TraceContext

BAD_ID = "data did not match any variant of untagged enum RequestId"


def complaint(text: str | bytes) -> str:
    with pytest.raises(Malformed) as caught:
        jsonrpc.decode(text if isinstance(text, bytes) else text.encode())
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id":1,"method":"x"}', Request(1, "x", None)),
        ('{"id":"s","method":"x","params":{"a":[1]}}', Request("s", "x", {"a": [1]})),
        ('{"id":"","method":""}', Request("", "", None)),
        (r'{"id":"\u0000","method":"a`b\n"}', Request("\0", "a`b\n", None)),
        ('{"id":-1,"method":"x","params":null}', Request(-1, "x", None)),
        ('{"id":-0,"method":"x"}', Request(0, "x", None)),
        ('{"id":9223372036854775807,"method":"x"}', Request(2**63 - 1, "x", None)),
        ('{"id":-9223372036854775808,"method":"x"}', Request(-(2**63), "x", None)),
        ('{"jsonrpc":5,"id":1,"method":"x","emittedAtMs":"y"}', Request(1, "x", None)),
        ('{"method":"x","id":7,"result":1,"error":5}', Request(7, "x", None)),
        ('\t\r\n{"id":1,"method":"x"}\r\n', Request(1, "x", None)),
        ('{"id":1,"method":"x"} \n ', Request(1, "x", None)),
        ('{"id":"é","method":"😀"}', Request("é", "😀", None)),
        ('{"method":"initialized"}', Notification("initialized", None)),
        ('{"method":"initialized","params":5}', Notification("initialized", 5)),
        ('{"method":"initialized","trace":1}', Notification("initialized", None)),
        ('{"id":1,"result":null}', Response(1)),
        ('{"id":"a","result":[1]}', Response("a", [1])),
        ('{"id":1,"result":1,"error":{"code":1,"message":"m"}}', Response(1, 1)),
        ('{"id":1,"error":{"code":1,"message":"m"}}', Response(1, error=ErrorBody(1, "m"))),
        ('{"id":1,"error":{"code":-1,"message":"m","data":[]}}', Response(1, error=ErrorBody(-1, "m", []))),
        ('{"id":1,"error":{"code":1,"message":"m","data":null,"x":1}}', Response(1, error=ErrorBody(1, "m"))),
    ],
)  # fmt: skip
def test_a_text_is_read_as_its_message(text: str, message: Message) -> None:
    assert jsonrpc.decode(text.encode()) == message


@pytest.mark.parametrize(
    ("trace", "context"),
    [
        ("null", None),
        ("{}", TraceContext()),
        ('{"traceparent":null}', TraceContext()),
        ('{"traceparent":"x","tracestate":"y"}', TraceContext("x", "y")),
        ('{"x":1}', TraceContext()),
    ],
)
def test_a_request_carries_the_trace_of_its_caller(trace: str, context: TraceContext | None) -> None:
    """Also one that is no valid trace: that is for whoever records traces to ignore."""
    text = f'{{"id":1,"method":"x","trace":{trace}}}'

    assert jsonrpc.decode(text.encode()) == Request(1, "x", None, context)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("null", "expected a JSON-RPC object"),
        ("[]", "expected a JSON-RPC object"),
        ("[] x", "expected a JSON-RPC object"),
        ("1 2", "expected a JSON-RPC object"),
        ("-1.5", "expected a JSON-RPC object"),
        ("true", "expected a JSON-RPC object"),
        ('"str"', "expected a JSON-RPC object"),
        ("{}", "missing field `error`"),
        ("{} x", "missing field `error`"),
        ("{}{}", "missing field `error`"),
        ('{"id":1}x', "missing field `error`"),
        ('{"id":1,"params":{}}', "missing field `error`"),
        ('{"jsonrpc":"2.0"}', "missing field `error`"),
        ('{"ID":1,"Method":"x"}', "missing field `error`"),
        ('{"id":1,"method":1}', "invalid type: number, expected a string"),
        ('{"id":1,"method":null}', "invalid type: null, expected a string"),
        ('{"id":1,"method":true}', "invalid type: boolean `true`, expected a string"),
        ('{"id":1,"method":[]}', "invalid type: sequence, expected a string"),
        ('{"id":1,"method":{}}', "invalid type: map, expected a string"),
        ('{"method":null,"id":null}', "invalid type: null, expected a string"),
        ('{"id":null}', BAD_ID),
        ('{"id":1.5}', BAD_ID),
        ('{"id":1.5,"method":1}', BAD_ID),
        ('{"method":1,"id":1.5}', "invalid type: number, expected a string"),
        ('{"id":1.5,"method":"x","trace":1}', BAD_ID),
        ('{"trace":1,"id":1.5,"method":"x"}', "invalid type: number, expected struct W3cTraceContext"),
        ('{"trace":1,"method":2,"id":1}', "invalid type: number, expected struct W3cTraceContext"),
        ('{"method":2,"trace":1,"id":1}', "invalid type: number, expected a string"),
        ('{"method":"initialized","id":null}', BAD_ID),
        ('{"id":null,"result":1}', BAD_ID),
        ('{"result":1}', "missing field `id`"),
        ('{"result":1,"error":1}', "missing field `id`"),
        ('{"error":1}', "invalid type: number, expected struct JSONRPCErrorError"),
        ('{"error":{}}', "missing field `code`"),
        ('{"error":{"code":1,"message":"m"}}', "missing field `id`"),
        ('{"id":1,"error":null}', "invalid type: null, expected struct JSONRPCErrorError"),
        ('{"id":1,"error":"x"}', 'invalid type: string "x", expected struct JSONRPCErrorError'),
        ('{"id":1,"error":{"code":1}}', "missing field `message`"),
        ('{"id":1,"error":{"message":"m"}}', "missing field `code`"),
        ('{"id":1,"error":{"code":"1","message":"m"}}', 'invalid type: string "1", expected i64'),
        ('{"id":1,"error":{"code":1.5,"message":"m"}}', "invalid number"),
        ('{"id":1,"error":{"code":9223372036854775808,"message":"m"}}', "invalid number"),
        ('{"id":1,"error":{"code":1,"message":1}}', "invalid type: number, expected a string"),
        ('{"id":1.5,"error":{"code":1,"message":"m"}}', BAD_ID),
    ],
)
def test_an_object_that_is_no_message_is_told_so(text: str, words: str) -> None:
    """Members are judged in the order they were written, and all before what may follow the object."""
    assert complaint(text) == words


@pytest.mark.parametrize(
    "key",
    [
        *("null", "true", "false", "[]", "{}", "[1]", '{"a":1}'),
        *("1.5", "1.0", "1e2", "1e400", "-1e400"),
        *("9223372036854775808", "18446744073709551615"),
        *("340282366920938463463374607431768211456", "-170141183460469231731687303715884105729", "1" * 5000),
    ],
)
def test_an_identifier_is_a_string_or_a_signed_integer_of_64_bits(key: str) -> None:
    assert complaint(f'{{"id":{key},"method":"x"}}') == BAD_ID


@pytest.mark.parametrize(
    ("key", "size"),
    [
        ("18446744073709551616", "u128"),
        ("170141183460469231731687303715884105728", "u128"),
        ("340282366920938463463374607431768211455", "u128"),
        ("-9223372036854775809", "i128"),
        ("-170141183460469231731687303715884105728", "i128"),
    ],
)
def test_an_identifier_of_up_to_128_bits_has_its_own_words(key: str, size: str) -> None:
    words = f"invalid type: integer `{key}` as {size}, expected any value"

    assert complaint(f'{{"id":{key},"method":"x"}}') == words


@pytest.mark.parametrize("key", ["18446744073709551616", "-9223372036854775809"])
def test_such_an_identifier_is_found_inside_others(key: str) -> None:
    size = "i128" if key.startswith("-") else "u128"
    words = f"invalid type: integer `{key}` as {size}, expected any value"

    assert complaint(f'{{"id":[{key}],"method":"x"}}') == words
    assert complaint(f'{{"id":{{"a":[1,{key}]}},"method":"x"}}') == words


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        ("1", "invalid type: number, expected struct W3cTraceContext"),
        ('"x"', 'invalid type: string "x", expected struct W3cTraceContext'),
        ("true", "invalid type: boolean `true`, expected struct W3cTraceContext"),
        ('{"traceparent":1}', "invalid type: number, expected a string"),
        ('{"tracestate":true}', "invalid type: boolean `true`, expected a string"),
        ('{"traceparent":[],"tracestate":1}', "invalid type: sequence, expected a string"),
        ('{"tracestate":1,"traceparent":[]}', "invalid type: number, expected a string"),
    ],
)
def test_a_trace_of_a_wrong_type_spoils_the_message(trace: str, words: str) -> None:
    assert complaint(f'{{"id":1,"method":"x","trace":{trace}}}') == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"id":1,"method":"environment/status"}x', "trailing characters at line 1 column 39"),
        (b'{"id":1,"method":"environment/status"}\n\nx', "trailing characters at line 3 column 1"),
        (b'{"id":1,"method":"environment/status"}\0', "trailing characters at line 1 column 39"),
        (b'{"id":1,"method":"environment/status"}{"id":2}', "trailing characters at line 1 column 39"),
        (b'{"id":1,"method":"x","a":1,"a":1}', "duplicate JSON object key `a` at line 1 column 30"),
        (b'{"a":"b","a":"c","d":"\\""}', "duplicate JSON object key `a` at line 1 column 12"),
        (b'{"a":1,"a":2} x', "duplicate JSON object key `a` at line 1 column 10"),
        (b'{"id":1,"method":"x\xff"}', "invalid unicode code point at line 1 column 21"),
        (b"\xff", "expected value at line 1 column 1"),
        (b'\xef\xbb\xbf{"id":1,"method":"x"}', "expected value at line 1 column 1"),
        (b"", "EOF while parsing a value at line 1 column 0"),
        (b'{"params":' + b"[" * 127 + b"]" * 127 + b"}", "recursion limit exceeded at line 1 column 137"),
        (b"[" * 100_000, "recursion limit exceeded at line 1 column 128"),
    ],
)  # fmt: skip
def test_a_fault_of_the_text_is_told_with_its_place(text: bytes, words: str) -> None:
    assert complaint(text) == words


MEMBERS = st.lists(
    st.one_of(
        st.tuples(
            st.just("id"),
            st.sampled_from(["1", '"a"', "null", "1.5", str(2**63), str(-(2**63)), str(2**64), "true", "-0"]),
        ),
        st.tuples(st.just("method"), st.sampled_from(['"m"', '"\\u006d"', "1", "null"])),
        st.tuples(
            st.just("params"),
            st.sampled_from(["null", "{}", '{"a":1}', '{"a":1,"a":2}', '{"a": 1}', "[1]", '"x"', "1e3", "{"]),
        ),
        st.tuples(st.just("trace"), st.sampled_from(["null", "{}", '{"traceparent":"t"}', "3"])),
        st.tuples(st.sampled_from(["result", "error", "jsonrpc"]), st.sampled_from(["null", '"2.0"', "{}"])),
    ),
    max_size=5,
)


@settings(max_examples=500)
@given(members=MEMBERS, blank=st.sampled_from(["", "", " "]))
def test_a_message_is_read_the_same_by_the_fast_way_and_by_the_careful_one(
    members: list[tuple[str, str]], blank: str
) -> None:
    """Whatever is in it, in whatever order, twice or not at all."""
    text = ("{" + ",".join(f'"{name}":{blank}{value}' for name, value in members) + "}").encode()

    assert outcome(jsonrpc.decode, text) == outcome(jsonrpc._decode_slowly, text)


def outcome(decode: Callable[[bytes], Message], text: bytes) -> object:
    try:
        return decode(text)
    except Malformed as malformed:
        return str(malformed)


def test_a_repeated_key_is_found_in_a_long_message_too() -> None:
    """Long messages take another way through the decoder than short ones."""
    filler = "y" * 1000

    assert complaint(f'{{"a":1,"a":2,"z":"{filler}"}}') == "duplicate JSON object key `a` at line 1 column 10"
    assert (
        complaint(f'{{"\\u0061":1,"a":2,"z":"{filler}"}}')
        == "duplicate JSON object key `a` at line 1 column 15"
    )


@pytest.mark.parametrize("text", ['"' + "x" * 500 + '"', "[" + ",".join(["1"] * 500) + "]", " " * 500 + "5"])
def test_a_long_text_that_is_no_object_is_told_so(text: str) -> None:
    assert complaint(text) == "expected a JSON-RPC object"


def test_a_long_message_keeps_every_value() -> None:
    params = {
        "text": 'quote " back \\ slash',
        "list": [{"a": 1}, {"a": 2}, ["x", None, True, 1.5]],
        "z": "y" * 500,
    }
    text = json.dumps({"id": 1, "method": "x", "params": params}).encode()

    assert jsonrpc.decode(text) == Request(1, "x", params)


def test_params_may_nest_as_deep_as_the_limit_leaves_below_the_envelope() -> None:
    message = jsonrpc.decode(b'{"id":1,"method":"x","params":' + b"[" * 126 + b"]" * 126 + b"}")

    assert isinstance(message, Request)
    assert json.dumps(message.params) == "[" * 126 + "]" * 126


@pytest.mark.slow
@pytest.mark.timeout(60)  # Measuring coverage makes it ten times slower.
def test_a_message_has_a_limit_of_values() -> None:
    """The envelope's own object, its id and method, the list and each element count one; keys do not."""
    before = b'{"id":1,"method":"environment/status","params":['

    most = jsonrpc.decode(before + b",".join([b"1"] * 262_140) + b"]}")
    words = complaint(before + b",".join([b"1"] * 262_141) + b"]}")

    assert most == Request(1, "environment/status", [1] * 262_140)
    assert words == "JSON-RPC message exceeds the limit of 262144 JSON values at line 1 column 524328"


@pytest.mark.parametrize("digits", ["18446744073709551616", "1" * 400, "1" * 5000, "-" + "9" * 5000])
def test_a_number_of_any_length_is_a_number(digits: str) -> None:
    """Where a number does not belong the dialect says so; it must reach the dialect for that."""
    message = jsonrpc.decode(f'{{"id":1,"method":"x","params":{digits}}}'.encode())

    assert isinstance(message, Request)
    assert isinstance(message.params, int | float)


# In, for dialects that take it easier.


def loose_complaint(text: bytes) -> str:
    with pytest.raises(Malformed) as caught:
        jsonrpc.decode_loosely(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"id":1,"method":"x"}', Request(1, "x", None)),
        (b' {"id":-0,"method":"x","params":[1.5]}\r\n', Request(0, "x", [1.5])),
        (b'{"id":1,"method":"x","result":1,"error":5,"jsonrpc":[]}', Request(1, "x", None)),
        (b'{"id":1,"method":"x","trace":{"traceparent":"t"}}', Request(1, "x", None, TraceContext("t"))),
        (b'{"method":"x","params":{"a":null}}', Notification("x", {"a": None})),
        (b'{"id":"a","result":{}}', Response("a", {})),
        (b'{"id":1,"error":{"code":1,"message":"m"}}', Response(1, error=ErrorBody(1, "m"))),
        (b'{"id":1,"method":"x","params":{"a":1,"a":2}}', Request(1, "x", {"a": 2})),
        (b'{"id":1,"method":"x","params":{"a":{"b":"c","b":"d"}}}', Request(1, "x", {"a": {"b": "d"}})),
        (b'{"id":1,"method":"x","params":{"id":1,"id":2,"\\u0069d":3}}', Request(1, "x", {"id": 3})),
        (b'{"id":1,"method":"x","params":"\\" \\\\"}', Request(1, "x", '" \\')),
        (b'{"id":1,"method":"x","params":[{"a":1,"a":2}],"b":{"a":1,"a":2}}', Request(1, "x", [{"a": 2}])),
    ],
)  # fmt: skip
def test_the_last_of_two_equal_keys_wins_inside_the_params_of_a_loose_dialect(
    text: bytes, message: Message
) -> None:
    assert jsonrpc.decode_loosely(text) == message


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":1,"id":1,"method":"x"}',
        b'{"id":1,"method":"x","method":"x"}',
        b'{"id":1,"method":"x","params":{},"params":{}}',
        b'{"id":1,"method":"x","other":"\\"","other":1}',
        b'{"id":1,"\\u006dethod":"x","method":"y"}',
        b'{"id":1,"method":"x","params":{"a":1,"a":2},"id":1}',
        b'{"id":1,"id":2,"method":"x","params":{"a":1}}',
    ],
)
def test_a_member_of_the_message_itself_must_not_be_there_twice(text: bytes) -> None:
    """Wherever and however it is written: nobody could say which of them was meant."""
    assert loose_complaint(text) == "a member is there twice"


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"  ", b"{", b"[]", b"1", b"null", b'"x"', b"{}", b'{"id":1}', b"\xff"),
        *(b'\xef\xbb\xbf{"id":1,"method":"x"}', b'{"id":1,"method":"x"} x', b'{"id":1,"method":"x"}{}'),
        *(
            b'{"id":%b,"method":"x"}' % key
            for key in (b"null", b"1.5", b"1.0", b"1e2", b"true", b"[]", b"{}")
        ),
        *(b'{"id":9223372036854775808,"method":"x"}', b'{"id":-9223372036854775809,"method":"x"}'),
        *(b'{"id":00,"method":"x"}', b'{"id":1,"method":1}', b'{"id":1,"method":null}'),
        *(b'{"id":1,"method":"\\ud800"}', b'{"id":1,"method":"a\nb"}', b'{"id":1,"method":"\xff"}'),
        *(b'{"id":1,"method":"x","trace":1}', b'{"id":1,"method":"x","trace":{"traceparent":1}}'),
        *(b'{"id":1,"error":{"code":1}}', b'{"id":1,"error":null}'),
    ],
)
def test_what_is_no_message_is_malformed_for_a_loose_dialect_too(text: bytes) -> None:
    with pytest.raises(Malformed):
        jsonrpc.decode_loosely(text)


def nested(depth: int, *, before: bytes = b"", opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    inner = b"1" if opening != b"[" else b""
    return b'{"id":1,"method":"x",%b"params":%b%b%b}' % (before, opening * depth, inner, closing * depth)


def test_params_of_a_loose_dialect_may_nest_as_deep_as_those_of_others() -> None:
    assert isinstance(jsonrpc.decode_loosely(nested(126)), Request)
    with pytest.raises(Malformed):
        jsonrpc.decode_loosely(nested(127))


@pytest.mark.parametrize("before", [b"", b'"a":{"b":1,"b":2},'], ids=["plain", "equal keys"])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
def test_what_is_nested_too_deeply_is_malformed_at_any_depth(
    before: bytes, opening: bytes, closing: bytes
) -> None:
    """One message must not bring down more than itself."""
    for depth in (500, *range(900, 1050), 100_000):
        with pytest.raises(Malformed):
            jsonrpc.decode_loosely(nested(depth, before=before, opening=opening, closing=closing))


# Out.


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (1, {"a": [1]}, b'{"id":1,"result":{"a":[1]}}'),
        (-(2**63), None, b'{"id":-9223372036854775808,"result":null}'),
        ('a"\né', {}, '{"id":"a\\"\\né","result":{}}'.encode()),
    ],
)
def test_a_result_names_its_request_first(key: jsonrpc.Id, value: object, text: bytes) -> None:
    assert b"".join(jsonrpc.result(key, value)) == text


@pytest.mark.parametrize(("key", "start"), [(7, b'{"id":7,'), ('"', b'{"id":"\\"",')])
def test_a_result_that_is_json_already_is_passed_on_in_its_parts(key: jsonrpc.Id, start: bytes) -> None:
    """Large answers are not copied once more to be joined."""
    large = b"x" * 1000

    parts = jsonrpc.result(key, jsonrpc.JsonParts([b'{"chunk":"', large, b'"}']))

    assert b"".join(parts) == start + b'"result":{"chunk":"' + large + b'"}}'
    assert any(part is large for part in parts)


def test_an_error_names_its_request_last() -> None:
    """As the reference has it: error before id, and no data unless there is some."""
    plain = jsonrpc.error(jsonrpc.UNPARSED, -32600, "why `not`")
    with_data = jsonrpc.error("k", -32603, "no", {"limit": "x"})

    assert plain == b'{"error":{"code":-32600,"message":"why `not`"},"id":-1}'
    assert with_data == b'{"error":{"code":-32603,"message":"no","data":{"limit":"x"}},"id":"k"}'


@pytest.mark.parametrize("key", [5, 'a"b'])
def test_a_result_in_pieces_is_the_same_answer(key: jsonrpc.Id) -> None:
    before, behind = jsonrpc.around(key)

    assert before + b'"x"' + behind == b"".join(jsonrpc.result(key, "x"))
