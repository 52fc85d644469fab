"""Undoes the masking of WebSocket payloads (pure)."""

from __future__ import annotations

from websockets.speedups import apply_mask as unmask

__all__ = ["unmask"]
