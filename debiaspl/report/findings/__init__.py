"""Findings in plain words, each with the next thing to do: about predictions (``audit``) and about runs (``runs``)."""
