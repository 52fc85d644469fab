"""Files: the work itself, behind rules that hold whatever others do meanwhile."""
