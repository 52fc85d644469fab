"""Schemas and reference pages, written from the catalog of an endpoint (pure)."""
