"""Pretrained encoders: they turn images into features."""

from debiaspl.encoders.cache import EncodedViews, Features, cached_features
from debiaspl.encoders.encode import Encoded, encode
from debiaspl.encoders.encoder import Encoder, fingerprint
from debiaspl.encoders.feature_folder import ImageFeatures, features_of
from debiaspl.encoders.load import build_encoder, lite0_is_installed, load_encoder
from debiaspl.encoders.network import EncoderNetwork
from debiaspl.encoders.trained import NETWORKS, NetworkFacts, load_trained

__all__ = [
    "NETWORKS",
    "Encoded",
    "EncodedViews",
    "Encoder",
    "EncoderNetwork",
    "Features",
    "ImageFeatures",
    "NetworkFacts",
    "build_encoder",
    "cached_features",
    "encode",
    "features_of",
    "fingerprint",
    "lite0_is_installed",
    "load_encoder",
    "load_trained",
]
