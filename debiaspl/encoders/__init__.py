"""Pretrained encoders: they turn images into features."""

from debiaspl.encoders.encoder import Encoder, fingerprint
from debiaspl.encoders.encoding import ImageFeatures, features_of
from debiaspl.encoders.network import EncoderNetwork, build_encoder, lite0_is_installed, load_encoder
from debiaspl.encoders.trained import NETWORKS, NetworkFacts, load_trained
