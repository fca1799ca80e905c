"""The base class of algorithms that learn features without labels."""

from debiaspl.algorithms.algorithm import Algorithm, Views


class SelfSupervised(Algorithm):
    """Learns features from two strong views, without labels, as a start for runs that learn from labels afterwards.

    Args:
        correction: none, since there are no labels to correct.
        num_features: width of the network's features.
    """

    views = Views(strong=2)
    makes_pseudo_labels = False
    learns_labels = False
    needs_pictures = "it trains the features themselves, and those of a frozen encoder do not change."
