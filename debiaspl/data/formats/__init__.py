"""Known sets in their authors' formats: one module per format, from its address to its tensors."""
