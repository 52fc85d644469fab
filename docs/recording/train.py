"""Stands for long work in the recording."""

import time

for epoch in range(1, 9):
    print(f"epoch {epoch}  loss {0.9**epoch:.3f}", flush=True)
    time.sleep(1.2)
