"""Labelling images in a browser on this machine; answers are written to labels.csv."""

from debiaspl.label.server import LabelServer as LabelServer
from debiaspl.label.session import open_session as open_session
