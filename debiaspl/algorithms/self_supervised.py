"""What algorithms that learn features without a label have in common."""

from debiaspl.algorithms.algorithm import Algorithm, Views


class SelfSupervised(Algorithm):
    """Learns features from two strong views, without a label: a start, for runs that learn from labels afterwards.

    Args:
        correction: none, since there are no labels to correct.
        num_features: width of the network's features.
    """

    views = Views(strong=2)
    makes_pseudo_labels = False
    learns_labels = False
    needs_pictures = "it trains the features themselves, and those of a frozen encoder stay as they are."
