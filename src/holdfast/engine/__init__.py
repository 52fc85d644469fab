"""One process, many processes: numbered output, stdin, exit and close.  No JSON, no names."""
