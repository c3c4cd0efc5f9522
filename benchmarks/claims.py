"""The claims of the documentation about speed, checked against benchmarks/results.

`benchmarks/report.py` checks them and exits with 1 if one does not hold. They are not tests: only a
new measurement can change them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Results = dict[str, Any]

COMPARISON = Path(__file__).parents[1] / "docs" / "compared.md"
BY_HAND = "by hand"
IDLE = "Hookline + 10 idle hooks"
PEER_RESULTS = ("peers_mlp", "peers_cnn")
MAX_ITERATION_RATIO = {
    "mlp-minimal": 1.10,
    "mlp-typical": 1.20,
    "cnn-minimal": 1.03,
    "cnn-typical": 1.05,
}
# The names of frameworks in the comparison, and in the results.
COMPARED = {
    "Lightning": "Lightning",
    "MMEngine": "MMEngine",
    "transformers": "HF Trainer",
    "Ignite": "Ignite",
}


def check_claims(found: Results, commands: dict[str, str]) -> list[str]:
    """Return a line for each claim that does not hold.

    Args:
        found: The results by name, as `report.load` returns them.
        commands: The command of each benchmark, as `run.py` would start it.
    """
    problems = list(_missing_or_outdated(found, commands))
    for claim in CLAIMS:
        try:
            for problem in claim(found):
                problems.append(f"{claim.__name__}: {problem}")
        except (KeyError, IndexError, ValueError) as error:
            problems.append(f"{claim.__name__}: results are missing ({error!r})")
    return problems


def _missing_or_outdated(found: Results, commands: dict[str, str]) -> Iterator[str]:
    for name, command in commands.items():
        if name not in found:
            yield f"{name}: no results"
        elif found[name]["about"]["command"] != command:
            yield f"{name}: measured with `{found[name]['about']['command']}`, not with `{command}`"


def check_conditions(found: Results) -> Iterator[str]:
    """Check that all results have a date, versions, the machine and its load."""
    for name, content in found.items():
        about = content["about"]
        if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", about["date"]):
            yield f"{name} has the date {about['date']!r}"
        if not {"python", "torch", "hookline"} <= set(about["versions"]):
            yield f"{name} lacks versions"
        if about["machine"]["cores"] < 1 or len(about["load"]) != 2:
            yield f"{name} lacks the machine or its load"


def check_iteration_cost(found: Results) -> Iterator[str]:
    """Check the cost of an iteration, relative to the loop by hand."""
    for names in (("typical",), PEER_RESULTS):
        setups = _setups(found, *names)
        if setups.keys() != MAX_ITERATION_RATIO.keys():
            yield f"{names} have the set-ups {sorted(setups)}"
        for setup, rows in setups.items():
            ratio = rows["Hookline"]["ratio"]
            limit = MAX_ITERATION_RATIO[setup]
            if ratio > limit:
                yield f"{setup} in {', '.join(names)}: {ratio:.3f}, limit {limit}"


def check_no_cheaper(found: Results) -> Iterator[str]:
    """Check that no framework costs less."""
    for setup, rows in _setups(found, *PEER_RESULTS).items():
        others = _ratios_of_frameworks(rows)
        ours = others.pop("Hookline")
        if len(others) < 8:
            yield f"{setup}: only {len(others)} other frameworks"
        for name, ratio in others.items():
            if ratio <= ours:
                yield f"{setup}: {name} {ratio:.3f}, Hookline {ours:.3f}"


def check_mlp_order(found: Results) -> Iterator[str]:
    """Check that Ignite and Fabric come next on a tiny model."""
    for setup, rows in _setups(found, "peers_mlp").items():
        ratios = _ratios_of_frameworks(rows)
        order = sorted(ratios, key=lambda name: ratios[name])
        if order[0] != "Hookline" or set(order[1:3]) != {"Ignite", "Lightning Fabric"}:
            yield f"{setup}: the order is {', '.join(order[:3])}"


def check_cnn_order(found: Results) -> Iterator[str]:
    """Check that several frameworks come within a few percent on a small CNN."""
    ratios = _ratios_of_frameworks(_setups(found, "peers_cnn")["cnn-minimal"])
    near = [name for name, ratio in ratios.items() if name != "Hookline" and ratio < 1.09]
    if len(near) < 3:
        yield f"only {', '.join(near)}"


def check_idle_hooks(found: Results) -> Iterator[str]:
    """Check that the cost of idle hooks is not measurable."""
    for setup, rows in _setups(found, "typical").items():
        if IDLE in rows:
            idle = rows[IDLE]["to_hookline"]
            if idle["low"] > 1.0 and idle["ratio"] > 1.01:
                yield f"{setup}: {idle['ratio']:.3f}"
    if found["growth"]["results"]["hooks"]["+ 100 idle"]["low"] > 1.0:
        yield "100 idle hooks are measurable"


def check_long_run(found: Results) -> Iterator[str]:
    """Check that the cost of an iteration does not grow with the run."""
    marks = found["growth"]["results"]["iterations"]
    ratios = [row["ratio"] for row in marks.values()]
    if list(marks)[-1] != "1000000":
        yield f"the longest run has {list(marks)[-1]} iterations"
    if max(ratios) / ratios[0] > 1.05:
        yield f"{max(ratios) / ratios[0]:.3f} times the cost of the first iterations"


def check_part_costs(found: Results) -> Iterator[str]:
    """Check the costs of a site, an import, a distributed step and wrapped callbacks."""
    results = {name: content["results"] for name, content in found.items()}
    limits = [
        ("one site with ten hooks", results["dispatch"]["10"]["Hookline"]["ratio"], 1.15),
        ("import", results["importing"]["import torch, hookline"]["ratio"], 1.15),
        ("a step of two processes", results["ddp"]["step"]["ratio"], 1.05),
    ]
    for callback, sites in results["foreign"].items():
        for site, row in sites.items():
            limits.append((f"µs of {callback} at {site}", row["more"], 3.0))
    for name, value, limit in limits:
        if value > limit:
            yield f"{name}: {value:.3f}, limit {limit}"


def check_import_times(found: Results) -> Iterator[str]:
    """Check that Accelerate takes about as long to import, and the others longer."""
    rows = found["importing_peers"]["results"]
    seconds = {name: row["seconds"] for name, row in rows.items()}
    ours = seconds["from hookline import Runner"]
    accelerate = seconds["from accelerate import Accelerator"]
    if abs(ours / accelerate - 1.0) > 0.4:
        yield f"Hookline {ours:.2f} s, Accelerate {accelerate:.2f} s"
    for name, other in seconds.items():
        is_peer = not any(word in name for word in ("torch", "hookline", "accelerate"))
        if is_peer and other <= ours:
            yield f"{name} {other:.2f} s, Hookline {ours:.2f} s"


def check_compared_versions(found: Results) -> Iterator[str]:
    """Check that the comparison names the measured versions."""
    page = COMPARISON.read_text(encoding="utf-8")
    versions = found["peers_mlp"]["results"]["versions"]
    for framework, name in COMPARED.items():
        if f"{framework} {versions[name]} |" not in page:
            yield f"{framework} {versions[name]} is not in docs/compared.md"


def _setups(found: Results, *names: str) -> dict[str, Any]:
    """Return the rows of each set-up in these results."""
    setups = {}
    for name in names:
        for key, result in found[name]["results"].items():
            if key != "versions":
                setups[key] = result["rows"]
    return setups


def _ratios_of_frameworks(rows: dict[str, Any]) -> dict[str, float]:
    return {name: row["ratio"] for name, row in rows.items() if name not in (BY_HAND, IDLE)}


def check_computed_order(found: Results) -> Iterator[str]:
    """Check that a computed order has its first batch within 10 ms."""
    for length, methods in found["order"]["results"].items():
        for name in ("first_ms", "resume_ms"):
            value = methods["feistel"][name]
            if value > 10:
                yield f"{name} of {length} samples: {value:.1f}, limit 10"


CLAIMS: tuple[Callable[[Results], Iterator[str]], ...] = (
    check_conditions,
    check_iteration_cost,
    check_no_cheaper,
    check_mlp_order,
    check_cnn_order,
    check_idle_hooks,
    check_long_run,
    check_part_costs,
    check_computed_order,
    check_import_times,
    check_compared_versions,
)
