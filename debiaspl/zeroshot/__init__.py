"""Zero-shot classification without labels: from class names to probabilities, and to a trained student."""

from debiaspl.zeroshot.embeddings import ZeroShot as ZeroShot
