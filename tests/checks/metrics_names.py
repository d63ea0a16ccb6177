# SPDX-License-Identifier: MIT
# The dashboard and the alerts use only metrics that exist, and docs/reference/watch-and-metrics.md lists the metrics that
# the code makes.
import json
import re
import sys

source = sys.argv[1]


def text(path):
    with open(f"{source}/{path}") as file:
        return file.read()


def family(name):
    return re.sub(r"_(total|bucket|sum|count)$", "", name)


def names(path):
    return {family(n) for n in re.findall(r"\bforktail_[a-z_]+", text(path))}


made = set(re.findall(r'(?:Counter|Gauge|Histogram)\(\s*"(forktail_\w+)"', text("live/guard/metrics.cc")))
made |= set(re.findall(r'(?:counter|gauge)\(\s*"(forktail_\w+)"', text("python/forktail/forecast/repeat.py")))
made |= {name + "_info" for name in re.findall(r'Info\(\s*"(forktail_\w+)"', text("live/guard/metrics.cc"))}
listed = {family(n) for n in re.findall(r"`(forktail_[a-z_]+)`", text("docs/reference/watch-and-metrics.md"))}
wrong = []
if made != listed:
    wrong.append(f"docs/reference/watch-and-metrics.md and live/guard/metrics.cc differ: {sorted(made ^ listed)}")
for path in ["contrib/grafana/forktail.json", "contrib/prometheus/forktail.rules.yml"]:
    if unknown := names(path) - made:
        wrong.append(f"{path} uses metrics that do not exist: {sorted(unknown)}")
board = json.loads(text("contrib/grafana/forktail.json"))
variables = {v["name"] for v in board["templating"]["list"]}
if not {"datasource", "server"} <= variables:
    wrong.append(f"the dashboard has no variables for data source and server: {sorted(variables)}")
for panel in board["panels"]:
    for target in panel["targets"]:
        for used in re.findall(r"\$([a-z]+)", target["expr"]):
            if used not in variables:
                wrong.append(f"panel {panel['title']} uses ${used}, which is not a variable")
print("\n".join(wrong) or "fine")
sys.exit(bool(wrong))
