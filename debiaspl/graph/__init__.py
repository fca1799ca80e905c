"""Label propagation over the nearest neighbours of feature vectors."""

from debiaspl.graph.logistic import Linear, logistic, probe_weights
from debiaspl.graph.neighbours import Nearest, directions, nearest
from debiaspl.graph.ridge import ridge_weights
from debiaspl.graph.spread import Graph
