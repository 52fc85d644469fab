"""What a server tells those who look after it: figures, spans, logs."""
