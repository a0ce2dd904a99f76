"""The compute capability of GPUs, by the names that schedulers give them.

Source: NVIDIA's list "CUDA GPU Compute Capability", read 2026-11. Names that stand for two generations (`rtx6000`) are left out.
"""

from __future__ import annotations

CAPABILITY_OF = {
    "p100": "60",
    "v100": "70",
    "t4": "75",
    "rtx8000": "75",
    "a100": "80",
    "a30": "80",
    "a40": "86",
    "a10": "86",
    "l4": "89",
    "l40": "89",
    "l40s": "89",
    "h100": "90",
    "h200": "90",
    "gh200": "90",
}
