"""Make docs/benchmarks.md and docs/images/benchmarks.png from the results in benchmarks/results.

python benchmarks/report.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE, PICTURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "images" / "benchmarks.png"
SETUPS = ("mlp-minimal", "mlp-typical", "cnn-minimal", "cnn-typical")
IDLE = "Hookline + 10 idle hooks"

INTRODUCTION = """# Benchmarks

This page is made by `benchmarks/report.py` from `benchmarks/results/*.json`; a test checks that it is. `make bench` runs our own
benchmarks again and makes it anew, `make bench-peers` those with the other frameworks, in an environment of their own.

All that is compared with each other ran in one process at the same time, taking turns of about 25 milliseconds (single sites: 4;
imports and the demo: fresh processes, taking turns). CPU time is taken unless a table says otherwise, on one thread. Ratios are what
to look at, with quartiles behind them. For whole frameworks it is the ratio of typical epochs, each made of the medians of its turns
over all epochs, and the quartiles are those of the ratios epoch by epoch; for imports that of medians, with quartiles round by round. So
it may lie outside of them where the machine's pace changed; elsewhere it is the median of the ratios turn by turn. Microseconds are
those of one machine, which was not idle: its load is told at the end.
"""
ABOUT_PEERS = """*Minimal* is training alone, against the bare loop. *Typical* has logging every 50 iterations, a cosine schedule by
iteration, clipping, an average of the weights, and after each epoch (1,000 iterations of the MLP, 100 of the CNN) a validation of ten
batches and a checkpoint, against the same work written by hand. What a framework has of these it does with its own
means; where it has none, a few lines were added. So they do not all do quite the same: skorch, fastai and Keras log after each epoch
only; skorch, HF Trainer and fastai validate with the plain weights; Hookline and the loop by hand flush a checkpoint to the disk before it
gets its name, the others save as they do by default; Hookline also times its phases and hooks, and saves the state of its
hooks. *Other threads* is CPU time per iteration (typical: MLP, CNN) of threads that a contender started, which is
not in the ratios of the table: Hookline writes checkpoints there.
"""


def load(folder: Path = RESULTS) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def page(found: dict[str, Any]) -> str:
    """The whole page; a benchmark without results has no section."""
    parts = [INTRODUCTION, "![Cost of an iteration, relative to the loop by hand](images/benchmarks.png)\n"]
    parts += [section(found) for section in SECTIONS]
    return "\n".join(part for part in parts if part)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]
    return "\n".join(lines) + "\n"


def spread(row: dict[str, float], digits: int = 2) -> str:
    return f"{row['ratio']:.{digits}f} ({row['low']:.{digits}f}–{row['high']:.{digits}f})"


def both(found: dict[str, Any], *names: str) -> dict[str, Any]:
    """The results of several runs of one benchmark in one."""
    return {key: value for name in names if name in found for key, value in found[name]["results"].items()}


def setups(found: dict[str, Any], names: tuple[str, ...], title: str, text: str) -> str:
    results = both(found, *names)
    keys = [key for key in SETUPS if key in results]
    if not keys:
        return ""
    order = sorted({name for key in keys for name in results[key]["rows"]} - {IDLE}, key=lambda name: _rank(results, keys, name))
    rows = []
    for name in order:
        cells = [results[key]["rows"].get(name) for key in keys]
        rows.append([_bold(name), *(f"{spread(cell)}" if cell else "–" for cell in cells), _background(results, name)])
    head = [
        "ratio to the loop by hand",
        *(key.replace("mlp-", "tiny MLP, ").replace("cnn-", "small CNN, ") for key in keys),
        "other threads",
    ]
    hand = [results[key]["rows"]["by hand"]["us"] for key in keys]
    notes = sorted({f"{name} ({why})" for key in keys for name, why in results[key]["left_out"].items()})
    below = [f"The loop by hand takes {', '.join(f'{us:.0f}' for us in hand)} µs.", _all_counted(results)]
    below += [f"Left out: {'; '.join(notes)}."] if notes else []
    return f"## {title}\n\n{text}\n{table(head, rows)}\n{' '.join(below)}\n"


def _rank(results: dict[str, Any], keys: list[str], name: str) -> float:
    """By hand first, the others by the first set-up that they are in."""
    if name == "by hand":
        return 0.0
    return next(float(results[key]["rows"][name]["ratio"]) for key in keys if name in results[key]["rows"])


def _title(key: str) -> str:
    return key.replace("mlp-", "tiny MLP, ").replace("cnn-", "small CNN, ")


def _bold(name: str) -> str:
    return f"**{name}**" if name == "Hookline" else name


def _background(results: dict[str, Any], name: str) -> str:
    cells = [results[key]["rows"][name] for key in SETUPS if key.endswith("typical") and name in results.get(key, {}).get("rows", {})]
    return ", ".join(f"{cell['background_us']:.0f}" for cell in cells) + " µs" if cells else "–"


def _all_counted(results: dict[str, Any]) -> str:
    """Hookline's ratios with the time of its other threads."""
    told = []
    for key in SETUPS:
        rows = results.get(key, {}).get("rows", {})
        if key.endswith("typical") and "Hookline" in rows:
            ours = rows["Hookline"]
            told.append(f"{(ours['us'] + ours['background_us']) / rows['by hand']['us']:.2f} ({_title(key)})")
    return f"With its other threads counted Hookline's ratio is {' and '.join(told)}." if told else ""


def peers(found: dict[str, Any]) -> str:
    text = setups(found, ("peers_mlp", "peers_cnn"), "An iteration, against other frameworks", ABOUT_PEERS)
    versions = both(found, "peers_cnn", "peers_mlp").get("versions", {})
    told = ", ".join(f"{name} {version}" for name, version in sorted(versions.items(), key=lambda item: item[0].lower()))
    return f"{text}\nVersions: {told}.\n" if text else ""


def own(found: dict[str, Any]) -> str:
    return setups(found, ("typical",), "An iteration, ours alone", "The same without the others (`make bench`).\n")


def idle(found: dict[str, Any]) -> str:
    rows = []
    for name in ("typical", "peers_mlp", "peers_cnn"):
        for key, result in both(found, name).items():
            row = result.get("rows", {}).get(IDLE) if key != "versions" else None
            if row:
                where = "`make bench`" if name == "typical" else "`make bench-peers`"
                rows.append([f"{result['problem']}, {result['setup']} ({where})", spread(row["to_hookline"], 3)])
    if "overhead" in found:
        results = found["overhead"]["results"]
        rows += [[f"tiny MLP against the bare loop: {name}", spread(row, 3)] for name, row in results.items() if name != "bare loop"]
    text = "Ten hooks more that have nothing to do in an iteration, against the same without them; and the default hooks alone.\n"
    return f"## Idle hooks, default hooks\n\n{text}\n{table(['', 'ratio'], rows)}" if rows else ""


def dispatch(found: dict[str, Any]) -> str:
    name = "dispatch_peers" if "dispatch_peers" in found else "dispatch"
    if name not in found:
        return ""
    results = found[name]["results"]
    rows = [
        [_bold(contender), *(f"{results[count][contender]['ns']:,.0f} ns, {spread(results[count][contender])}" for count in results)]
        for contender in results["10"]
    ]
    if name != "dispatch" and "dispatch" in found:
        ours = found["dispatch"]["results"]
        cells = (f"{ours[count]['Hookline']['ns']:,.0f} ns, {spread(ours[count]['Hookline'])}" for count in results)
        rows.append(["Hookline (`make bench`)", *cells])
    text = "Calling all hooks of one site, each of which does nothing; the ratio is to a plain loop over a tuple of bound methods.\n"
    return f"## One site\n\n{text}\n{table(['', *(f'{count} hooks' for count in results)], rows)}"


def checkpoint(found: dict[str, Any]) -> str:
    if "checkpoint" not in found:
        return ""
    results = dict(found["checkpoint"]["results"])
    size = results.pop("megabytes")
    rows = [
        [_bold(name), f"{row['seconds']:.3f} s", f"{row['ratio']:.2f}", f"{row['least']:.3f}–{row['most']:.3f} s"]
        for name, row in results.items()
    ]
    text = f"How long saving {size:.0f} MB keeps training waiting, by the clock on the wall; each save reuses the buffers of the first.\n"
    return f"## Checkpoint\n\n{text}\n{table(['', 'median', 'of torch.save', 'least to most'], rows)}"


def ema(found: dict[str, Any]) -> str:
    if "ema" not in found:
        return ""
    results = found["ema"]["results"]
    rows = [
        [_bold(name), *(f"{results[size][name]['us']:,.0f} µs, {results[size][name]['ratio']:.2f}" for size in results)]
        for name in next(iter(results.values()))
    ]
    head = ["", *(f"{int(size) / 1e6:g} M parameters" for size in results)]
    return f"## Average of the weights\n\nOne update of 200 tensors, and the ratio to the bare operation.\n\n{table(head, rows)}"


def importing(found: dict[str, Any]) -> str:
    """All runs, for they differ: each has a base of its own."""
    rows = []
    for name, where in (("importing", "`make bench`"), ("importing_peers", "`make bench-peers`")):
        for statement, row in both(found, name).items():
            figures = [f"{row['seconds']:.2f} s", spread(row), f"{row['mb']:.0f} MB", f"{row['mb_ratio']:.2f}"]
            rows.append([f"`{statement}` ({where})", *figures])
    text = "`import hookline` itself imports nothing else, not even torch; what a run needs comes when it is first named.\n"
    return f"## Importing\n\n{text}\n{table(['', 'CPU time', 'ratio to torch', 'memory', 'ratio'], rows)}" if rows else ""


def growth(found: dict[str, Any]) -> str:
    if "growth" not in found:
        return ""
    results = found["growth"]["results"]
    hooks = [[name, f"{row['us']:.0f} µs", spread(row, 3)] for name, row in results["hooks"].items()]
    marks = [[f"{int(mark):,} iterations", f"{row['us']:.0f} µs", spread(row, 3)] for mark, row in results["iterations"].items()]
    text = "*Idle* hooks have nothing to do in an iteration, *empty* ones a method that is called in each.\n"
    long = "On the way of one run with the default hooks and a tiny model, against a bare loop at the same moment:\n"
    tables = (
        table(["", "per iteration", "ratio to the default hooks"], hooks),
        table(["after", "per iteration", "ratio to a bare loop"], marks),
    )
    return f"## Growth\n\n{text}\n{tables[0]}\n{long}\n{tables[1]}"


def pictures(found: dict[str, Any]) -> str:
    if "pictures" not in found:
        return ""
    rows = []
    for name, row in found["pictures"]["results"].items():
        cells = [
            f"{row[kind]:.2f} s, {row[f'{kind}_ratio']:.3f} ({row[f'{kind}_low']:.3f}–{row[f'{kind}_high']:.3f})"
            for kind in ("clock", "cpu")
        ]
        rows.append([name, *cells])
    text = (
        "The demo as it is started, from the first import to the last picture, against the same without pictures. captum, which\n"
        "CAMHook and SaliencyHook need, takes half a second to import.\n"
    )
    return f"## Pictures\n\n{text}\n{table(['', 'time', 'CPU time'], rows)}"


def ddp(found: dict[str, Any]) -> str:
    if "ddp" not in found:
        return ""
    rows = [[name, f"{row['us']:.0f} µs", spread(row, 3)] for name, row in found["ddp"]["results"].items()]
    text = (
        "A step of the tiny MLP in two gloo processes on this machine, against DDP written by hand in the same two, by the clock. *step*\n"
        "is OptimizerHook alone, which does what the loop by hand does.\n"
    )
    return f"## Two processes\n\n{text}\n{table(['', 'per iteration', 'ratio to the loop by hand'], rows)}"


def foreign(found: dict[str, Any]) -> str:
    if "foreign" not in found:
        return ""
    rows = [
        [
            callback,
            f"{len(sites)}",
            f"{max(row['more'] for row in sites.values()):.2f} µs",
            max(sites, key=lambda site: sites[site]["more"]),
        ]
        for callback, sites in found["foreign"]["results"].items()
    ]
    text = "What a wrapped callback of another framework costs where it does nothing, beyond calling it directly.\n"
    return f"## Callbacks of others\n\n{text}\n{table(['callback', 'sites', 'most', 'at'], rows)}"


def conditions(found: dict[str, Any]) -> str:
    """When and where each was measured."""
    rows = []
    for name, content in found.items():
        about = content["about"]
        load_before, load_after = about["load"]
        versions = " ".join(f"{package} {number}" for package, number in about["versions"].items())
        rows.append([name, about["date"], versions, f"{load_before} → {load_after}", f"`{about['command']}`"])
    if not rows:
        return ""
    machines = sorted(
        {f"{m['processor']}, {m['cores']} cores, {m['system']}" for m in (each["about"]["machine"] for each in found.values())}
    )
    text = f"{'; '.join(machines)}. Load is the number of processes that wanted a core, before and after.\n"
    return f"## When and where\n\n{text}\n{table(['results', 'date', 'versions', 'load', 'command'], rows)}"


def picture(found: dict[str, Any], path: Path) -> None:
    """Bars of each contender's ratio, for each set-up."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    results = both(found, "typical") | both(found, "peers_mlp", "peers_cnn")
    keys = [key for key in SETUPS if key in results]
    figure, axes = plt.subplots(1, max(1, len(keys)), figsize=(3.6 * max(1, len(keys)), 4.2), squeeze=False)
    for axis, key in zip(axes[0], keys, strict=False):
        ordered = sorted(results[key]["rows"].items(), key=lambda item: item[1]["ratio"], reverse=True)
        rows = [(name, row) for name, row in ordered if name != IDLE]
        errors = [[max(0.0, r["ratio"] - r["low"]) for _, r in rows], [max(0.0, r["high"] - r["ratio"]) for _, r in rows]]
        colors = ["#3949ab" if name == "Hookline" else "#9e9e9e" for name, _ in rows]
        axis.barh([name for name, _ in rows], [row["ratio"] for _, row in rows], xerr=errors, color=colors)
        axis.axvline(1.0, color="black", linewidth=0.8)
        for place, (_, row) in enumerate(rows):
            axis.text(max(row["high"], row["ratio"]), place, f" {row['ratio']:.2f}", va="center", fontsize=8)
        axis.set_xlim(0, 1.22 * max(max(row["high"], row["ratio"]) for _, row in rows))
        axis.set_title(_title(key), fontsize=10)
        axis.tick_params(labelsize=8)
    figure.suptitle("CPU time of an iteration, relative to the loop by hand", fontsize=11)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


SECTIONS = (peers, own, idle, dispatch, checkpoint, ema, importing, growth, pictures, ddp, foreign, conditions)


if __name__ == "__main__":
    results = load()
    PAGE.write_text(page(results), encoding="utf-8")
    picture(results, PICTURE)
    print(f"{PAGE.relative_to(ROOT)} and {PICTURE.relative_to(ROOT)}, from {len(results)} results")
