"""What a report shows of the features: curves, and what the run itself has said."""

from typing import Any

from debiaspl.report.runs import read_run, runs_values
from debiaspl.report.runs.page import POINTS, curves
from debiaspl.training import train
from tests.report.made import HOSTILE
from tests.report.test_runs import LOG, begun
from tests.training.tiny import TINY, changed

SAID = {"kind": "collapsed", "fact": f"All features are alike {HOSTILE}.", "todo": "Set relations=0."}


def measured(step: int, **more: Any) -> dict[str, Any]:
    numbers = {"rank": 20 - step / 10, "spread": 0.5}
    losses = {"contrast": 1.0} if step else {}
    return {"step": step, "losses": losses, "health": numbers, "seconds": 1.0} | more


MEASURED = [measured(0), measured(10), measured(20, warning=SAID), measured(30)]


def test_the_curves_have_the_first_measurement_and_every_later_one():
    found = curves(MEASURED)
    assert found["health"]["step"] == [0, 10, 20, 30]
    assert found["health"]["rank"] == [20, 19, 18, 17]
    assert found["losses"]["contrast"] == [None, 1, 1, 1]
    assert curves(LOG)["health"] is None
    many = curves([measured(step) for step in range(1000)])["health"]
    assert len(many["step"]) <= POINTS
    assert many["step"][-1] == 999


def test_what_was_said_is_a_finding_before_the_end_too(tmp_path):
    run = read_run(begun(tmp_path / "run", MEASURED))
    (finding,) = runs_values([run])["findings"]
    assert (finding["fact"], finding["todo"], finding["part"]) == (SAID["fact"], SAID["todo"], "health")


def test_of_several_runs_it_is_told_whose_it_is_and_how_many(tmp_path):
    runs = [read_run(begun(tmp_path / str(seed), MEASURED, seed=seed)) for seed in (3, 4)]
    runs.append(read_run(begun(tmp_path / "fine", [measured(0), measured(10)], seed=5)))
    (finding,) = runs_values(runs)["findings"]
    assert finding["fact"].startswith("debiaspl, seed 3: All features are alike")
    assert finding["fact"].endswith(" This holds for 2 of 3 runs.")


def test_a_start_is_measured_by_its_class_means_and_the_next_step_is_a_run_with_labels(tmp_path):
    train(changed(TINY, "algorithm=moco", "correction=none", "memory=32"), tmp_path / "start")
    page = runs_values([read_run(tmp_path / "start")])
    (finding,) = [one for one in page["findings"] if one["part"] == "accuracy"]
    assert finding["fact"].startswith("The nearest class mean, on features of moco, recognises ")
    assert finding["todo"] == f"Start a run with labels from it: --set start={tmp_path / 'start'}"
