"""Measures which lines the tests execute, and prints the share of each module.

Fails if a module in REQUIRED has less than MINIMUM percent. Programs that the tests start count too, unless they are
killed. FILTER in the environment selects tests; by default those on simulated gateways, which take long, are left out.
"""

import collections
import glob
import json
import os
import shutil
import subprocess
import sys

REQUIRED = ["GattherdBluetooth", "GattherdMachines", "GattherdGATT", "GattherdProfiles"]
MINIMUM = 90.0
# As deep as .build: the programs look for the included profiles three folders above their own.
SCRATCH = os.path.abspath(".build-coverage")
BUILD = ["swift", "build", "--build-tests", "--enable-code-coverage", "--scratch-path", SCRATCH]
SYSTEM_TESTS = "^(BlueZ(Scenario|Fact)|Gateway)Tests"


def main() -> int:
    subprocess.run(BUILD, check=True)
    programs = subprocess.run([*BUILD, "--show-bin-path"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    passed = run_tests(f"{programs}/gattherdPackageTests.xctest")
    shares = {module: share(*lines) for module, lines in covered_lines(programs).items()}
    for module, percent in sorted(shares.items()):
        print(f"{module:<24} {percent:5.1f} %")
    low = [module for module in REQUIRED if shares.get(module, 0.0) < MINIMUM]
    for module in low:
        print(f"coverage: the tests execute less than {MINIMUM:g} % of {module}", file=sys.stderr)
    return 0 if passed and not low else 1


def run_tests(program: str) -> bool:
    profiles = f"{SCRATCH}/profiles"
    shutil.rmtree(profiles, ignore_errors=True)
    os.makedirs(profiles)
    environment = os.environ | {"LLVM_PROFILE_FILE": f"{profiles}/%p-%m.profraw", "NO_COLOR": "1"}
    chosen = os.environ.get("FILTER")
    selection = ["--filter", chosen] if chosen else ["--skip", SYSTEM_TESTS]
    command = [program, "--testing-library", "swift-testing", "--no-parallel", *selection]
    with subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as tests:
        for line in tests.stdout or []:
            if line.startswith(("✔ Suite", "✘")) or "Test run with" in line:
                print(line, end="", flush=True)
    return tests.returncode == 0


def covered_lines(programs: str) -> dict[str, list[int]]:
    """Returns the executed lines and all lines of each module in Sources."""
    compiler = shutil.which("swift")
    if compiler is None:
        sys.exit("coverage: no Swift toolchain in PATH")
    tools = os.path.dirname(os.path.realpath(compiler))
    merged = f"{SCRATCH}/tests.profdata"
    profiles = glob.glob(f"{SCRATCH}/profiles/*.profraw")
    merge = [f"{tools}/llvm-profdata", "merge", "--sparse", "--failure-mode=all", "-o", merged]
    subprocess.run([*merge, "--input-files=/dev/stdin"], check=True, text=True, input="\n".join(profiles))
    export = [f"{tools}/llvm-cov", "export", "--summary-only", f"--instr-profile={merged}"]
    objects = [f"--object={programs}/{name}" for name in ("gattherd", "gattherd-sim")]
    summary = subprocess.run(
        [*export, f"{programs}/gattherdPackageTests.xctest", *objects], check=True, stdout=subprocess.PIPE
    ).stdout
    lines = collections.defaultdict(lambda: [0, 0])
    sources = os.path.join(os.getcwd(), "Sources") + os.sep
    for file in json.loads(summary)["data"][0]["files"]:
        if file["filename"].startswith(sources):
            module = file["filename"][len(sources):].split(os.sep)[1]
            lines[module][0] += file["summary"]["lines"]["covered"]
            lines[module][1] += file["summary"]["lines"]["count"]
    return lines


def share(covered: int, count: int) -> float:
    return 100 * covered / count if count else 0.0


sys.exit(main())
