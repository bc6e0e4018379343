"""The status follows from the findings."""

import pytest

from annealz.diagnostics.findings import Finding, Kind
from annealz.diagnostics.status import Status, status_of


def test_values_are_those_of_the_json():
    assert [status.value for status in Status] == ["ok", "unreliable"]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
def test_one_fatal_finding_makes_an_estimate_unreliable(kind):
    finding = Finding(kind, dict.fromkeys(kind.names, 9))
    assert status_of({kind: finding}) is (Status.UNRELIABLE if kind.is_fatal else Status.OK)
    assert status_of({}) is Status.OK
