"""Somebody's own photos: what is there, what is chosen for them, how it is checked, and the runs."""
