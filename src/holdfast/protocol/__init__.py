"""The protocol, described once: requests, answers and notifications of both endpoints (pure)."""
