"""holdfast runs processes for programs."""

__version__ = "0.1.0"
