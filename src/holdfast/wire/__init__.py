"""Bytes to messages and back (pure)."""
