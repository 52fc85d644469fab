"""Terminals as streams of bytes: what they show, what they are asked, and how they are left."""
