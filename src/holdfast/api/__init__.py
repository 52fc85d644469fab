"""What Python programs use: hosts, handles of processes, and their synchronous twins."""
