"""What is known to fail, and why: the file `expected.toml`."""

import re
import tomllib
from dataclasses import dataclass, field


@dataclass
class Entry:
    """Conversations of a script that fail, and why they may."""

    script: str
    # Names; `*` stands for anything.
    conversations: list[str]
    # What the error must contain: another failure of the same conversation is not expected.
    failure: str
    reason: str
    # The script sends random bytes: it depends on them whether it fails.
    by_chance: bool = False
    seen: int = 0
    patterns: list = field(default_factory=list)

    def __post_init__(self):
        self.patterns = [as_pattern(name) for name in self.conversations]

    def fits(self, outcome):
        if outcome.script != self.script or not any(p.fullmatch(outcome.conversation) for p in self.patterns):
            return False
        if outcome.failure is None:
            return not self.by_chance
        return self.failure in outcome.failure


def as_pattern(name):
    return re.compile(".*".join(re.escape(part) for part in name.split("*")), re.DOTALL)


class Expectations:
    """The whole file."""

    def __init__(self, left_out, arguments, entries):
        # Reasons by script.
        self.left_out = left_out
        self._arguments = arguments
        self._by_script = {}
        for entry in entries:
            self._by_script.setdefault(entry.script, []).append(entry)

    @classmethod
    def read(cls, path):
        table = tomllib.loads(path.read_text())
        left_out = {script: part["reason"] for part in table["left_out"] for script in part["scripts"]}
        arguments = {script: part["arguments"] for part in table["arguments"] for script in part["scripts"]}
        reasons = table["reasons"]
        entries = []
        for part in table["expected"]:
            entries.append(Entry(**{**part, "reason": reasons[part["reason"]]}))
        return cls(left_out, arguments, entries)

    def arguments(self, script):
        return self._arguments.get(script, [])

    def entry_for(self, outcome):
        """The entry that says that this conversation fails, if there is one."""
        entry = next((e for e in self._by_script.get(outcome.script, []) if e.fits(outcome)), None)
        if entry and outcome.failure is not None:
            entry.seen += 1
        return entry

    def unused(self, scripts):
        """Entries that no failure fitted, of scripts that were run."""
        return [e for script in scripts for e in self._by_script.get(script, []) if e.seen == 0 and not e.by_chance]

    def counts(self):
        """How many failures were expected for each reason."""
        counts = {}
        for entries in self._by_script.values():
            for entry in entries:
                counts[entry.reason] = counts.get(entry.reason, 0) + entry.seen
        return {reason: count for reason, count in counts.items() if count}
