"""What a real server tells a real collector: every span of the specification, from one run."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.dialects.exec.methods import METHODS
from holdfast.dialects.exec.spans import span_name
from tests.fakes.client import Client, Refusal, client
from tests.fakes.collector import Collector, Seen, collector
from tests.fakes.server import program_at
from tests.fakes.web import response, web

pytestmark = pytest.mark.slow

REFERENCE = Path(__file__).parents[2] / "docs/reference/telemetry.md"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WALK = {
    "maxDepth": 1,
    "maxDirectories": 1,
    "maxEntries": 1,
    "followDirectorySymlinks": False,
    "pruneHiddenDirectories": False,
}
SANDBOX = {
    "permissions": {
        "type": "managed",
        "file_system": {"type": "restricted", "entries": []},
        "network": "restricted",
    },
    "windowsSandboxLevel": "disabled",
}


def ask(talking: Client, method: str, params: Any = None, **trace: str) -> asyncio.Future[Any]:
    """A request with the trace of its caller."""
    message, answer = talking.compose(method, params)
    talking.wire.send_text(msgspec.json.encode({**msgspec.json.decode(message), "trace": trace}))
    return answer


def file_calls(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    uri = folder.as_uri()
    folder.joinpath("f").write_text("x")
    return [
        ("fs/readFile", {"path": f"{uri}/f"}),
        ("fs/writeFile", {"path": f"{uri}/f", "dataBase64": "eA=="}),
        ("fs/createDirectory", {"path": f"{uri}/d"}),
        ("fs/getMetadata", {"path": f"{uri}/f"}),
        ("fs/canonicalize", {"path": f"{uri}/f"}),
        ("fs/readDirectory", {"path": uri}),
        ("fs/walk", {"path": uri, "options": WALK}),
        ("fs/copy", {"sourcePath": f"{uri}/f", "destinationPath": f"{uri}/g", "recursive": False}),
        ("fs/rename", {"sourcePath": f"{uri}/g", "destinationPath": f"{uri}/h"}),
        ("fs/archive", {"path": uri, "handleId": "a"}),
        ("fs/extract", {"path": f"{uri}/d", "handleId": "e"}),
        ("fs/remove", {"path": f"{uri}/h"}),
        ("fs/open", {"path": f"{uri}/f", "handleId": "h", "mode": "read"}),
        ("fs/readBlock", {"handleId": "h", "offset": 0, "len": 1}),
        ("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": "eA=="}),
        ("fs/close", {"handleId": "h"}),
        ("fs/watchMissing", {"watchId": 1, "missing": [f"{uri}/missing"]}),
        ("fs/canonicalize", {"path": f"{uri}/d", "sandbox": SANDBOX}),
    ]


async def use(url: str, folder: Path) -> int:
    """Something of everything; gives the port of the server that was asked over HTTP."""
    async with client(url) as talking, web() as served:
        start = {"processId": "p", "argv": ["true"], "cwd": "file:///", "env": {}, "tty": False}
        await talking.result(ask(talking, "process/start", start, traceparent=PARENT, tracestate="vendor=1"))
        await talking.closed("p")
        with pytest.raises(Refusal):
            await talking.call("no/such")
        with pytest.raises(Refusal):
            await talking.call("process/wait", {})
        await talking.result(ask(talking, "environment/info", traceparent="00-nonsense"))
        for method, params in file_calls(folder):
            await talking.post(method, params)  # Some are refused, and have a span none the less.
        served.routes["/x"] = response(b"hi")
        served.routes["/no"] = b"HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n"
        for name, place in (("a", f"{served.url}/x"), ("b", f"{served.url}/no"), ("c", "http://127.0.0.1:1")):
            await talking.post("http/request", {"method": "GET", "url": place, "requestId": name})
        streamed = {"method": "GET", "url": f"{served.url}/x", "requestId": "s", "streamResponse": True}
        await talking.call("http/request", streamed)
        await talking.until(
            lambda: any(message.get("params", {}).get("done") for message in talking.messages)
        )
        await talking.start("endless", "sleep", "1000")
        talking.post("process/read", {"processId": "endless", "waitMs": 100_000})
        await talking.call("environment/status")
    return int(served.url.rpartition(":")[2])


class Run:
    """What a whole run has left with the collector."""

    def __init__(self, kept: Collector, port: int) -> None:
        self.kept = kept
        self.port = port

    @property
    def requests(self) -> list[Seen]:
        return [span for span in self.kept.spans if span.kind == "server"]

    def below(self, parent: Seen) -> dict[str, Seen]:
        return {span.name: span for span in self.kept.spans if span.parent == parent.key}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with collector() as kept:
        with program_at(env=kept.environment()) as (_, url):
            port = asyncio.run(use(url, tmp_path_factory.mktemp("files")))
        yield Run(kept, port)


def test_the_spans_of_a_process_have_its_request_as_parent_and_that_the_callers(run: Run) -> None:
    """One look at a trace tells where the time of a command went, across programs."""
    request = next(span for span in run.requests if span.name == "process/start")

    caller = PARENT.split("-")
    assert (request.trace, request.parent, request.state) == (caller[1], caller[2], "vendor=1")
    children = run.below(request)
    assert {name: (span.kind, span.attributes) for name, span in children.items()} == {
        "codex.exec_server.process_prepare_sandbox": ("internal", {"process.id": "p"}),
        "codex.exec_server.process_prepare_shell_snapshot": (
            "internal",
            {"process.id": "p", "snapshot_requested": False},
        ),
        "codex.process.spawn": ("internal", {"process.id": "p"}),
        "codex.exec_server.process": ("internal", {"process.id": "p", "result": "success"}),
    }
    assert {span.trace for span in children.values()} == {request.trace}
    process = children["codex.exec_server.process"]
    assert request.start < children["codex.process.spawn"].end <= process.start <= request.end
    assert process.end > process.start


def test_a_request_says_how_it_came_out_and_when(run: Run) -> None:
    """A method that the client made up is no name of a span: those must be few."""
    told = {
        (span.name, span.attributes["method"], span.attributes["result"])
        for span in run.requests
        if not span.name.startswith(("fs/", "http/")) and "result" in span.attributes
    }
    assert told == {
        ("initialize", "initialize", "success"),
        ("process/start", "process/start", "success"),
        ("unknown", "no/such", "error"),
        ("process/wait", "process/wait", "error"),
        ("environment/info", "environment/info", "success"),
        ("environment/status", "environment/status", "success"),
    }
    offsets = ("rpc.dispatch_offset_ns", "rpc.response_enqueue_offset_ns")
    for span in run.requests:
        if "result" in span.attributes:
            assert set(span.attributes) == {"method", "result", *offsets}
            assert 0 <= span.attributes[offsets[0]] <= span.attributes[offsets[1]]


def test_whoever_has_no_parent_begins_a_trace_and_the_run_has_one_too(run: Run) -> None:
    """As with the reference.  A traceparent that is none counts as none."""
    whole = run.kept.span("codex.exec_server")
    roots = [span for span in run.kept.spans if not span.parent]

    assert (whole.kind, whole.attributes) == ("internal", {})
    assert {span.kind for span in roots if span is not whole} == {"server"}
    assert [span.name for span in run.requests if span.parent] == ["process/start"]
    assert len({span.trace for span in roots}) == len(roots)
    assert all(whole.start <= span.start and span.end <= whole.end for span in run.kept.spans)


def test_every_method_about_files_has_a_span_of_its_work(run: Run) -> None:
    """With the word whether it was sandboxed, which is what makes it slow."""
    parents = {span.key: span.name for span in run.requests}
    work = [span for span in run.kept.spans if span.name.startswith("fs.")]

    told = Counter((parents[span.parent], span.name, span.attributes["sandboxed"]) for span in work)

    assert told == {
        **{(method, span_name(method), False): 1 for method in METHODS if method.startswith("fs/")},
        ("fs/canonicalize", "fs.canonicalize", True): 1,
    }
    assert {span.kind for span in work} == {"internal"}


def test_the_reference_names_every_span_and_every_attribute(run: Run) -> None:
    """And nothing that never comes."""
    rows = [line for line in REFERENCE.read_text().splitlines() if line.startswith("| `")]
    named = {word for row in rows for word in re.findall(r"`([a-z_]+[./][a-z_./]+)`", row.split("|")[1])}
    arrived = {span.name for span in run.kept.spans if span.kind != "server"}
    attributes = {key for span in run.kept.spans for key in span.attributes}

    assert {name for name in named if name.startswith(("codex.", "fs."))} == arrived
    assert sorted(key for key in attributes if not any(f"`{key}`" in row for row in rows)) == []


def test_http_requests_are_spans_of_a_client(run: Run) -> None:
    """Their attributes are those that OpenTelemetry's own tools look for."""
    requests = [span for span in run.requests if span.name == "http/request"]
    spans = [run.below(request)["codex.exec_server.http_request"] for request in requests]

    common = {"http.request.method": "GET", "server.address": "127.0.0.1", "server.port": run.port}
    assert [span.attributes for span in spans] == [
        {**common, "http.response.status_code": 200},
        {**common, "http.response.status_code": 503, "error.type": "503"},
        {**common, "server.port": 1, "error.type": "request"},
        {**common, "http.response.status_code": 200},
    ]
    assert {span.kind for span in spans} == {"client"}


def test_a_request_that_a_disconnect_ends_has_a_span_without_a_result_and_is_not_counted(run: Run) -> None:
    """It has none: nobody was told one."""
    assert run.kept.span("process/read").attributes == {"method": "process/read"}
    assert not [key for key in run.kept.counted("exec_server_requests_total") if key[0] == "process/read"]


def test_a_process_that_the_end_of_the_server_ends_has_a_span_that_says_so(run: Run) -> None:
    process = run.kept.span("codex.exec_server.process", **{"process.id": "endless"})

    assert process.attributes["result"] == "terminated"
