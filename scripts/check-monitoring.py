"""Holds the dashboard and the alert rules in deploy/ against what a server really exports.

    check-monitoring.py METRICS FILE...      METRICS: what /metrics printed; FILE: a dashboard (JSON) or rules (YAML)
    check-monitoring.py --rules DASHBOARD    the dashboard's expressions as recording rules, for promtool to parse

Every name, label and label value in an expression has to be exported, and every family that is exported has to be in one of
the expressions. A family that has no sample yet is known by its `# TYPE` line; of its labels nothing is known then.
"""

import json
import re
import sys

# What Prometheus adds, and a scrape's own series.
ADDED = {"job", "instance"}
OF_PROMETHEUS = {"up"}
# Exported only where the kernel's tls module is loaded, and where something is exported by NFS.
ONLY_SOMETIMES = {"linerate_kernel_tls_stat", "linerate_nfs_refused_total"}
# Families of which a server shows only the combinations that occurred: what it does not show is no fault.
ONLY_WHAT_OCCURRED = {"linerate_tls_handshakes_total", "linerate_http_requests_total", "linerate_placement_total"}

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ")
LABEL = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
SELECTOR = re.compile(r"\b(linerate_\w+|up)\b(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\bby\s*\(([^)]*)\)\s*\(\s*(?:\w+\()?\s*(linerate_\w+)")


def exported(text):
    """Families by name: the samples' names, and per label the values seen."""
    families = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            names = [name + end for end in ("_bucket", "_sum", "_count")] if kind == "histogram" else [name]
            for each in names:
                families[each] = {"family": name, "labels": {}, "samples": 0}
        elif (match := SAMPLE.match(line)) and match[1] in families:
            families[match[1]]["samples"] += 1
            for label, _, value in LABEL.findall(match[2] or ""):
                families[match[1]]["labels"].setdefault(label, set()).add(value)
    return families


def expressions(path):
    """Every expression of a file, with the place that a fault is told by."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".json"):
        dashboard = json.loads(text)
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                yield f"{path}: {panel['title']}", target["expr"]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{path}: variable {variable['name']}", variable["query"]["query"]
        return
    # Prometheus' own parser has read it (promtool): here an expression is what stands behind `expr:`, or indented below.
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if match := re.match(r"(\s*)expr: (.*)", line):
            expression, depth = match[2], len(match[1])
            if expression == "|":
                below = []
                for further in lines[number + 1 :]:
                    if len(further) - len(further.lstrip()) <= depth:
                        break
                    below.append(further)
                expression = " ".join(below)
            yield f"{path}:{number + 1}", expression


def faults_of(place, expression, families):
    """What an expression names and no server exports."""
    for name, selector in SELECTOR.findall(expression):
        if name in OF_PROMETHEUS or name in ONLY_SOMETIMES - families.keys():
            continue
        if name not in families:
            yield f"{place}: nothing is called {name}"
            continue
        known = families[name]["labels"]
        for label, operator, value in LABEL.findall(selector):
            if label in ADDED:
                continue
            if families[name]["samples"] and label not in known:
                yield f"{place}: {name} has no label {label}"
            elif families[name]["samples"] and name not in ONLY_WHAT_OCCURRED and operator in ("=", "=~"):
                for word in value.split("|"):
                    if not any(re.fullmatch(word, seen) for seen in known[label]):
                        yield f'{place}: {name} has no {label}="{word}"'
    for labels, name in GROUPING.findall(expression):
        if name in families and families[name]["samples"]:
            for label in re.split(r"[,\s]+", labels.strip()):
                if label not in ADDED and label not in families[name]["labels"]:
                    yield f"{place}: {name} has no label {label}, which it is grouped by"


def as_rules(path):
    """Rules that record each expression of a dashboard, with Grafana's variables filled in."""
    print("groups:", "  - name: dashboard", "    rules:", sep="\n")
    for number, (place, expression) in enumerate(expressions(path)):
        if "variable" in place:
            continue
        for variable, value in (("$__rate_interval", "5m"), ("$job", ".*"), ("$instance", ".*")):
            expression = expression.replace(variable, value)
        # A string of JSON is one of YAML.
        print(f"      - {{ record: dashboard:{number}, expr: {json.dumps(expression)} }}")
    return 0


def main(metrics, *files):
    if metrics == "--rules":
        return as_rules(*files)
    with open(metrics, encoding="utf-8") as file:
        families = exported(file.read())
    faults, named, count = [], set(), 0
    for path in files:
        for place, expression in expressions(path):
            count += 1
            faults.extend(faults_of(place, expression, families))
            named.update(families[name]["family"] for name, _ in SELECTOR.findall(expression) if name in families)
    if count < 30:
        faults.append(f"only {count} expressions were found")
    for family in sorted({entry["family"] for entry in families.values()} - named):
        faults.append(f"{family} is exported, and neither on the dashboard nor in a rule")
    print(*faults, sep="\n", end="\n" if faults else "")
    if faults:
        return 1
    print(f"{count} expressions, {len(named)} families: all are exported")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
