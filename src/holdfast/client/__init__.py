"""A server as a backend: the interface of the engine, far away."""
