"""Use the model of a run: predict a folder, choose images to label next, and export files for other programs."""

from debiaspl.deploy.saved import SavedModel as SavedModel, load_model as load_model
