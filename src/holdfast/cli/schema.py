"""``holdfast schema``: prints the messages of the endpoints as a schema."""

from __future__ import annotations

import argparse

from holdfast.dialects.endpoints import ENDPOINTS
from holdfast.schema import json_schema, openrpc, typescript

CATALOGS = {row.name: row.catalog for row in ENDPOINTS}

WRITERS = {
    "json-schema": json_schema.write,
    "typescript": typescript.write,
    "openrpc": openrpc.write,
}


def schema(arguments: argparse.Namespace) -> int:
    """Print the schema of one endpoint, or of all."""
    names = [arguments.endpoint] if arguments.endpoint else list(CATALOGS)
    print(WRITERS[arguments.format]([CATALOGS[name] for name in names]), end="")
    return 0
