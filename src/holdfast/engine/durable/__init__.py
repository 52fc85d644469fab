"""Processes whose output, input and end outlive the server: kept in an arena, found again by the next one."""
