"""The command line: the only place that names a concrete backend."""
