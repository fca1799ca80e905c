"""Zero-shot classification without labels: from class names to probabilities, and to a trained student."""

from debiaspl.encoders.templates import TEMPLATES, check_templates, read_templates
from debiaspl.zeroshot.embeddings import ZeroShot
from debiaspl.zeroshot.predictions import Predictions
from debiaspl.zeroshot.teacher import Teacher
