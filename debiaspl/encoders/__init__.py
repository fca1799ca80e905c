"""Pretrained encoders: they turn images into features."""

from debiaspl.encoders.encoder import Encoder as Encoder, fingerprint as fingerprint
from debiaspl.encoders.encoding import ImageFeatures as ImageFeatures, features_of as features_of
from debiaspl.encoders.network import (
    EncoderNetwork as EncoderNetwork,
    build_encoder as build_encoder,
    lite0_is_installed as lite0_is_installed,
    load_encoder as load_encoder,
)
from debiaspl.encoders.trained import NETWORKS as NETWORKS, NetworkFacts as NetworkFacts, load_trained as load_trained
