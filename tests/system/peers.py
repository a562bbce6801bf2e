"""peers.py - software that nobody here wrote, for comparisons; a test without it is skipped (tests/run.sh --slow installs
python3-torch and python3-sklearn)."""
import importlib

import harness


def load(module, package):
    try:
        return importlib.import_module(module)
    except ImportError:
        raise harness.Skipped(f"{package} is not installed (tests/run.sh --slow installs it)") from None
