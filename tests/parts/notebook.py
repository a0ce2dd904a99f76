"""Runs code in a notebook with the real client of Jupyter (nbclient), as a program, so that its warnings stay there.

    python -m parts.notebook KERNEL CODE

It prints what the notebook prints. `why_not` says which of the client's packages is missing.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path


def why_not() -> str:
    """Why no notebook can run here; empty: it can."""
    missing = [
        name for name in ("nbclient", "nbformat", "jupyter_client", "ipykernel") if not importlib.util.find_spec(name)
    ]
    return f"not installed here: {', '.join(missing)} (`pip install -e '.[test]'` brings them)" if missing else ""


def run_notebook(kernel: str, code: str, data_dir: Path, timeout_s: float = 300) -> str:
    """What the code prints in a notebook of this kernel; `data_dir` is the folder that has `kernels/`."""
    environ = {**os.environ, "JUPYTER_DATA_DIR": str(data_dir), "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    argv = [sys.executable, "-m", "parts.notebook", kernel, code]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main(kernel: str, code: str) -> None:
    """Make the notebook, run it, print its streams."""
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, kernel_name=kernel, timeout=240).execute()
    for output in notebook.cells[0].outputs:
        if output.output_type == "stream" and output.name == "stdout":
            print(output.text, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
