"""The options of ``holdfast fetch``, as they are read."""

from __future__ import annotations

import pytest

from holdfast.cli.main import main, parse


def test_a_url_is_enough() -> None:
    arguments = parse(["fetch", "http://x/"])

    assert (arguments.target, arguments.method, arguments.data) == ("http://x/", None, None)
    assert (arguments.header, arguments.output, arguments.timeout) == ([], None, None)
    assert (arguments.fail, arguments.include, arguments.no_follow) == (False, False, False)


def test_headers_are_read_as_people_write_them() -> None:
    arguments = parse(["fetch", "--header", "Accept: text/html", "--header", "x:a:b", "--header", "y:", "u"])

    assert arguments.header == [("Accept", "text/html"), ("x", "a:b"), ("y", "")]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--header", "x", "u"], "'x' is no header: write 'NAME: VALUE'"),
        (["--header", ": x", "u"], "is no header"),
        (["--timeout", "0", "u"], "argument --timeout"),
        ([], "the following arguments are required: URL"),
    ],
)
def test_a_wrong_call_is_refused(wrong: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["fetch", *wrong])

    assert end.value.code == 2
    assert words in capsys.readouterr().err
