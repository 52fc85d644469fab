"""The exec dialect: resumable sessions and numbered process events."""
