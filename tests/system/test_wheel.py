"""What is shipped: models, types, licence, and the files that speak of the version."""

import importlib.util
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from annealz.core.names import packaged_models
from support.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    folder = str(tmp_path_factory.mktemp("wheel"))
    (path,) = WheelBuilder(str(ROOT)).build(directory=folder, versions=["standard"])
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_package_its_models_and_its_types(wheel):
    inside = {name for name in wheel.namelist() if name.startswith("annealz/")}
    source = ROOT / "src" / "annealz"
    wanted = {
        f"annealz/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == wanted
    assert "annealz/py.typed" in inside
    assert {f"annealz/models/packaged/{path.name}" for path in packaged_models().values()} < inside
    assert len(packaged_models()) == 6


def test_the_wheel_holds_the_licence_and_the_command(wheel):
    folder = f"annealz-{PROJECT['version']}.dist-info"
    assert wheel.read(f"{folder}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert b"annealz = annealz.__main__:main" in wheel.read(f"{folder}/entry_points.txt")
    metadata = wheel.read(f"{folder}/METADATA").decode()
    assert "License-Expression: MIT" in metadata


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    fields = dict(re.findall(r"^([a-z-]+): (.+)$", citation, re.MULTILINE))
    assert fields["version"] == PROJECT["version"]
    assert fields["license"] == PROJECT["license"] == "MIT"
    assert "Licence: MIT" in (ROOT / "README.md").read_text()


def test_every_supported_python_is_tested():
    """The oldest that pyproject.toml allows, at least."""
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f'"{oldest}"' in workflow
    for step in ("make lint", "make test", "make test-browser"):
        assert f"run: {step}\n" in workflow


def test_a_tag_is_the_version_of_all_files(tmp_path: Path):
    """What .github/workflows/release.yml asks before anything is built."""
    spec = importlib.util.spec_from_file_location("tag", ROOT / ".github" / "version_of_tag.py")
    assert spec is not None
    assert spec.loader is not None
    tag = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tag)
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        text = (ROOT / name).read_text()
        (tmp_path / name).write_text(text.replace("## [Unreleased]", f"## [{PROJECT['version']}]"))
    released = f"v{PROJECT['version']}"
    assert "annealz" in tag.notes(released, tmp_path)
    with pytest.raises(SystemExit, match="tag it v"):
        tag.notes("v99.0.0", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n")
    with pytest.raises(SystemExit, match="no section"):
        tag.notes(released, tmp_path)
