"""Out of a run: its model again, predictions for a folder, which images to label next, and files for other programs."""

from debiaspl.deploy.next import pick_next
from debiaspl.deploy.saved import SavedModel, load_model

__all__ = ["SavedModel", "load_model", "pick_next"]
