"""Devices that the table does not name: by their architecture, units and memory; and devices that the user names."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.configuration.checks import job_of
from tb_tidy_plugin.configuration.devices import checked_device
from tb_tidy_plugin.configuration.files import read_configuration
from tb_tidy_plugin.profile.device_models import (
    device_called,
    device_name,
    estimated_device,
    known_device,
)
from tb_tidy_plugin.profile.device_table import FAMILIES
from tb_tidy_plugin.profile.machine import device_machine
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.columns import DeviceProperties
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.words.errors import ConfigurationError
from tests.support.commands import tidy
from tests.support.written import event, kineto_text, write

LISTED = [
    (family.architecture, device_called(model.name, 0))
    for family in FAMILIES
    for model in family.models()
    if family.architecture[0] in {"cuda", "rocm"}
]
AMBIGUOUS = ("rocm", 9, 0)
"""Vega, Vega 20, MI100 and MI200 have one number: what an unnamed one does lies far apart."""


@pytest.mark.parametrize(("architecture", "listed"), LISTED, ids=lambda each: str(getattr(each, "name", "")))
def test_an_estimate_is_at_least_what_a_card_of_these_properties_does(
    architecture: tuple[str, int, int], listed: DeviceProperties
) -> None:
    """As if the name were missing: a limit must hold for each model, and be near the fastest."""
    stated = known_device(listed.name, listed)
    estimated = estimated_device(replace(listed, name="NVIDIA Unheard-of"), architecture[0])
    assert stated is not None
    assert estimated is not None
    assert estimated.source == "estimated"
    assert estimated.bytes_per_second >= 0.999 * stated.bytes_per_second
    for dtype, peak in stated.peaks.items():
        most, found = (peak.of(True) or 0), (estimated.peaks[dtype].of(True) or 0)
        assert found >= 0.999 * most
        if dtype in {"float", "c10::Half"} and architecture != AMBIGUOUS:
            assert found <= 16 * most  # matrix units or none, as between the GTX 1660 and the T4


def test_geforce_cards_are_compared_with_geforce_cards() -> None:
    listed = DeviceProperties(0, "NVIDIA GeForce RTX 4085", 16 << 30, 8, 9, 78)
    found = estimated_device(listed, "cuda")
    assert found is not None
    # 78 multiprocessors × 512 operations × 2.61 GHz, the highest boost clock of GeForce 40
    assert found.peaks["c10::Half"].of(True) == pytest.approx(78 * 512 * 2.61e9, rel=1e-3)
    assert found.bytes_per_second == pytest.approx(736.3e9)


def test_a_slice_of_a_card_does_its_part() -> None:
    listed = DeviceProperties(0, "NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40 << 30, 8, 0, 42)
    found = estimated_device(listed, "cuda")
    assert found is not None
    assert found.peaks["c10::Half"].of(True) == pytest.approx(312e12 * 42 / 108, rel=0.03)


def test_rocm_lists_pairs_of_compute_units_since_rdna() -> None:
    known = known_device("AMD Radeon RX 7900 XTX")
    found = estimated_device(DeviceProperties(0, "AMD Radeon Graphics", 24 << 30, 11, 0, 48), "rocm")
    assert known is not None
    assert found is not None
    assert found.bytes_per_second == known.bytes_per_second
    assert found.peaks["float"].cores == pytest.approx(known.peaks["float"].cores, rel=0.2)


@pytest.mark.parametrize(
    "listed",
    [
        DeviceProperties(0, "NVIDIA Of Tomorrow", 80 << 30, 17, 0, 100), DeviceProperties(0, "NVIDIA", 80 << 30),
        DeviceProperties(0, "NVIDIA", 80 << 30, 8, 0, 0), DeviceProperties(0, "NVIDIA", 80 << 30, 8, 0, -3),
        DeviceProperties(0, "NVIDIA", 80 << 30, 8, 0, 1 << 30),
    ],
)  # fmt: skip
def test_what_cannot_be_estimated_is_unknown(listed: DeviceProperties) -> None:
    assert estimated_device(listed, "cuda") is None


def recorded(folder: Path, listed: str = "") -> Path:
    arguments = {"Input Dims": [[1024, 1024], [1024, 1024]], "Input type": ["float", "float"]}
    events = [
        event("aten::mm", 0, 3, args=arguments),
        event("cudaLaunchKernel", 1, 1, cat="cuda_runtime", args={"correlation": 1}),
        event("ampere_sgemm_128x64_nn", 5, 400, cat="kernel", pid=0, tid=7, args={"device": 0, "correlation": 1}),
    ]
    folder.mkdir(exist_ok=True)
    return write(folder / "t.pt.trace.json", kineto_text(events, f'"deviceProperties": [{listed}]' if listed else ""))


ESTIMATED = (
    '{"id": 0, "name": "NVIDIA Unheard-of", "totalGlobalMem": 25000000000, '
    '"computeMajor": 8, "computeMinor": 6, "numSms": 80}'
)


def test_a_report_says_that_limits_are_estimated(tmp_path: Path) -> None:
    path = recorded(tmp_path, ESTIMATED)
    (report,) = analyze_path(path, Job()).runs[0].profiles
    assert [(each.name, each.limits) for each in report.devices] == [("NVIDIA Unheard-of", "estimated")]
    note = "The limits of the NVIDIA Unheard-of are estimated from its architecture, size and memory"
    assert any(each.startswith(note) for each in report.quality.notes)
    machine = device_machine(Profile(read_trace(path)))
    assert machine is not None
    assert machine.source == "estimated"
    assert "cuda:0 NVIDIA Unheard-of (limits estimated)" in tidy("check", path).stdout


class TestNamed:
    """`--device`, the key `device`, and recordings without a name."""

    def test_an_unnamed_device_has_the_limits_of_the_named_one(self, tmp_path: Path) -> None:
        path = recorded(tmp_path)
        (without,) = analyze_path(path, Job()).runs[0].profiles
        (named,) = analyze_path(path, Job(device="H100 80GB HBM3")).runs[0].profiles
        assert [(each.name, each.limits) for each in without.devices] == [("", None)]
        assert [(each.name, each.limits) for each in named.devices] == [("H100 80GB HBM3", "datasheet")]
        assert named.devices[0].compute_capability == "9.0"
        note = "The recording does not name its device: its limits are those of the H100 80GB HBM3, which you named."
        assert note in named.quality.notes

    def test_a_named_device_keeps_its_name(self, tmp_path: Path) -> None:
        path = recorded(tmp_path, '{"id": 0, "name": "Tesla T4"}')
        (report,) = analyze_path(path, Job(device="NVIDIA H200")).runs[0].profiles
        assert [each.name for each in report.devices] == ["Tesla T4"]

    def test_answers_with_and_without_it_are_stored_apart(self, tmp_path: Path) -> None:
        path = recorded(tmp_path / "run")
        job = Job(cache=Cache(tmp_path / "cache"))
        names = [
            analyze_path(path, replace(job, device=device)).runs[0].profiles[0].devices[0].name
            for device in ("", "NVIDIA H200", "", "NVIDIA A10")
        ]
        assert names == ["", "NVIDIA H200", "", "NVIDIA A10"]

    def test_the_option_and_the_key(self, tmp_path: Path) -> None:
        path = recorded(tmp_path / "run")
        settings = tmp_path / "tb-tidy.toml"
        settings.write_text('device = "NVIDIA A30"\n')
        assert job_of(read_configuration(settings)).device == "NVIDIA A30"
        said = tidy("check", path, "--config", settings).stdout
        assert "cuda:0 NVIDIA A30" in said
        said = tidy("check", path, "--config", settings, "--device", "NVIDIA L4").stdout
        assert "cuda:0 NVIDIA L4" in said

    def test_a_device_of_the_users_own(self, tmp_path: Path) -> None:
        settings = tmp_path / "tb-tidy.toml"
        settings.write_text('device = "Ours"\ndevices.Ours = { gigabytes-per-second = 10, float32 = 1 }\n')
        job = job_of(read_configuration(settings))
        (report,) = analyze_path(recorded(tmp_path / "run"), job).runs[0].profiles
        assert [(each.name, each.limits) for each in report.devices] == [("Ours", "datasheet")]

    def test_an_unknown_name_is_an_error_that_lists_similar_ones(self, tmp_path: Path) -> None:
        result = tidy("check", recorded(tmp_path), "--device", "RTX 4090 TI")
        assert result.returncode == 2
        assert "`--device` names a device without known rates: `RTX 4090 TI`." in result.stderr
        assert "`GeForce RTX 4090`" in result.stderr

    @pytest.mark.parametrize("name", ["x" * 10_000, "\x1b[31m", "NVIDIA", " "])
    def test_nonsense_is_an_error(self, name: str) -> None:
        with pytest.raises(ConfigurationError):
            checked_device(name, (), "`--device`")

    def test_a_key_of_another_type_is_an_error(self, tmp_path: Path) -> None:
        settings = tmp_path / "tb-tidy.toml"
        settings.write_text("device = 3\n")
        with pytest.raises(ConfigurationError, match="must be a string") as raised:
            read_configuration(settings)
        assert 'device = "NVIDIA H100 80GB HBM3"' in raised.value.advice


def test_a_description_of_a_device_is_known_again() -> None:
    for _, listed in LISTED:
        assert known_device(device_name(listed), listed) is not None
