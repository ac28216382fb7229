"""Conversations on tlslite-ng with a server, over IPv4 and IPv6.

    run.py SERVER WORK [NAME]

SERVER is the binary, WORK a folder for certificates and logs; of NAME, a part of tests' names.
"""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import target
from server import Server


def main():
    binary, work, *names = sys.argv[1:]
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in names] or None
    tests = loader.discover(str(HERE), pattern="test_*.py")
    if tests.countTestCases() == 0:
        sys.exit(f"no conversation is called {' or '.join(names)}")
    with Server(pathlib.Path(binary), pathlib.Path(work), target.FILES, ["--workers", "1"]) as server:
        target.server = server
        result = unittest.TextTestRunner(verbosity=2).run(tests)
        server.expect_alive()
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
