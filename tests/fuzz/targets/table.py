"""Every target there is: what decodes a peer's bytes, and what must hold whatever they are."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import answers, archives, envelope, frames, heads, lines, news, params, session, skills, texts

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


@dataclass(frozen=True)
class Target:
    """Something to be fuzzed."""

    check: Callable[[bytes], None]
    """Raises if something does not hold."""
    seeds: Sequence[bytes]
    words: Sequence[str] = ()
    """Pieces that are worth trying."""
    share: int = 10
    """Of all cases, compared with those of other targets: the faster it is, the more."""


_JSON = envelope.DICTIONARY
_HTTP = ("\r\n", "content-length: ", "connection: ", "upgrade", "HTTP/1.1", "101", "websocket", "origin: ")

TARGETS: dict[str, Target] = {
    "client_frames": Target(frames.check_client, frames.SEEDS),
    "server_frames": Target(frames.check_server, frames.SEEDS),
    "http_request": Target(heads.check_request, heads.REQUEST_SEEDS, _HTTP, share=2),
    "http_upgrade": Target(heads.check_answer, heads.ANSWER_SEEDS, _HTTP, share=2),
    "lines": Target(lines.check, lines.SEEDS, share=25),
    "envelope": Target(envelope.check, envelope.SEEDS, _JSON, share=6),
    "loose_envelope": Target(envelope.check_loosely, envelope.SEEDS, _JSON, share=8),
    "scan": Target(envelope.check_scan, envelope.SEEDS, _JSON, share=15),
    "carried": Target(envelope.check_tree, params.SEEDS, share=3),
    "exec_params": Target(params.check_exec, params.SEEDS, share=8),
    "app_params": Target(params.check_app, params.SEEDS, share=8),
    "base64": Target(texts.check_base64, texts.BASE64_SEEDS, share=20),
    "uri": Target(
        texts.check_uri, texts.URI_SEEDS, ("file://", "%2e", "%2F", "localhost", "/../", "C:"), share=8
    ),
    "answers": Target(answers.check, answers.SEEDS, share=8),
    "server_errors": Target(answers.check_error, answers.ERROR_SEEDS, share=8),
    "tar": Target(archives.check, archives.SEEDS, archives.WORDS, share=4),
    "skills": Target(skills.check_skill, skills.SKILL_SEEDS, skills.WORDS, share=8),
    "manifests": Target(skills.check_manifest, skills.MANIFEST_SEEDS, _JSON, share=8),
    "configs": Target(skills.check_config, skills.CONFIG_SEEDS, share=4),
    "session": Target(session.check, session.SEEDS, share=1),
    "shim_news": Target(news.check_report, news.NEWS_SEEDS),
    "past": Target(news.check_past, news.PAST_SEEDS, share=6),
}


def kept(name: str) -> list[bytes]:
    """The cases that were worth keeping: one a line, in base64."""
    path = CORPUS / f"{name}.txt"
    return [base64.b64decode(line) for line in path.read_text().split()] if path.exists() else []
