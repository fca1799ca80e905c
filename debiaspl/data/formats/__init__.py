"""Known sets in the layouts their authors publish: one file per format, from its address to its tensors."""
