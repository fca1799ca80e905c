"""scikit-learn's own checks, each a test; few steps, since they fit some hundred times."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from debiaspl import DebiasedClassifier


@parametrize_with_checks([DebiasedClassifier(max_iter=20)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
