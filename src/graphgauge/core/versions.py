"""Which versions compute the numbers."""

import platform

import graphgauge


def package_versions() -> dict[str, str]:
    """Of graphgauge, Python and the packages that compute."""
    import numpy
    import torch
    import torch_geometric

    return {
        "graphgauge": graphgauge.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torch_geometric": torch_geometric.__version__,
        "numpy": numpy.__version__,
    }
