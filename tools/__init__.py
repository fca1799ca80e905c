"""What makes pages of the documentation: README's tables, the reference pages, figures, and the site."""
