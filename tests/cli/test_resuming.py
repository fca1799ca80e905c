"""``--resume`` where there is nothing to resume: a line says that a new run starts."""

from debiaspl.cli.terminal import note_new_run


def test_a_new_run_is_announced_by_the_first_rank(tmp_path, capsys, monkeypatch):
    def said(resume: bool = True) -> str:
        note_new_run(resume, tmp_path, "config.json")
        return capsys.readouterr().err

    assert f"found no run in {tmp_path}" in said()
    assert said(resume=False) == ""
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, count in (("1", 0), ("0", 1)):
        monkeypatch.setenv("RANK", rank)
        assert said().count("found no run") == count
    (tmp_path / "config.json").touch()
    assert said() == ""
