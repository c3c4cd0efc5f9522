"""The claims that the documentation makes about speed, checked against the results in benchmarks/results.

`benchmarks/report.py` checks them and exits with 1 if one does not hold. They are no tests: only a new measurement can change them.
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
    "mlp-minimal": 1.05,
    "mlp-typical": 1.10,
    "cnn-minimal": 1.02,
    "cnn-typical": 1.02,
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
        found: the results by name, as `report.load` returns them.
        commands: the command of each benchmark, as `run.py` would start it.
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


def results_have_their_conditions(found: Results) -> Iterator[str]:
    for name, content in found.items():
        about = content["about"]
        if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", about["date"]):
            yield f"{name} has the date {about['date']!r}"
        if not {"python", "torch", "hookline"} <= set(about["versions"]):
            yield f"{name} lacks versions"
        if about["machine"]["cores"] < 1 or len(about["load"]) != 2:
            yield f"{name} lacks the machine or its load"


def an_iteration_costs_a_few_percent(found: Results) -> Iterator[str]:
    for names in (("typical",), PEER_RESULTS):
        setups = _setups(found, *names)
        if setups.keys() != MAX_ITERATION_RATIO.keys():
            yield f"{names} have the set-ups {sorted(setups)}"
        for setup, rows in setups.items():
            ratio, limit = rows["Hookline"]["ratio"], MAX_ITERATION_RATIO[setup]
            if ratio > limit:
                yield f"{setup} in {', '.join(names)}: {ratio:.3f}, limit {limit}"


def no_framework_costs_less(found: Results) -> Iterator[str]:
    for setup, rows in _setups(found, *PEER_RESULTS).items():
        others = _ratios_of_frameworks(rows)
        ours = others.pop("Hookline")
        if len(others) < 8:
            yield f"{setup}: only {len(others)} other frameworks"
        for name, ratio in others.items():
            if ratio <= ours:
                yield f"{setup}: {name} {ratio:.3f}, Hookline {ours:.3f}"


def on_a_tiny_model_ignite_and_fabric_come_next(found: Results) -> Iterator[str]:
    for setup, rows in _setups(found, "peers_mlp").items():
        ratios = _ratios_of_frameworks(rows)
        order = sorted(ratios, key=lambda name: ratios[name])
        if order[0] != "Hookline" or set(order[1:3]) != {"Ignite", "Lightning Fabric"}:
            yield f"{setup}: the order is {', '.join(order[:3])}"


def on_a_small_cnn_several_come_within_a_few_percent(found: Results) -> Iterator[str]:
    ratios = _ratios_of_frameworks(_setups(found, "peers_cnn")["cnn-minimal"])
    near = [name for name, ratio in ratios.items() if name != "Hookline" and ratio < 1.09]
    if len(near) < 3:
        yield f"only {', '.join(near)}"


def idle_hooks_cost_nothing_measurable(found: Results) -> Iterator[str]:
    for setup, rows in _setups(found, "typical").items():
        if IDLE in rows:
            idle = rows[IDLE]["to_hookline"]
            if idle["low"] > 1.0 and idle["ratio"] > 1.01:
                yield f"{setup}: {idle['ratio']:.3f}"
    if found["growth"]["results"]["hooks"]["+ 100 idle"]["low"] > 1.0:
        yield "100 idle hooks are measurable"


def cost_does_not_grow_with_the_run(found: Results) -> Iterator[str]:
    marks = found["growth"]["results"]["iterations"]
    ratios = [row["ratio"] for row in marks.values()]
    if list(marks)[-1] != "1000000":
        yield f"the longest run has {list(marks)[-1]} iterations"
    if max(ratios) / ratios[0] > 1.05:
        yield f"{max(ratios) / ratios[0]:.3f} times the cost of the first iterations"


def the_parts_cost_little(found: Results) -> Iterator[str]:
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


def accelerate_takes_as_long_to_import_and_others_longer(found: Results) -> Iterator[str]:
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


def the_comparison_names_the_measured_versions(found: Results) -> Iterator[str]:
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


def a_computed_order_starts_at_once(found: Results) -> Iterator[str]:
    for length, methods in found["order"]["results"].items():
        for name in ("first_ms", "resume_ms"):
            value = methods["feistel"][name]
            if value > 10:
                yield f"{name} of {length} samples: {value:.1f}, limit 10"


CLAIMS: tuple[Callable[[Results], Iterator[str]], ...] = (
    results_have_their_conditions,
    an_iteration_costs_a_few_percent,
    no_framework_costs_less,
    on_a_tiny_model_ignite_and_fabric_come_next,
    on_a_small_cnn_several_come_within_a_few_percent,
    idle_hooks_cost_nothing_measurable,
    cost_does_not_grow_with_the_run,
    the_parts_cost_little,
    a_computed_order_starts_at_once,
    accelerate_takes_as_long_to_import_and_others_longer,
    the_comparison_names_the_measured_versions,
)
