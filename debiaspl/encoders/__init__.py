"""Pretrained encoders: from images to features, by name."""

from debiaspl.encoders.cache import Features, Views, cached_features
from debiaspl.encoders.encoder import Encoder, fingerprint
from debiaspl.encoders.load import build_encoder, lite0_is_installed, load_encoder
from debiaspl.encoders.network import EncoderNetwork

__all__ = [
    "Encoder",
    "EncoderNetwork",
    "Features",
    "Views",
    "build_encoder",
    "cached_features",
    "fingerprint",
    "lite0_is_installed",
    "load_encoder",
]
