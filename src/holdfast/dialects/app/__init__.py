"""The app dialect."""
