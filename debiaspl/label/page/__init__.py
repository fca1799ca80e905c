"""The page: style and scripts, all of them here."""
