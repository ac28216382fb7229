"""Runs tlsfuzzer's scripts against a server, and holds what fails against the list of what is expected to fail.

    run.py --tlsfuzzer DIR --server BINARY --work DIR [--only PATTERN]... [--family 4|6]... [--jobs N]

Exit status: 0 if everything else passed, 1 if a conversation failed that is not on the list, or passed and is on it.
`expected.toml` says which scripts are left out and which conversations fail, each with its reason.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import pathlib
import subprocess
import sys
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from expectations import Expectations
from server import Server

# Without content a response is one record: most scripts read no other.
FILES = {"index.html": b""}
# Of one script; the longest takes half a minute where nothing else runs.
SCRIPT_LIMIT_S = 900


@dataclass(frozen=True)
class Outcome:
    """What became of a conversation. Without a failure it passed."""

    script: str
    conversation: str
    failure: str | None


def main():
    options = parsed_options()
    expectations = Expectations.read(HERE / "expected.toml")
    scripts, left_out = chosen_scripts(options, expectations)
    options.work.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with Server(options.server, options.work, FILES, ["--workers", "2"]) as server:
        jobs = [(script, family) for family in options.family for script in scripts]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for found in pool.map(lambda job: run_script(options, expectations, server, *job), jobs):
                outcomes += found
        server.expect_alive()
    return report(expectations, outcomes, scripts, left_out, is_whole=not options.only)


def parsed_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tlsfuzzer", type=pathlib.Path, required=True, help="a checkout of its repository")
    parser.add_argument("--server", type=pathlib.Path, required=True, help="the linerate to test")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="for certificates and logs")
    parser.add_argument("--only", action="append", help="scripts by name or pattern, such as 'test-tls13-key*'")
    parser.add_argument("--family", action="append", choices=["4", "6"], help="of IP; both unless told")
    parser.add_argument("--jobs", type=int, default=2, help="scripts at a time")
    options = parser.parse_args()
    options.family = options.family or ["4", "6"]
    if not (options.tlsfuzzer / "tlsfuzzer" / "_apps").is_dir():
        parser.error(f"--tlsfuzzer {options.tlsfuzzer}: no checkout of tlsfuzzer (it has no folder tlsfuzzer/_apps)")
    return options


def chosen_scripts(options, expectations):
    """Names of the scripts to run, and how many of the checkout are left out."""
    there = sorted(path.stem for path in (options.tlsfuzzer / "scripts").glob("test-*.py"))
    wanted = [
        script
        for script in there
        if not options.only or any(fnmatch.fnmatchcase(script, pattern) for pattern in options.only)
    ]
    if not wanted:
        sys.exit(f"no script is called {' or '.join(options.only)}; they are in {options.tlsfuzzer / 'scripts'}")
    chosen = [script for script in wanted if script not in expectations.left_out]
    return chosen, len(wanted) - len(chosen)


def run_script(options, expectations, server, script, family):
    """The outcomes of a script's conversations, and of the script itself where it failed without one."""
    log = options.work / f"{script}-ipv{family}.log"
    results = log.with_suffix(".json")
    command = [sys.executable, HERE / "launch.py", options.tlsfuzzer, results, script]
    host, port = server.address(family)
    command += ["-h", host, "-p", str(port), *expectations.arguments(script)]
    begun = time.monotonic()
    with log.open("wb") as output:
        try:
            status = subprocess.run(command, stdout=output, stderr=output, timeout=SCRIPT_LIMIT_S).returncode
        except subprocess.TimeoutExpired:
            status = f"it had not ended after {SCRIPT_LIMIT_S} s"
    lines = results.read_text().splitlines() if results.exists() else []
    found = [Outcome(script, **json.loads(line)) for line in lines]
    if status != 0 and all(outcome.failure is None for outcome in found):
        found.append(Outcome(script, "(the script)", f"{status}: {last_line(log)}"))
    seconds = time.monotonic() - begun
    failed = sum(outcome.failure is not None for outcome in found)
    print(f"{script}, IPv{family}: {len(found) - failed} of {len(found)} passed, {seconds:.0f} s", flush=True)
    return found


def last_line(log):
    lines = log.read_text(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it printed nothing")


def report(expectations, outcomes, scripts, left_out, is_whole):
    passed, expected, unexpected, mended = [], [], [], []
    for outcome in outcomes:
        entry = expectations.entry_for(outcome)
        if outcome.failure is None:
            (mended if entry else passed).append(outcome)
        else:
            (expected if entry else unexpected).append(outcome)
    show("passed, though expected to fail (take them off expected.toml)", mended)
    show("failed", unexpected)
    unused = expectations.unused(scripts) if is_whole else []
    for entry in unused:
        print(f"no conversation of {entry.script} fits {entry.conversations} any more (expected.toml)")
    print(f"\n{len(scripts)} scripts, {left_out} left out; {len(outcomes)} conversations:")
    for reason, count in sorted(expectations.counts().items(), key=lambda item: -item[1]):
        print(f"  {count:5} expected: {reason}")
    print(f"{len(passed)} passed, {len(expected)} expected, {len(unexpected)} unexpected, {len(mended)} mended")
    return 1 if unexpected or mended or unused else 0


def show(title, outcomes):
    if outcomes:
        print(f"\n{title}:")
    for outcome in sorted(set(outcomes), key=lambda outcome: (outcome.script, outcome.conversation)):
        print(f"  {outcome.script}: {outcome.conversation}{': ' + outcome.failure if outcome.failure else ''}")


if __name__ == "__main__":
    sys.exit(main())
