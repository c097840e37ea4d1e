#!/usr/bin/env python3
"""Compiles kernels/*.cu to the machine code and PTX that the library embeds, and kernels/layouts/*.cu
to those of a bench. Needs no CUDA toolkit.

    pip install --target .venv nvidia-cuda-nvrtc-cu12==12.2.140
    PYTHONPATH=.venv kernels/build.py            writes <stem>.sm_{80,90}.cubin and
                                                 <stem>.compute_90.ptx into the folder compiled
                                                 beside each source
    PYTHONPATH=.venv kernels/build.py --check    also compiles for sm_86 and sm_89; fails if a
                                                 committed file differs from the output

Machine code of sm_80 runs on all devices of compute capability 8.x, that of sm_90 on those of 9.x.
Newer devices compile the PTX. NVRTC is 12.2 on purpose: drivers from 535 on load its output. Labels
in the PTX depend on earlier compilations of a process, so each compilation has its own process.
"""

import ctypes
import multiprocessing
import pathlib
import sys

VERSION = (12, 2)
# Targets whose output is committed, with the suffix of the files.
TARGETS = {"sm_80": "cubin", "sm_90": "cubin", "compute_90": "ptx"}
# Targets that only --check compiles.
OTHER_TARGETS = ("sm_86", "sm_89")
HERE = pathlib.Path(__file__).resolve().parent
# Folders with the sources of the library, and of benches only.
FOLDERS = (HERE, HERE / "layouts")


class Failure(Exception):
    """An error with a message for the user."""


def in_folders(pattern):
    return [at for folder in FOLDERS for at in sorted(folder.glob(pattern))]


def load_nvrtc():
    for folder in map(pathlib.Path, sys.path):
        library = folder / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
        if library.exists():
            # NVRTC opens its builtins by name, so they must be in memory already.
            for builtins in library.parent.glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(library))
    raise Failure("nvidia-cuda-nvrtc-cu12 is not installed, see the head of this file")


def check(nvrtc, status, what):
    if status:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise Failure(f"{what}: {nvrtc.nvrtcGetErrorString(status).decode()}")


def check_version(nvrtc):
    major, minor = ctypes.c_int(), ctypes.c_int()
    check(nvrtc, nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "version")
    if (major.value, minor.value) != VERSION:
        raise Failure(f"NVRTC {major.value}.{minor.value}, expected {VERSION[0]}.{VERSION[1]}")


def get(nvrtc, program, what):
    """Returns an output of NVRTC that has a size and a buffer: PTX, CUBIN or ProgramLog."""
    size = ctypes.c_size_t()
    check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), what)
    buffer = ctypes.create_string_buffer(size.value)
    check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, buffer), what)
    return buffer.raw


def compile_kernel(job):
    source, target = job
    nvrtc = load_nvrtc()
    check_version(nvrtc)
    headers = sorted(HERE.glob("*.cuh"))
    strings = ctypes.c_char_p * len(headers)
    texts = strings(*[header.read_bytes() for header in headers])
    names = strings(*[header.name.encode() for header in headers])
    program, text, name = ctypes.c_void_p(), source.read_bytes(), source.name.encode()
    create = nvrtc.nvrtcCreateProgram
    status = create(ctypes.byref(program), text, name, len(headers), texts, names)
    check(nvrtc, status, source.name)
    options = [f"--gpu-architecture={target}", "--std=c++17", "--restrict"]
    array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    if nvrtc.nvrtcCompileProgram(program, len(options), array):
        log = get(nvrtc, program, "ProgramLog").rstrip(b"\0").decode()
        raise Failure(f"{source.name} for {target}:\n{log}")
    is_ptx = target.startswith("compute")
    compiled = get(nvrtc, program, "PTX" if is_ptx else "CUBIN")
    return compiled.rstrip(b"\0") if is_ptx else compiled


def main():
    is_check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not is_check:
        sys.exit(__doc__)
    targets = list(TARGETS) + list(OTHER_TARGETS if is_check else ())
    jobs = [(source, target) for source in in_folders("*.cu") for target in targets]
    expected = set()
    stale = []
    with multiprocessing.Pool(maxtasksperchild=1) as pool:
        for (source, target), compiled in zip(jobs, pool.imap(compile_kernel, jobs, chunksize=1)):
            if target not in TARGETS:
                continue
            at = source.parent / "compiled" / f"{source.stem}.{target}.{TARGETS[target]}"
            expected.add(at)
            if not is_check:
                at.write_bytes(compiled)
            elif not at.exists() or at.read_bytes() != compiled:
                stale.append(at.name)
    made = in_folders("compiled/*.ptx") + in_folders("compiled/*.cubin")
    stale += [at.name for at in made if at not in expected]
    if stale:
        sys.exit(f"stale, run kernels/build.py (and delete what has no source): {', '.join(stale)}")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
