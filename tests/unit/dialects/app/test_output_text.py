"""Output as text: what a client reads must be what the program wrote, in whatever encoding it wrote it."""

# The texts are in many scripts.
# ruff: noqa: RUF001

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.dialects.app import output
from holdfast.dialects.app.output import decode, pieces

FRENCH = "Voilà l'été où les élèves français étudient à la bibliothèque."
RUSSIAN = "Системе не удается найти указанный путь."
JAPANESE = "指定されたファイルが見つかりません。漢字とかなが混ざっています。"
CHINESE = "系统找不到指定的文件。北京的人们每天坐地铁去上班。"
TAIWANESE = "系統找不到指定的檔案。臺北的人們每天坐捷運去上班。"
KOREAN = "지정된 파일을 찾을 수 없습니다. 서울에 사는 사람들은 매일 지하철을 탑니다."
HEBREW = "המערכת אינה מוצאת את הקובץ שצוין. דג סקרן שט בים מאוכזב."
THAI = "ระบบไม่พบแฟ้มที่ระบุ เป็นมนุษย์สุดประเสริฐเลิศคุณค่า"
UKRAINIAN = "Система не може знайти вказаний шлях. Їжак і ганок є в українській мові."


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"plain\n", "plain\n"),
        ("größe 漢字 🦀".encode(), "größe 漢字 🦀"),
        (b"\xef\xbb\xbfmarked", "\ufeffmarked"),
        (b"a\0b", "a\0b"),
    ],
)
def test_utf_8_is_taken_as_it_is(data: bytes, text: str) -> None:
    """Nearly all output is UTF-8, and no guess may touch it."""
    assert decode(data, cut=False) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xffb", "aÿb"),
        (FRENCH.encode("latin-1"), FRENCH),
        (b"\x93test\x94", "“test”"),
        (JAPANESE.encode("cp932"), JAPANESE),
        (b"h\xc3", "hĂ"),
    ],
)
def test_the_samples_of_the_protocol(data: bytes, text: str) -> None:
    """These are what clients of the reference get."""
    assert decode(data, cut=False) == text


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "cp866"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN, "iso8859-5"),
        (UKRAINIAN, "koi8-u"),
        (HEBREW, "cp1255"),
        (THAI, "cp874"),
        (JAPANESE, "euc_jp"),
        (CHINESE, "gbk"),
        (TAIWANESE, "big5"),
        (KOREAN, "cp949"),
        ("Nie można odnaleźć określonego pliku.", "cp1250"),
        ("Το σύστημα δεν μπορεί να βρει το αρχείο.", "cp1253"),
        ("Pijamalı hasta yağız şoföre çabucak güvendi.", "cp1254"),
        ("تعذر على النظام العثور على الملف المحدد.", "cp1256"),
        ("Glāžšķūņa rūķīši dzērumā čiepj Baha koncertflīģeļu vākus.", "cp1257"),
    ],
)
def test_a_legacy_encoding_is_recognised(text: str, codec: str) -> None:
    """Old tools and files still write these."""
    data = text.encode(codec)

    assert decode(data, cut=False) == text
    assert decode(b"INFO start\n" * 20 + b"error: " + data + b"\n", cut=False).endswith(f"error: {text}\n")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x91\x92\x93\x94 a", "\u2018\u2019\u201c\u201d a"),
        (b"a \x96\x97\x99 b", "a \u2013\u2014\u2122 b"),
        (b"\x91\x92\x93\x94 1", "\u0421\u0422\u0423\u0424 1"),
        (b"\x91\x92\x93\x98 a", "\u0421\u0422\u0423\u0428 a"),
        (b"\x91\x92\x93\x94 \xa0 a", "\u0421\u0422\u0423\u0424 \u0430 a"),
    ],
)
def test_quotes_around_ascii_are_no_cyrillic_letters(data: bytes, text: str) -> None:
    """The detector says IBM866.  That holds only if there is no word, or another letter."""
    assert decode(data, cut=False) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("\ufeffhé".encode("utf-16-le"), "hé"),
        ("\ufeffhé".encode("utf-16-be"), "hé"),
        (b"\xff\xfe", ""),
        (b"\xff\xfea", "\ufffd\ufffda"),
        (b"\xff\xfe\x00\xd8", "\ufffd\ufffd\x00\ufffd"),
        (b"\xef\xbb\xbfabc\xff", "\ufeffabc\ufffd"),
    ],
)
def test_a_byte_order_mark_decides(data: bytes, text: str) -> None:
    """The writer has said what it is; if that is not true, the bytes are shown as broken UTF-8."""
    assert decode(data, cut=False) == text


@pytest.mark.parametrize(
    ("before", "data", "character"),
    [
        (FRENCH.encode("cp1252"), b"\x81", "\x81"),
        (HEBREW.encode("cp1255"), b"\xca", "\u05ba"),
        (UKRAINIAN.encode("koi8-u"), b"\xae", "ў"),
        (JAPANESE.encode("euc_jp"), b"\xa1\xc1", "\uff5e"),
        (JAPANESE.encode("euc_jp"), b"\xad\xa1", "①"),
        (JAPANESE.encode("euc_jp"), b"\xfc\xe2", "髙"),
        (CHINESE.encode("gbk"), b"\xa3\xa0", "\u3000"),
        (CHINESE.encode("gbk"), b"\x80", "€"),
        (TAIWANESE.encode("big5"), b"\xa1\x45", "\u2027"),
        (TAIWANESE.encode("big5"), b"\xa3\xe1", "€"),
    ],
)
def test_the_tables_are_those_of_the_encoding_standard(before: bytes, data: bytes, character: str) -> None:
    """Python's tables differ in places; there a text would come out wrong, or not at all."""
    assert decode(before * 3 + b" " + data, cut=False).rpartition(" ")[2] == character


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"\x80\n" * 70_000, id="more than are looked after"),
        pytest.param(b"\xff\n", id="not a character"),
        pytest.param(b"\x80\n\xff\n", id="not a character either"),
        pytest.param(b"\x81", id="half a character"),
    ],
)
def test_what_is_not_what_it_looked_like_is_shown_as_broken_utf_8(tail: bytes) -> None:
    """An error far behind the guess must neither raise nor take long."""
    data = (CHINESE.encode("gbk") + b"\n") * 4_000 + tail

    assert decode(data, cut=False) == data.decode(errors="replace")


def test_broken_euc_jp_is_shown_as_broken_utf_8() -> None:
    """A pair of bytes for which no table has a character must not raise."""
    data = (JAPANESE.encode("euc_jp") + b"\n") * 2_000 + b"\xad\xfe\xa9\xa1"

    assert decode(data, cut=False) == data.decode(errors="replace")


# Cut by the cap.


@pytest.mark.parametrize("left", [1, 2, 3])
@pytest.mark.parametrize("character", ["é", "漢", "🦀"])
def test_a_character_cut_by_the_cap_is_dropped(character: str, left: int) -> None:
    """Otherwise a mebibyte of good text is taken for another encoding, and every character is wrong."""
    text = character * 1000
    encoded = character.encode()
    beginning = encoded[: min(left, len(encoded) - 1)]

    assert decode(text.encode() + beginning, cut=True) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"abc", "abc"),
        ("é".encode(), "é"),
        (b"\xc3", ""),
        (FRENCH.encode("latin-1")[:-1] + b"\xe9", FRENCH[:-1] + "é"),
        (b"a\xffb\xc3", "aÿbÃ"),
        ("\ufeffhé".encode("utf-16-le")[:-1], "h"),
        (JAPANESE.encode("cp932") + b"\x8a", JAPANESE),
        (JAPANESE.encode("euc_jp") + b"\xb4", JAPANESE),
        (CHINESE.encode("gbk") + b"\xcf", CHINESE),
        (b"\xef\xbb\xbf\xff \xc3", "\ufeff\ufffd "),
    ],
)
def test_nothing_else_is_dropped_at_a_cut(data: bytes, text: str) -> None:
    """In other encodings the last byte is a character of its own, or the first half of one."""
    assert decode(data, cut=True) == text


@settings(deadline=None)
@given(text=st.text(), data=st.data())
def test_cut_anywhere_utf_8_gives_a_prefix_without_loss(text: str, data: st.DataObject) -> None:
    """The cap knows nothing of characters."""
    encoded = text.encode()
    at = data.draw(st.integers(0, len(encoded)))

    shown = decode(encoded[:at], cut=True)

    assert text.startswith(shown)
    assert at - len(shown.encode()) < 4


# Whatever comes.


@settings(deadline=None)
@given(text=st.text(), cut=st.booleans())
def test_utf_8_comes_back_as_it_went(text: str, cut: bool) -> None:  # noqa: FBT001
    """A cut between two characters is no reason to lose one."""
    assert decode(text.encode(), cut=cut) == text


ALPHABET = [
    b"a",
    b" ",
    b"\n",
    b"\x80",
    b"\x93",
    b"\xa3\xe1",
    b"\xad\xa1",
    b"\xc3",
    b"\xe9",
    b"\xff",
    b"\x1b$B",
]


@settings(deadline=None)
@given(
    data=st.one_of(st.binary(), st.lists(st.sampled_from(ALPHABET)).map(b"".join)),
    before=st.sampled_from(["", JAPANESE, CHINESE, TAIWANESE, FRENCH]),
    codec=st.sampled_from(["cp932", "euc_jp", "gb18030", "big5", "latin-1", "utf-8", "utf-16"]),
    cut=st.booleans(),
)
def test_no_bytes_raise(data: bytes, before: str, codec: str, cut: bool) -> None:  # noqa: FBT001
    """Output is whatever a program likes, and its end must be told all the same."""
    decode(before.encode(codec, "ignore") + data, cut=cut).encode()


# What it costs.


def test_a_large_buffer_is_judged_by_its_first_foreign_lines() -> None:
    """The detector sees a part only; it must be the part that tells."""
    lines = b"hello world\n" * 20_000

    text = decode(lines + FRENCH.encode("latin-1") + b"\n" + lines, cut=False)

    assert text == f"{lines.decode()}{FRENCH}\n{lines.decode()}"


def test_a_large_buffer_without_lines_is_judged_too() -> None:
    """There is no place then where it can be parted safely."""
    data = b"x" * 200_000 + b" \xe9t\xe9 " + b"x" * 200_000

    assert decode(data, cut=False) == data.decode("latin-1")


@pytest.mark.parametrize("data", [bytes(range(256)) * 16_384, b"\xff" * 4_194_304, b"\x93a" * 2_097_152])
def test_a_flood_of_foreign_bytes_does_not_take_long(data: bytes) -> None:
    """Unbounded, the detector would take most of a second for these 4 MiB; a quarter of it is ample."""
    decode(data[:16], cut=False)
    started = time.process_time()

    decode(data, cut=False)

    assert time.process_time() - started < 0.25


def test_the_detector_is_loaded_only_for_foreign_bytes() -> None:
    """A server that sees UTF-8 only starts and lives without it."""
    program = (
        "import sys\n"
        "from holdfast.dialects.app.output import decode\n"
        "decode('é'.encode(), cut=False), decode(b'h\\xc3', cut=True)\n"
        "print('chardetng_py' in sys.modules)\n"
        "decode(b'h\\xc3', cut=False)\n"
        "print('chardetng_py' in sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True"]


def test_without_a_detector_foreign_bytes_are_shown_as_broken_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not made for every platform, and the rest of the server does not need it."""
    monkeypatch.setitem(sys.modules, "chardetng_py.detector", None)

    assert decode(b"a\xffb", cut=False) == "a\ufffdb"


def test_an_encoding_without_a_table_is_shown_as_broken_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later detector may know more names than Python does, or than fit a table of single bytes."""
    for name in ("x-unheard-of", "UTF-8", "ISO-2022-JP", "UTF-16LE"):
        monkeypatch.setattr("holdfast.dialects.app.output._guess", lambda *_, name=name, **__: name)

        assert decode(b"a\xffb", cut=False) == "a\ufffdb"


# Piece by piece.

GUESSED = [
    b"",
    b"plain\n" * 9,
    "größe 漢字 🦀".encode() * 3,
    b"h\xc3",
    b"\x93test\x94",
    b"\x91\x92\x93\x94 1",
    FRENCH.encode("latin-1"),
    JAPANESE.encode("cp932"),
    JAPANESE.encode("euc_jp") + b"\xad\xa1\xfc\xe2",
    JAPANESE.encode("euc_jp") + b"\xad\xfe\xa9\xa1",
    CHINESE.encode("gbk") + b"\x80\n\xff",
    CHINESE.encode("gbk") + b"\x80",
    TAIWANESE.encode("big5") + b"\xa3\xe1",
    KOREAN.encode("cp949"),
    HEBREW.encode("cp1255") + b"\xca",
    "\ufeffhé\U0001f980".encode("utf-16-le"),
    "\ufeffhé\U0001f980".encode("utf-16-be"),
    b"\xff\xfe\x00\xd8a",
    b"\xef\xbb\xbfabc\xff\xe6\xbc",
    bytes(range(256)),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("data", GUESSED, ids=range(len(GUESSED)))
def test_a_long_text_is_the_same_as_a_short_one(
    data: bytes, size: int, *, cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is divided, also in the middle of a character."""
    whole = decode(data, cut=cut)

    monkeypatch.setattr(output, "_SLICE", size)

    assert decode(data, cut=cut) == decode(bytearray(data), cut=cut) == whole


@pytest.mark.parametrize("codec", ["utf-8", "cp932", "cp1252"])
def test_no_piece_of_a_long_text_is_long(codec: str) -> None:
    """Each holds up everybody else for as long as it takes."""
    data = (FRENCH if codec == "cp1252" else JAPANESE).encode(codec) * 5_000

    lengths = [len(piece) for piece in pieces(data, cut=False)]

    assert sum(lengths) == len(data.decode(codec))
    assert max(lengths) <= 32_768
