"""Sockets, and the life of a connection."""
