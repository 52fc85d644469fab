"""A dialect that is not one of ours, with another envelope: all that it takes to add one."""
