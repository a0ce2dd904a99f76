"""The notation of a job's time limit: `90`, `90:00`, `1:30:00`, `1-12`, `1-12:00:00` (sbatch(1), `--time`)."""

from __future__ import annotations

from provision.profile.patterns import TIME


def to_seconds(text: str) -> int:
    """A time limit in seconds, parsed as Slurm does: a number alone is minutes, `a:b` minutes and seconds, `d-h` days and hours.

    Raises:
        ValueError: it does not have one of these forms.
    """
    if not TIME.fullmatch(text):
        raise ValueError(f"{text!r} is not a valid time; use `HH:MM:SS` or minutes")
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if not dash and len(parts) < 3:  # minutes come first
        parts = [0, *parts]
    hours, minutes, seconds = [*parts, 0, 0][:3]
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds


def to_clock(seconds: int) -> str:
    """`HH:MM:SS`, which Slurm, PBS and Cobalt all accept; hours can exceed 24."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
