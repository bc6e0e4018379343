"""The command line: JSON, exit codes, one sentence for every bad input, interruption and resume."""

import json
from pathlib import Path

import numpy as np
import pytest

from support.command import KEYS, PLAIN, refused, run

FEW = [*PLAIN, "--chains", "100"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch):
    """Runs without --out go to a cache of this test's own."""
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A plain np.savez file."""
    generator = np.random.default_rng(5)
    path = tmp_path / "small.npz"
    np.savez(
        path,
        weights=generator.normal(0, 0.5, (4, 6)),
        hidden_bias=generator.normal(size=4),
        visible_bias=generator.normal(size=6),
    )
    return path


def test_json_is_one_object_with_the_documented_keys(capsys, model):
    status, out, err = run(
        capsys, "estimate", model, "--steps", 50, "--chains", 100, "--json", "--quiet"
    )
    assert (status, err) == (0, "")
    result = json.loads(out)
    assert {*result} == {*KEYS, "second_opinion", "base_reason"}
    assert result["second_opinion"]["base"] != result["base"]
    plain = run(capsys, "estimate", model, *FEW, "--steps", 50, "--json", "--quiet")[1]
    assert list(json.loads(plain)) == KEYS
    assert result["model"] == "small"
    assert result["num_steps"] == 50
    assert result["interval"][0] < result["log_z"] < result["interval"][1]
    assert abs(result["log_z"] - result["exact_log_z"]) < 5 * result["std_err"]


def test_table_shows_estimate_and_exact_value(capsys, model):
    status, out, _ = run(capsys, "estimate", model, *FEW, "--steps", 50)
    assert status == 0
    assert "log Z" in out
    assert "exact log Z" in out
    assert "ESS" in out


def test_scratch_folder_is_gone_when_the_run_is_done(capsys, model, tmp_path):
    assert run(capsys, "estimate", model, *FEW, "--steps", 5)[0] == 0
    assert run(capsys, "estimate", model, "--steps", 5, "--base", "nope")[0] == 2
    assert list((tmp_path / "cache").iterdir()) == []


def test_without_a_cache_the_run_goes_on_and_says_so(capsys, model, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "file" / "runs")
    status, out, err = run(capsys, "estimate", model, *FEW, "--steps", 5)
    assert status == 0
    assert "log Z" in out
    assert "cannot be resumed" in err


def test_models_lists_what_comes_with_annealz(capsys):
    status, out, _ = run(capsys, "models")
    assert status == 0
    names = [
        f"mnist-{algorithm}-{size}" for algorithm in ("pcd", "cd1", "cd25") for size in (20, 500)
    ]
    for name in names:
        assert name in out
    assert "CD-25, 250,000 updates, rate 0.02→0" in out
    listed = {
        entry["name"]: entry for entry in json.loads(run(capsys, "models", "--json")[1])["models"]
    }
    assert set(listed) == set(names)
    for name, entry in listed.items():
        assert entry["num_hidden"] == int(name.rsplit("-", 1)[1])
        assert (entry["exact_log_z"] is not None) == (entry["num_hidden"] == 20)


def test_exact_and_plot(capsys, model, tmp_path):
    picture = tmp_path / "picture.png"
    status, out, _ = run(
        capsys, "estimate", model, "--exact", *FEW, "--steps", 20, "--plot", picture, "--json"
    )
    assert status == 0
    assert json.loads(out)["exact_log_z"] is not None
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_base_rate_from_a_file_of_data(capsys, model, tmp_path):
    np.save(tmp_path / "data.npy", (np.random.default_rng(0).random((40, 6)) < 0.4).astype("u1"))
    data = ["--data", tmp_path / "data.npy", "--no-second-opinion", "--chains", 100]
    status, out, _ = run(capsys, "estimate", model, *data, "--steps", 20, "--json")
    assert status == 0
    assert json.loads(out)["base"] == "base-rate"


BAD_FILES = {
    "nan": "NaN or infinite",
    "infinite": "NaN or infinite",
    "shapes": r"(4, 3) (hidden, visible) need hidden_bias of shape (4,), got shape (3,)",
    "empty": "is empty",
    "truncated": "truncated or damaged",
    "altered": "altered or damaged",
    "objects": "pickled objects, which are never loaded",
    "pickle": "a pickle, which is never loaded",
    "text": "not an npz file",
    "missing": "lacks hidden_bias, visible_bias",
}


def _bad_file(kind: str, path: Path) -> None:
    weights, hidden, visible = np.full((3, 4), 0.1), np.zeros(3), np.zeros(4)
    if kind in ("nan", "infinite"):
        weights[1, 2] = np.nan if kind == "nan" else np.inf
    if kind == "shapes":
        weights = weights.T
    if kind == "objects":
        weights = np.array([None, weights], dtype=object)
    np.savez(path, weights=weights, hidden_bias=hidden, visible_bias=visible)
    if kind == "missing":
        np.savez(path, weights=weights)
    elif kind == "altered":
        from annealz.models.formats.npz import save_rbm
        from annealz.models.rbm import RBM

        save_rbm(path, RBM(weights, hidden, visible))
        with np.load(path) as archive:
            members = dict(archive)
        members["weights"] = members["weights"] + 1
        np.savez(path, **members)
    elif kind == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    elif kind == "pickle":
        path.write_bytes(b"\x80\x04\x95" + bytes(100))
    elif kind in ("empty", "text"):
        path.write_text("" if kind == "empty" else "hello")


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_model_files(capsys, tmp_path, kind):
    path = tmp_path / "bad.npz"
    _bad_file(kind, path)
    before = path.read_bytes()
    message = refused(capsys, "estimate", path, "--out", tmp_path / "out")
    assert BAD_FILES[kind] in message
    assert "bad.npz" in message
    assert path.read_bytes() == before
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("betas", "words"),
    [
        ([0, 0.5, 0.4, 1], "increase strictly"),
        ([0, 0.5, 0.5, 1], "increase strictly"),
        ([0.1, 1], "start at 0"),
        ([0, 0.9], "end at 1"),
        ([0, np.nan, 1], "finite"),
        ([0], "at least 0 and 1"),
    ],
)
def test_bad_betas(capsys, model, tmp_path, betas, words):
    np.save(tmp_path / "betas.npy", np.array(betas))
    assert words in refused(capsys, "estimate", model, "--schedule", tmp_path / "betas.npy")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "0"], "--steps must be"),
        (["--steps", "-5"], "--steps must be"),
        (["--steps", "ten"], "--steps"),
        (["--chains", "0"], "--chains must be"),
        (["--seed", "-1"], "seed"),
        (["--schedule", "nope"], "linear, sm08"),
        (["--base", "nope"], "auto, base-rate, uniform, visible-bias"),
        (["--base", "base-rate"], "needs the training data"),
        (["--data", "nope.npy"], "no data file"),
        (["--marginal", "nope"], "visible, hidden"),
        (["--target-std-err", "0"], "--target-std-err must be"),
        (
            ["--target-std-err", "0.1", "--chains", "10"],
            "--chains and --target-std-err cannot both be given",
        ),
        (["--plot", "nowhere/x.png"], "does not exist"),
        (["--plot", "x.nope"], "png"),
        (["--nope"], "--nope"),
    ],
)
def test_bad_options(capsys, model, arguments, words):
    assert words in refused(capsys, "estimate", model, *arguments)


def test_unknown_model_lists_what_exists(capsys):
    message = refused(capsys, "estimate", "nope")
    assert "mnist-cd1-20, mnist-cd1-500, mnist-cd25-20" in message


def test_means_that_are_none(capsys, model, tmp_path):
    np.save(tmp_path / "means.npy", np.array([0.0, 0.2, 0.3, 0.4, 0.5, 1.1]))
    message = refused(capsys, "estimate", model, "--data", tmp_path / "means.npy")
    assert "strictly between 0 and 1" in message


def test_exact_refuses_wide_models_with_the_cost(capsys, tmp_path):
    np.savez(
        tmp_path / "wide.npz",
        weights=np.full((30, 40), 0.1),
        hidden_bias=np.zeros(30),
        visible_bias=np.zeros(40),
    )
    message = refused(capsys, "estimate", tmp_path / "wide.npz", "--exact")
    assert "at most 25 units" in message
    assert "2^30" in message


def test_output_folder_is_never_overwritten_without_force(capsys, model, tmp_path):
    out = tmp_path / "out"
    first = ["estimate", model, *FEW, "--steps", 20, "--out", out, "--json", "--quiet"]
    assert run(capsys, *first)[0] == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert "already holds a finished run" in refused(capsys, *first, "--seed", 1)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert run(capsys, *first, "--seed", 1, "--force")[0] == 0
    shown = json.loads(run(capsys, "resume", out, "--json", "--quiet")[1])
    assert shown["seed"] == 1


def test_output_that_cannot_be_written(capsys, model, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "is a file" in refused(capsys, "estimate", model, "--out", tmp_path / "file")
    message = refused(capsys, "estimate", model, "--out", tmp_path / "file" / "below")
    assert "cannot write to the output folder" in message
    assert (tmp_path / "file").read_text() == "mine"


def test_disk_that_fills_up_still_shows_the_result(capsys, model, tmp_path, monkeypatch):
    from annealz.io import store

    real = store.save_archive

    def full(path, *rest):
        if Path(path).name == "part-forward-1.npz":
            raise OSError(28, "No space left on device")
        real(path, *rest)

    monkeypatch.setattr(store, "save_archive", full)
    status, out, err = run(
        capsys,
        "estimate",
        model,
        *FEW,
        "--steps",
        20,
        "--out",
        tmp_path / "o",
        "--json",
        "--quiet",
    )
    assert status == 2
    assert "log_z" in json.loads(out)
    assert "No space left on device" in err
    assert err.count("\n") == 1
    monkeypatch.undo()  # with room again, what was done is still there
    resumed = json.loads(run(capsys, "resume", tmp_path / "o", "--json", "--quiet")[1])
    assert resumed["log_z"] == json.loads(out)["log_z"]


def test_resume_of_nothing(capsys, tmp_path):
    assert "holds no run" in refused(capsys, "resume", tmp_path / "nowhere")
