"""Description of a profile for the report: its steps and its devices."""

from __future__ import annotations

from tb_tidy_plugin.profile.device_models import device_name
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report import model
from tb_tidy_plugin.report.step_model import StepItem, Steps
from tb_tidy_plugin.trace.columns import DEVICE_WORK
from tb_tidy_plugin.trace.sets import distinct


def steps_of_report(profile: Profile) -> Steps:
    """The steps, and where they were taken from."""
    steps = profile.steps
    return Steps(
        basis=steps.basis,
        count=len(steps.items),
        median_ns=steps.median_ns,
        p10_ns=steps.percentile_ns(10),
        p90_ns=steps.percentile_ns(90),
        items=[
            StepItem(name=step.name, start_ns=step.start_ns, duration_ns=step.duration_ns, oddity=oddity)
            for step, oddity in zip(steps.items, steps.oddities, strict=True)
        ],
    )


def devices_of_report(profile: Profile) -> list[model.Device]:
    """The devices that did something, with what the trace knows of them."""
    used = distinct(profile.table.device[profile.table.is_category(DEVICE_WORK)])
    return [_device(profile, index) for index in used.tolist()]


def _device(profile: Profile, index: int) -> model.Device:
    known = profile.device_properties(index)
    version = None
    if known is not None and known.computeMajor is not None:
        version = f"{known.computeMajor}.{known.computeMinor or 0}"
    name, kind = device_name(known) if known else "", profile.metadata.inferred_devices.get(index)
    if kind is not None:
        return model.Device(kind=kind, index=index, name=f"{name} (inferred)".strip(), compute_capability=None)
    rates = profile.device_model(known) if known else None
    source = None if rates is None else rates.source
    return model.Device(kind=profile.platform, index=index, name=name, compute_capability=version, limits=source)
