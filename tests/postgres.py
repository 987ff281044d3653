"""Start a temporary PostgreSQL, run the tests that need it (``pytest -m sql``), and stop it.

The server listens on a Unix socket in a temporary directory, and on no port. Debian's packages are installed if it is
missing. PostgreSQL does not run as root: root starts it as the user `postgres`, which Debian's package creates.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOCKET = "LIKELY_POSTGRES"  # the variable with the directory of the socket
OWNER = "postgres"


def programs() -> Path | None:
    """The directory of initdb, pg_ctl and postgres; None where they are not installed."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    return next((path for path in folders if all((path / name).exists() for name in ("initdb", "pg_ctl"))), None)


def installed() -> Path:
    """The same, after an installation if there was none."""
    folder = programs()
    if folder is None and shutil.which("apt-get") and os.geteuid() == 0:
        print("Installing PostgreSQL with apt-get.", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-q"], env=environment, check=False)
        subprocess.run(["apt-get", "install", "-q", "-y", "postgresql"], env=environment, check=False)
        folder = programs()
    if folder is None:
        sys.exit("PostgreSQL is missing: initdb and pg_ctl were not found. Install it: apt-get install postgresql")
    return folder


def run(command: list[str | Path], folder: Path) -> None:
    """Run a program of PostgreSQL as a user that may run it."""
    owner = {"user": OWNER, "group": OWNER, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **owner)  # type: ignore[call-overload]
    if done.returncode:
        log = folder / "log"
        sys.exit(f"{command[0]} failed:\n{done.stdout}{done.stderr}{log.read_text() if log.exists() else ''}")


def main() -> int:
    """Start the server, run the tests, stop the server, and return the status of the tests."""
    binaries = installed()
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, OWNER, OWNER)
        data = folder / "data"
        run([binaries / "initdb", "-D", data, "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"], folder)
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        # Its output goes to the log: a server that kept the pipe open would keep this program waiting.
        run([binaries / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start"], folder)
        try:
            command = [sys.executable, "-m", "pytest", "-n", "0", "-m", "sql", *(sys.argv[1:] or ["tests"])]
            return subprocess.run(command, env={**os.environ, SOCKET: str(folder)}, check=False).returncode
        finally:
            run([binaries / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
