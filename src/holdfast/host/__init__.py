"""The kernel's side: starting, signalling and reaping children.  Synchronous; no event loop, no JSON."""
