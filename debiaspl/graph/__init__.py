"""Label propagation over the nearest neighbours of feature vectors."""

from debiaspl.graph.linear import (
    Linear as Linear,
    logistic as logistic,
    probe_weights as probe_weights,
    ridge_weights as ridge_weights,
)
from debiaspl.graph.neighbours import Nearest as Nearest, directions as directions, nearest as nearest
from debiaspl.graph.spread import Graph as Graph
