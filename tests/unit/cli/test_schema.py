"""``holdfast schema``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from holdfast.cli.main import main
from holdfast.cli.schema import CATALOGS, WRITERS


@pytest.mark.parametrize("endpoint", CATALOGS)
@pytest.mark.parametrize("form", WRITERS)
def test_one_endpoint_is_printed_in_the_format_asked_for(
    form: str, endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output carries the schema and nothing else, so that it can go into a file."""
    code = main(["schema", "--format", form, "--endpoint", endpoint])

    shown = capsys.readouterr()
    assert code == 0
    assert shown.out == WRITERS[form]([CATALOGS[endpoint]])
    assert shown.err == ""


@pytest.mark.parametrize("form", WRITERS)
def test_both_endpoints_are_printed_as_one_document(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Who does not know yet which one to speak sees both."""
    main(["schema", "--format", form])

    assert capsys.readouterr().out == WRITERS[form](list(CATALOGS.values()))


def test_json_schema_is_what_is_printed_without_a_format(capsys: pytest.CaptureFixture[str]) -> None:
    main(["schema"])

    assert json.loads(capsys.readouterr().out)["$defs"].keys() == CATALOGS.keys()


def test_an_unknown_format_is_refused_with_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["schema", "--format", "xml"])

    assert end.value.code == 2
    shown = capsys.readouterr().err
    assert all(form in shown for form in WRITERS)


@pytest.mark.slow
def test_a_server_starts_without_what_only_schemas_need() -> None:
    """Its start is measured in milliseconds."""
    script = (
        "import sys, holdfast.cli.serve, holdfast.cli.serve_options\n"
        "print([name for name in sys.modules if name.startswith('holdfast.')"
        " and ('schema' in name or 'catalog' in name)])"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
