"""Sandboxes: from a policy to what the kernel is told."""
