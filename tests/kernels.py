"""Run tests under the kernels of several processors: python -m tests.kernels [FILE OR FOLDER ...].

OpenBLAS and NumPy have kernels for each kind of processor, which add up numbers in different orders. Results may differ
by rounding, but no iteration may end elsewhere and no choice may be another one. Without arguments the modules of
`SENSITIVE` run: those that compare nearly equal numbers, and those that compare results to many digits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

# Of OpenBLAS, and whether NumPy has no kernels beyond those that every processor has.
KERNELS = {"Haswell": False, "SkylakeX": False, "Prescott": True}
SENSITIVE = (
    "tests/laws/test_calibration.py",
    "tests/laws/test_densities.py",
    "tests/laws/test_estimation.py",
    "tests/laws/test_evidence.py",
    "tests/laws/test_invariance.py",
    "tests/laws/test_missing_patterns.py",
    "tests/laws/test_selection.py",
    "tests/unit/choice/test_column_families.py",
    "tests/unit/choice/test_covariance_choice.py",
    "tests/unit/choice/test_covariances.py",
    "tests/unit/discriminative/test_extreme_values.py",
    "tests/unit/discriminative/test_softmax.py",
    "tests/unit/evidence/test_weights.py",
    "tests/unit/families/test_other_supports.py",
    "tests/unit/families/test_text.py",
    "tests/unit/model/test_calibration.py",
    "tests/unit/model/test_files.py",
    "tests/unit/numerics/test_numerics.py",
    "tests/unit/text/test_language_model.py",
    "tests/reference/test_softmax.py",
)
PROBE = """
import numpy, scipy.linalg, threadpoolctl
scipy.linalg.lu_factor(numpy.random.default_rng(0).normal(size=(200, 200)) @ numpy.eye(200))
print(*{pool.get("architecture") for pool in threadpoolctl.threadpool_info() if pool["internal_api"] == "openblas"})
"""
FEATURES = "from numpy._core._multiarray_umath import __cpu_dispatch__; print(*__cpu_dispatch__, sep=',')"


def environment(kernel: str) -> dict[str, str]:
    """The environment of a process with these kernels. NumPy warns of names of features that it does not know."""
    found = os.environ | {"OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": "1"}
    if KERNELS[kernel]:
        listed = subprocess.run([sys.executable, "-c", FEATURES], check=True, capture_output=True, text=True)
        found["NPY_DISABLE_CPU_FEATURES"] = listed.stdout.strip()
    return found


def main(tests: list[str]) -> int:
    """Run the tests under each kernel; 1 if any fail."""
    failed = []
    for kernel in KERNELS:
        given = environment(kernel)
        probe = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROBE], check=False, env=given, capture_output=True, text=True
        )
        if probe.returncode < 0:  # by a signal: an instruction that the processor does not have
            print(f"{kernel}: not on this processor", flush=True)
            continue
        if probe.returncode:
            print(probe.stderr)
            return 1
        print(f"{kernel}: kernels {probe.stdout.strip() or 'of another library than OpenBLAS'}", flush=True)
        start = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *tests]
        if subprocess.run(command, env=given, check=False).returncode:
            failed.append(kernel)
        print(f"{kernel}: {time.monotonic() - start:.0f} s", flush=True)
    print(f"Tests failed under {', '.join(failed)}." if failed else "All tests passed under all kernels.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(SENSITIVE)))
