"""Pretrained encoders: from images to features, by name."""

from debiaspl.encoders.cache import EncodedViews, Features, cached_features
from debiaspl.encoders.encode import Encoded, encode
from debiaspl.encoders.encoder import Encoder, fingerprint
from debiaspl.encoders.load import build_encoder, lite0_is_installed, load_encoder
from debiaspl.encoders.network import EncoderNetwork

__all__ = [
    "Encoded",
    "EncodedViews",
    "Encoder",
    "EncoderNetwork",
    "Features",
    "build_encoder",
    "cached_features",
    "encode",
    "fingerprint",
    "lite0_is_installed",
    "load_encoder",
]
