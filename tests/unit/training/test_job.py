"""Training to a file: what is written, what is kept, what is gone; the folder in between."""

import json
from pathlib import Path

import numpy as np
import pytest

from annealz.core.random import derive_seed
from annealz.io.records import save_record
from annealz.io.store import Store
from annealz.models.exact import exact_log_z
from annealz.models.formats.load import read_model
from annealz.training import load_series, train
from annealz.training.contrastive import Settings
from annealz.training.data import DataSource, binarise, check_rows, digest_rows
from annealz.training.job import resume_training, train_to_file, training_store
from support.training import DATA, NUM_HIDDEN, NUM_VISIBLE

SETTINGS = Settings(num_hidden=NUM_HIDDEN, num_updates=50, batch_size=10, learning_rate=0.1, seed=3)


@pytest.fixture
def source(tmp_path: Path) -> DataSource:
    np.save(tmp_path / "rows.npy", DATA)
    return DataSource.of(tmp_path / "rows.npy")


class Interruption(Exception):
    """Stands for Ctrl-C."""


def interrupt(now) -> None:
    raise Interruption


def cut_off(source: DataSource, out: Path, **options) -> Store:
    """A training that stopped after its first piece."""
    with pytest.raises(Interruption):
        train_to_file(source, SETTINGS, out, on_progress=interrupt, **options)
    return training_store(out)


def test_the_file_holds_the_model_and_all_that_made_it(source: DataSource, tmp_path: Path):
    outcome = train_to_file(source, SETTINGS, tmp_path / "m.npz")
    model, meta = read_model(tmp_path / "m.npz")
    plain = train(DATA, **SETTINGS.to_dict())
    assert model.digest == plain.digest == meta["digest"] == outcome.digest
    np.testing.assert_array_equal(model.visible_means, plain.visible_means)
    assert meta["name"] == "m"
    data = {"name": "rows.npy", "digest": digest_rows(check_rows(DATA))}
    assert meta["training"] == {**SETTINGS.to_dict(), "data": data}
    assert meta["exact_log_z"] == outcome.exact_log_z == exact_log_z(model)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.npz", "rows.npy"]
    assert str(tmp_path) not in json.dumps(meta)


def test_the_outcome_is_exact_for_a_small_model(source: DataSource, tmp_path: Path):
    outcome = train_to_file(source, SETTINGS, tmp_path / "m.npz")
    model, _ = read_model(tmp_path / "m.npz")
    rows = binarise(check_rows(DATA), derive_seed(3, "likelihood"))
    exact = np.mean(model.log_density(rows)) - exact_log_z(model)
    np.testing.assert_allclose(outcome.log_likelihood, exact, rtol=1e-5)
    assert (outcome.num_hidden, outcome.num_visible) == (NUM_HIDDEN, NUM_VISIBLE)
    labels = dict(outcome.rows())
    assert labels["next"] == f"annealz estimate {tmp_path / 'm.npz'}"
    json.dumps(outcome.to_dict(), allow_nan=False)


def test_a_large_model_is_not_enumerated(tmp_path: Path):
    np.save(tmp_path / "wide.npy", np.eye(21))
    settings = Settings(num_hidden=21, num_updates=1, batch_size=2)
    outcome = train_to_file(DataSource.of(tmp_path / "wide.npy"), settings, tmp_path / "m.npz")
    assert outcome.exact_log_z is None
    assert outcome.log_likelihood is None
    assert "exact log Z" not in dict(outcome.rows())
    assert "exact_log_z" not in read_model(tmp_path / "m.npz")[1]


# --- series -----------------------------------------------------------------------------------


def test_a_series_holds_the_models_along_the_way(source: DataSource, tmp_path: Path):
    outcome = train_to_file(source, SETTINGS, tmp_path / "m.npz", series=20)
    folder = tmp_path / "m.training"
    assert outcome.series == str(folder)
    names = ["000000020.npz", "000000040.npz", "000000050.npz", "part-outcome.npz"]
    names += ["result.json", "run.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    series = load_series(folder)
    assert [count for count, _ in series] == [20, 40, 50]
    for count, model in series:
        options = {**SETTINGS.to_dict(), "num_updates": count}
        assert model.digest == train(DATA, **options).digest
    assert series[-1][1].digest == outcome.digest
    _, meta = read_model(folder / "000000020.npz")
    assert meta["name"] == "m-20"
    assert meta["training"]["num_done"] == 20


def test_a_finished_series_is_only_read(source: DataSource, tmp_path: Path):
    outcome = train_to_file(source, SETTINGS, tmp_path / "m.npz", series=20)
    (tmp_path / "rows.npy").unlink()
    assert resume_training(tmp_path / "m.training") == outcome


def test_a_folder_without_a_series(tmp_path: Path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="holds no series of models: train with --series"):
            load_series(folder)


def test_a_damaged_member_is_named(source: DataSource, tmp_path: Path):
    train_to_file(source, SETTINGS, tmp_path / "m.npz", series=50)
    path = tmp_path / "m.training" / "000000050.npz"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="000000050.npz"):
        load_series(tmp_path / "m.training")


# --- cut off and resumed ----------------------------------------------------------------------


@pytest.mark.parametrize("series", [None, 4])
def test_resumed_it_ends_in_the_same_bytes(source: DataSource, tmp_path: Path, series: int | None):
    folder = cut_off(source, tmp_path / "m.npz", series=series)
    assert folder.has_progress
    assert not (tmp_path / "m.npz").exists()
    (folder.path / ".run.json.abc.tmp").touch()  # what a kill leaves in the middle of a write
    resume_training(folder.path)
    (tmp_path / "whole").mkdir()
    train_to_file(source, SETTINGS, tmp_path / "whole" / "m.npz", series=series)
    assert (tmp_path / "m.npz").read_bytes() == (tmp_path / "whole" / "m.npz").read_bytes()
    assert folder.path.exists() == (series is not None)
    if series is not None:
        whole = tmp_path / "whole" / "m.training"
        names = sorted(path.name for path in whole.iterdir())
        assert sorted(path.name for path in folder.path.iterdir()) == names
        for name in names[:-3]:  # the others hold seconds and folders
            assert (folder.path / name).read_bytes() == (whole / name).read_bytes()


def test_killed_before_the_first_checkpoint_it_starts_anew(source: DataSource, tmp_path: Path):
    folder = cut_off(source, tmp_path / "m.npz")
    folder.checkpoint("training").unlink()
    assert resume_training(folder.path).digest == train(DATA, **SETTINGS.to_dict()).digest


def test_data_that_changed_or_are_gone(source: DataSource, tmp_path: Path):
    folder = cut_off(source, tmp_path / "m.npz")
    np.save(tmp_path / "rows.npy", 1 - DATA)
    with pytest.raises(ValueError, match="rows.npy changed since the training in .* began"):
        resume_training(folder.path)
    (tmp_path / "rows.npy").unlink()
    with pytest.raises(ValueError, match="are gone: no data file .*rows.npy"):
        resume_training(folder.path)
    np.save(tmp_path / "rows.npy", DATA)  # brought back: nothing was lost
    assert resume_training(folder.path).digest == train(DATA, **SETTINGS.to_dict()).digest


def test_damage_in_the_folder_is_named(source: DataSource, tmp_path: Path):
    folder = cut_off(source, tmp_path / "m.npz")
    checkpoint = folder.checkpoint("training")
    kept = checkpoint.read_bytes()
    checkpoint.write_bytes(kept[: len(kept) // 2])
    with pytest.raises(ValueError, match="checkpoint-training.npz"):
        resume_training(folder.path)
    assert checkpoint.exists()
    checkpoint.write_bytes(kept)
    record = folder.path / "run.json"
    record.write_text(record.read_text().replace('"num_updates": 50', '"num_updates": 60'))
    with pytest.raises(ValueError, match="run.json was altered or damaged: its digest"):
        resume_training(folder.path)


def test_a_folder_of_another_method_is_refused(tmp_path: Path):
    Store(tmp_path).create({"method": "annealing"})
    with pytest.raises(ValueError, match="holds no training, but another run"):
        resume_training(tmp_path)


def test_a_checkpoint_of_another_training_is_refused(source: DataSource, tmp_path: Path):
    one, two = (
        cut_off(source, tmp_path / "one.npz"),
        cut_off(source, tmp_path / "two.npz", series=9),
    )
    one.checkpoint("training").write_bytes(two.checkpoint("training").read_bytes())
    with pytest.raises(ValueError, match="belongs to another run"):
        resume_training(one.path)


def test_a_folder_may_be_moved(source: DataSource, tmp_path: Path):
    folder = cut_off(source, tmp_path / "m.npz")
    (tmp_path / "there").mkdir()
    folder.path.rename(tmp_path / "there" / "m.training")
    assert resume_training(tmp_path / "there" / "m.training").file == str(
        tmp_path / "there" / "m.npz"
    )
    assert (tmp_path / "there" / "m.npz").exists()


def test_a_diverged_training_leaves_nothing(source: DataSource, tmp_path: Path):
    settings = Settings(num_hidden=2, num_updates=200, learning_rate=10.0, weight_decay=1.0)
    with pytest.raises(ValueError, match="take a smaller learning rate"):
        train_to_file(source, settings, tmp_path / "m.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


def test_a_full_disk_at_the_end_loses_nothing(source: DataSource, tmp_path: Path, monkeypatch):
    from annealz.training import job

    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(job, "save_rbm", refuse)
        with pytest.raises(ValueError, match="m.npz: No space left .*annealz resume .*m.training"):
            train_to_file(source, SETTINGS, tmp_path / "m.npz")
    done = resume_training(tmp_path / "m.training")
    assert done.digest == train(DATA, **SETTINGS.to_dict()).digest


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"file": "../m.npz"}, "file of the record of a training must be the name of a file"),
        ({"file": "/m.npz"}, "must be the name of a file"),
        ({"settings": {"num_hidden": "3"}}, "must be a whole number"),
        ({"settings": {"num_hidden": 0}}, "num_hidden must be at least 1, got 0"),
        ({"data": {"name": "a", "kind": "pipe"}}, "must be one of mnist, file"),
        ({"data": 3}, "data of the record of a training is damaged"),
        ({"series": "x"}, "series of the record"),
    ],
)
def test_a_record_of_a_stranger_is_refused_in_one_sentence(
    source: DataSource, tmp_path: Path, changes: dict, words: str
):
    record = cut_off(source, tmp_path / "m.npz").record()
    save_record(tmp_path / "m.training" / "run.json", {**record, **changes})
    with pytest.raises(ValueError, match=words) as caught:
        resume_training(tmp_path / "m.training")
    assert "\n" not in str(caught.value)


def test_an_outcome_of_a_stranger_is_refused(source: DataSource, tmp_path: Path):
    train_to_file(source, SETTINGS, tmp_path / "m.npz", series=20)
    store = training_store(tmp_path / "m.npz")
    store.save("outcome", {}, {"file": ["x"]})
    with pytest.raises(ValueError, match="file of the result of a training must be"):
        resume_training(store.path)
