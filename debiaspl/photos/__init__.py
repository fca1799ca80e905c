"""Training on a folder of photos: what it holds, the recipe, how it is checked, and the runs."""
