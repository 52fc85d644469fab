"""Schemas, written from the catalog of an endpoint (pure)."""
