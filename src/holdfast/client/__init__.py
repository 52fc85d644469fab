"""The same interface, far away: a server as a backend."""
