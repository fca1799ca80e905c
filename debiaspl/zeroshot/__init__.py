"""Zero-shot classification without labels: from class names to probabilities, and to a trained student."""

from debiaspl.encoders.templates import (
    TEMPLATES as TEMPLATES,
    check_templates as check_templates,
    read_templates as read_templates,
)
from debiaspl.zeroshot.embeddings import ZeroShot as ZeroShot
from debiaspl.zeroshot.predictions import Predictions as Predictions
from debiaspl.zeroshot.teacher import Teacher as Teacher
