"""Names, shapes and rules of the protocols; no sockets, no engine."""
