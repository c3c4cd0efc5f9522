"""Write docs/benchmarks.md and its picture from benchmarks/results, and check the claims.

    python benchmarks/report.py
    python benchmarks/report.py --check      write nothing, and fail if the page is out of date

Exit code 1 if a claim of benchmarks/claims.py does not hold.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import run
from benchmarks.claims import BY_HAND, IDLE, check_claims

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "images" / "benchmarks.png"
MAX_COLUMNS = 100
SETUPS = ("mlp-minimal", "mlp-typical", "cnn-minimal", "cnn-typical")

INTRODUCTION = """# Benchmarks

![Cost of an iteration, relative to the loop by hand](images/benchmarks.png)

`benchmarks/report.py` writes this page from `benchmarks/results/*.json`, and checks the claims
about speed in these documents. `make bench` runs our own benchmarks again, `make bench-peers` those
with other frameworks, in a separate environment.

Compared programs ran in one process at the same time, in turns of about 25 ms (single sites: 4 ms;
imports and the demo: new processes, in turns). Times are CPU times on one thread, except where a
table has wall-clock times. Compare the ratios; their quartiles are in brackets.

- Whole frameworks: the ratio of typical epochs, each made of the medians of its turns over all
  epochs. The quartiles are those of the ratios epoch by epoch.
- Imports: the ratio of medians, with quartiles round by round.
- Everything else: the median of the ratios turn by turn.

A ratio can lie outside its quartiles if the speed of the machine changed. Microseconds are those of
one machine, which was not idle: its load is in the last table.
"""
ABOUT_PEERS = """*Minimal* is training alone, against the bare loop. *Typical* adds the following,
against the same work written by hand:

- logging every 50 iterations, a cosine schedule by iteration, clipping, and averaged weights;
- after each epoch (1,000 iterations of the MLP, 100 of the CNN), a validation of ten batches and a
  checkpoint.

Each framework uses its built-in features; where one is missing, a few lines were added. The work
differs a little:

- skorch, fastai and Keras log after each epoch only;
- skorch, HF Trainer and fastai validate with the plain weights;
- Hookline and the loop by hand flush a checkpoint to the disk before they rename it, the others
  save as they do by default;
- Hookline also times its phases and hooks, and saves the state of its hooks.

*Other threads* is the CPU time per iteration (typical: MLP, CNN) of threads that a contender
started. The ratios do not include it. Hookline writes checkpoints there.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    found = load()
    problems = check_claims(found, run.commands())
    if arguments.check:
        if PAGE.read_text(encoding="utf-8") != page(found):
            problems.append("docs/benchmarks.md is out of date: run python benchmarks/report.py")
    else:
        PAGE.write_text(page(found), encoding="utf-8")
        picture(found, PICTURE)
        print(f"wrote {PAGE.relative_to(ROOT)} and {PICTURE.relative_to(ROOT)}")
    for problem in problems:
        print(f"CLAIM DOES NOT HOLD: {problem}", file=sys.stderr)
    print(f"{len(found)} results, {len(problems)} problems")
    return 1 if problems else 0


def load(folder: Path = RESULTS) -> dict[str, Any]:
    """Return the results by name."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    }


def page(found: dict[str, Any]) -> str:
    """Return the whole page; a benchmark without results has no section."""
    parts = [INTRODUCTION, *(section(found) for section in SECTIONS)]
    return wrap("\n".join(part for part in parts if part))


def wrap(markdown: str) -> str:
    """Break long lines of prose; a table row stays one line."""
    lines = []
    for line in markdown.split("\n"):
        if len(line) <= MAX_COLUMNS or line.startswith("|"):
            lines.append(line)
        else:
            lines += textwrap.wrap(
                line, MAX_COLUMNS, break_long_words=False, break_on_hyphens=False
            )
    return "\n".join(lines)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [
        "| " + " | ".join(row) + " |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows)
    ]
    return "\n".join(lines) + "\n"


def spread(row: dict[str, float], digits: int = 2) -> str:
    return f"{row['ratio']:.{digits}f} ({row['low']:.{digits}f}–{row['high']:.{digits}f})"


def both(found: dict[str, Any], *names: str) -> dict[str, Any]:
    """Merge the results of several runs of one benchmark."""
    return {
        key: value
        for name in names
        if name in found
        for key, value in found[name]["results"].items()
    }


def setups(found: dict[str, Any], names: tuple[str, ...], title: str, text: str) -> str:
    """Return a section with the ratios of all contenders in all set-ups."""
    results = both(found, *names)
    keys = [key for key in SETUPS if key in results]
    if not keys:
        return ""
    order = sorted(
        {name for key in keys for name in results[key]["rows"]} - {IDLE},
        key=lambda name: _rank(results, keys, name),
    )
    rows = []
    for name in order:
        cells = [results[key]["rows"].get(name) for key in keys]
        ratios = [spread(cell) if cell else "–" for cell in cells]
        rows.append([_bold(name), *ratios, _background(results, name)])
    head = ["ratio to the loop by hand", *(_title(key) for key in keys), "other threads"]
    hand = [results[key]["rows"][BY_HAND]["us"] for key in keys]
    left_out = set()
    for key in keys:
        for name, reason in results[key]["left_out"].items():
            left_out.add(f"{name} ({reason})")
    notes = sorted(left_out)
    below = [
        f"The loop by hand takes {', '.join(f'{us:.0f}' for us in hand)} µs.",
        _with_all_threads(results),
    ]
    below += [f"Left out: {'; '.join(notes)}."] if notes else []
    return f"## {title}\n\n{text}\n{table(head, rows)}\n{' '.join(below)}\n"


def _rank(results: dict[str, Any], keys: list[str], name: str) -> float:
    """Sort the loop by hand first, the others by their first set-up."""
    if name == BY_HAND:
        return 0.0
    return next(
        float(results[key]["rows"][name]["ratio"]) for key in keys if name in results[key]["rows"]
    )


def _title(key: str) -> str:
    return key.replace("mlp-", "tiny MLP, ").replace("cnn-", "small CNN, ")


def _bold(name: str) -> str:
    return f"**{name}**" if name == "Hookline" else name


def _background(results: dict[str, Any], name: str) -> str:
    """Return the time of a contender's other threads in the typical set-ups."""
    times = []
    for key in SETUPS:
        rows = results.get(key, {}).get("rows", {})
        if key.endswith("typical") and name in rows:
            times.append(f"{rows[name]['background_us']:.0f}")
    return f"{', '.join(times)} µs" if times else "–"


def _with_all_threads(results: dict[str, Any]) -> str:
    """Return a sentence with Hookline's ratios including the time of its other threads."""
    ratios = []
    for key in SETUPS:
        rows = results.get(key, {}).get("rows", {})
        if key.endswith("typical") and "Hookline" in rows:
            ours = rows["Hookline"]
            ratio = (ours["us"] + ours["background_us"]) / rows[BY_HAND]["us"]
            ratios.append(f"{ratio:.2f} ({_title(key)})")
    if not ratios:
        return ""
    return f"With its other threads Hookline's ratio is {' and '.join(ratios)}."


def peers(found: dict[str, Any]) -> str:
    text = setups(
        found, ("peers_mlp", "peers_cnn"), "An iteration, against other frameworks", ABOUT_PEERS
    )
    versions = both(found, "peers_cnn", "peers_mlp").get("versions", {})
    if not text:
        return ""
    names = sorted(versions, key=str.lower)
    listed = ", ".join(f"{name} {versions[name]}" for name in names)
    return f"{text}\nVersions: {listed}.\n"


def own(found: dict[str, Any]) -> str:
    return setups(
        found,
        ("typical",),
        "An iteration, ours alone",
        "The same without the other frameworks (`make bench`).\n",
    )


def idle(found: dict[str, Any]) -> str:
    rows = []
    for name in ("typical", "peers_mlp", "peers_cnn"):
        for key, result in both(found, name).items():
            row = result.get("rows", {}).get(IDLE) if key != "versions" else None
            if row:
                where = "`make bench`" if name == "typical" else "`make bench-peers`"
                rows.append(
                    [
                        f"{result['problem']}, {result['setup']} ({where})",
                        spread(row["to_hookline"], 3),
                    ]
                )
    if "overhead" in found:
        results = found["overhead"]["results"]
        rows += [
            [f"tiny MLP against the bare loop: {name}", spread(row, 3)]
            for name, row in results.items()
            if name != "bare loop"
        ]
    text = (
        "Ten more hooks that have nothing to do in an iteration, against the same run without "
        "them; and the default hooks alone.\n"
    )
    return f"## Idle hooks, default hooks\n\n{text}\n{table(['', 'ratio'], rows)}" if rows else ""


def dispatch(found: dict[str, Any]) -> str:
    name = "dispatch_peers" if "dispatch_peers" in found else "dispatch"
    if name not in found:
        return ""
    results = found[name]["results"]
    rows = [
        [
            _bold(contender),
            *(
                f"{results[count][contender]['ns']:,.0f} ns, {spread(results[count][contender])}"
                for count in results
            ),
        ]
        for contender in results["10"]
    ]
    if name != "dispatch" and "dispatch" in found:
        ours = found["dispatch"]["results"]
        cells = (
            f"{ours[count]['Hookline']['ns']:,.0f} ns, {spread(ours[count]['Hookline'])}"
            for count in results
        )
        rows.append(["Hookline (`make bench`)", *cells])
    text = (
        "Calls of all hooks of one site, which do nothing. "
        "The ratio is to a plain loop over a tuple of bound methods.\n"
    )
    return f"## One site\n\n{text}\n{table(['', *(f'{count} hooks' for count in results)], rows)}"


def checkpoint(found: dict[str, Any]) -> str:
    if "checkpoint" not in found:
        return ""
    results = dict(found["checkpoint"]["results"])
    size = results.pop("megabytes")
    rows = [
        [
            _bold(name),
            f"{row['seconds']:.3f} s",
            f"{row['ratio']:.2f}",
            f"{row['least']:.3f}–{row['most']:.3f} s",
        ]
        for name, row in results.items()
    ]
    text = (
        f"The wall-clock time for which saving {size:.0f} MB blocks training. "
        "Each save reuses the buffers of the first one.\n"
    )
    return (
        f"## Checkpoint\n\n{text}\n{table(['', 'median', 'of torch.save', 'least to most'], rows)}"
    )


def remote(found: dict[str, Any]) -> str:
    if "remote" not in found:
        return ""
    results = dict(found["remote"]["results"])
    size = results.pop("megabytes")
    labels = {
        "copy": "one copy in memory",
        "local": "**Hookline**, local disk",
        "mirror": "**Hookline**, local disk and mirror",
        "overlap": "the same with `overlap_copy`",
        "Lightning": "Lightning, object storage",
    }
    rows = []
    for name, row in results.items():
        spread = f"{row['least']:.3f}–{row['most']:.3f} s"
        rows.append([labels[name], f"{row['seconds']:.3f} s", f"{row['ratio']:.2f}", spread])
    text = (
        f"The wall-clock time for which saving {size:.0f} MB blocks training, with an S3 server "
        "on the same machine. A thread uploads to the mirror.\n"
    )
    heads = ["", "median", "of a copy", "least to most"]
    return f"## Object storage\n\n{text}\n{table(heads, rows)}"


def ema(found: dict[str, Any]) -> str:
    if "ema" not in found:
        return ""
    results = found["ema"]["results"]
    rows = [
        [
            _bold(name),
            *(
                f"{results[size][name]['us']:,.0f} µs, {results[size][name]['ratio']:.2f}"
                for size in results
            ),
        ]
        for name in next(iter(results.values()))
    ]
    head = ["", *(f"{int(size) / 1e6:g} M parameters" for size in results)]
    text = "One update of 200 tensors, and the ratio to the bare operation.\n"
    return f"## Average of the weights\n\n{text}\n{table(head, rows)}"


def importing(found: dict[str, Any]) -> str:
    """Return a section with all runs: each has its own base."""
    rows = []
    for name, where in (("importing", "`make bench`"), ("importing_peers", "`make bench-peers`")):
        for statement, row in both(found, name).items():
            figures = [
                f"{row['seconds']:.2f} s",
                spread(row),
                f"{row['mb']:.0f} MB",
                f"{row['mb_ratio']:.2f}",
            ]
            rows.append([f"`{statement}` ({where})", *figures])
    text = (
        "`import hookline` imports nothing else, not even torch; "
        "the parts of a run are imported when they are first used.\n"
    )
    if not rows:
        return ""
    head = ["", "CPU time", "ratio to torch", "memory", "ratio"]
    return f"## Importing\n\n{text}\n{table(head, rows)}"


def growth(found: dict[str, Any]) -> str:
    if "growth" not in found:
        return ""
    results = found["growth"]["results"]
    hooks = [
        [name, f"{row['us']:.0f} µs", spread(row, 3)] for name, row in results["hooks"].items()
    ]
    marks = [
        [f"{int(mark):,} iterations", f"{row['us']:.0f} µs", spread(row, 3)]
        for mark, row in results["iterations"].items()
    ]
    text = (
        "*Idle* hooks have nothing to do in an iteration; "
        "*empty* hooks have a method that is called in each.\n"
    )
    long = (
        "One long run with the default hooks and a tiny model, "
        "against a bare loop at the same moment:\n"
    )
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
        cells = []
        for kind in ("clock", "cpu"):
            ratios = {key: row[f"{kind}_{key}"] for key in ("ratio", "low", "high")}
            cells.append(f"{row[kind]:.2f} s, {spread(ratios, 3)}")
        rows.append([name, *cells])
    text = (
        "The whole demo, from the first import to the last picture, against the demo without "
        "pictures. captum, which CAMHook and SaliencyHook need, takes half a second to import.\n"
    )
    return f"## Pictures\n\n{text}\n{table(['', 'time', 'CPU time'], rows)}"


def ddp(found: dict[str, Any]) -> str:
    if "ddp" not in found:
        return ""
    rows = [
        [name, f"{row['us']:.0f} µs", spread(row, 3)]
        for name, row in found["ddp"]["results"].items()
    ]
    text = (
        "The wall-clock time of a step of the tiny MLP in two gloo processes on one machine, "
        "against DDP written by hand in the same two. *step* is OptimizerHook alone, which does "
        "the work of the loop by hand.\n"
    )
    head = ["", "per iteration", "ratio to the loop by hand"]
    return f"## Two processes\n\n{text}\n{table(head, rows)}"


def order(found: dict[str, Any]) -> str:
    if "order" not in found:
        return ""
    rows = []
    for length, methods in found["order"]["results"].items():
        for method, row in methods.items():
            title = f"{int(length):,}, `{method}`"
            if "left_out" in row:
                rows.append([title, f"left out: {row['left_out']}", "", "", ""])
                continue
            cells = [f"{row['first_ms']:,.1f} ms", f"{row['resume_ms']:,.1f} ms"]
            rows.append([title, *cells, f"{row['batch_us']:.2f} µs", f"{row['mb']:,.0f} MB"])
    text = (
        "The order of an epoch alone, without data, in batches of 32: CPU time of the first batch, "
        "of the first one after a resume in the middle, and of a batch on average; and memory.\n"
    )
    head = ["samples, method", "first batch", "resume", "a batch", "memory"]
    return f"## Order of the data\n\n{text}\n{table(head, rows)}"


def loading(found: dict[str, Any]) -> str:
    if "loading" not in found:
        return ""
    rows = []
    for dataset, by_workers in found["loading"]["results"].items():
        for workers, row in by_workers.items():
            times = [f"{row['torch_us']:,.0f} µs", f"{row['us']:,.0f} µs"]
            rows.append([dataset, workers, *times, spread(row)])
    text = (
        "A batch of 64 from `make_loader`, against torch's `DataLoader`. *List items* are taken "
        "from a list, *made items* are tensors made from a list. A data set that is neither known "
        "nor *declared* to draw no random numbers is checked after each batch; see "
        "[the decision](decisions/014-checks-for-draws.md) and "
        "[how to declare it](resume.md#random-numbers-of-a-data-set).\n"
    )
    head = ["data set", "workers", "DataLoader", "make_loader", "ratio"]
    return f"## Loading\n\n{text}\n{table(head, rows)}"


def optimization(found: dict[str, Any]) -> str:
    if "optimization" not in found:
        return ""
    rows = []
    for name, row in found["optimization"]["results"].items():
        rows.append([name, f"{row['hand_us']:.0f} µs", f"{row['us']:.0f} µs", spread(row, 3)])
    text = (
        "OptimizerHook and the hooks that it works with, without the default hooks, against the "
        "same loop by hand. *Two optimizers* are Muon and AdamW, with clipping over both.\n"
    )
    head = ["feature", "by hand", "Hookline", "ratio"]
    return f"## Optimization\n\n{text}\n{table(head, rows)}"


def ports(found: dict[str, Any]) -> str:
    if "ports" not in found:
        return ""
    rows = []
    for name, row in found["ports"]["results"].items():
        lines = f"{row['plain_lines']} → {row['ported_lines']}"
        times = [f"{row['plain_ms']:.2f} ms", f"{row['ported_ms']:.2f} ms"]
        rows.append([name.replace("_", " "), lines, *times, spread(row)])
    text = (
        "An iteration of the programs in `examples/ports`, against their plain loops, with the "
        "default hooks. Lines are those that only one of the two has; in brackets are the least "
        "and the largest ratio.\n"
    )
    head = ["program", "lines", "plain", "ported", "ratio"]
    return f"## Ported programs\n\n{text}\n{table(head, rows)}"


def finetune(found: dict[str, Any]) -> str:
    if "finetune" not in found:
        return ""
    rows = []
    for job, result in found["finetune"]["results"].items():
        sizes, step = result["bytes"], result["time"]
        shares = [sizes["checkpoint"] / sizes[key] for key in ("adapter and moments", "trainer")]
        times = [f"{step['trainer_us'] / 1000:.2f} ms", f"{step['us'] / 1000:.2f} ms", spread(step)]
        gaps = [f"{result['loss_gap']:.0e}", f"{result['score_gap']:.0e}"]
        rows.append([job.replace("_", " "), *times, *(f"{share:.3f}" for share in shares), *gaps])
    text = (
        "LoRA on a tiny BERT (classification) and a tiny GPT-2 (causal lm), against the Trainer of "
        "Hugging Face with the same data, order and seeds: the time of a step; the size of a "
        "checkpoint, relative to the adapter with its moments and to the Trainer's folder; the "
        "largest difference of a loss, and of a score after `PeftModel.from_pretrained`.\n"
    )
    head = ["job", "Trainer", "Hookline", "ratio", "of adapter", "of folder", "loss", "score"]
    return f"## Fine-tuning\n\n{text}\n{table(head, rows)}"


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
    text = (
        "The cost of a wrapped callback of another framework at a site where it does nothing, "
        "beyond a direct call.\n"
    )
    head = ["callback", "sites", "most", "at"]
    return f"## Callbacks of other frameworks\n\n{text}\n{table(head, rows)}"


def conditions(found: dict[str, Any]) -> str:
    """Return a section with the date and the machine of each measurement."""
    rows = []
    for name, content in found.items():
        about = content["about"]
        load_before, load_after = about["load"]
        versions = " ".join(f"{package} {number}" for package, number in about["versions"].items())
        rows.append(
            [
                name,
                about["date"],
                versions,
                f"{load_before} → {load_after}",
                f"`{about['command']}`",
            ]
        )
    if not rows:
        return ""
    machines = set()
    for content in found.values():
        machine = content["about"]["machine"]
        machines.add(f"{machine['processor']}, {machine['cores']} cores, {machine['system']}")
    text = (
        f"{'; '.join(sorted(machines))}. "
        "Load is the number of processes that wanted a core, before and after.\n"
    )
    head = ["results", "date", "versions", "load", "command"]
    return f"## When and where\n\n{text}\n{table(head, rows)}"


def picture(found: dict[str, Any], path: Path) -> None:
    """Draw a bar with each contender's ratio, for each set-up."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    results = both(found, "typical") | both(found, "peers_mlp", "peers_cnn")
    keys = [key for key in SETUPS if key in results]
    figure, axes = plt.subplots(
        1, max(1, len(keys)), figsize=(3.6 * max(1, len(keys)), 4.2), squeeze=False
    )
    for axis, key in zip(axes[0], keys, strict=False):
        rows = {name: row for name, row in results[key]["rows"].items() if name != IDLE}
        _draw_bars(axis, rows)
        axis.set_title(_title(key), fontsize=10)
    figure.suptitle("CPU time of an iteration, relative to the loop by hand", fontsize=11)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def _draw_bars(axis: Any, rows: dict[str, Any]) -> None:
    """Draw the ratio of each contender with its quartiles, the largest at the bottom."""
    names = sorted(rows, key=lambda name: rows[name]["ratio"], reverse=True)
    ratios = [rows[name]["ratio"] for name in names]
    below = [max(0.0, rows[name]["ratio"] - rows[name]["low"]) for name in names]
    above = [max(0.0, rows[name]["high"] - rows[name]["ratio"]) for name in names]
    colors = ["#3949ab" if name == "Hookline" else "#9e9e9e" for name in names]
    axis.barh(names, ratios, xerr=[below, above], color=colors)
    axis.axvline(1.0, color="black", linewidth=0.8)
    ends = [max(rows[name]["high"], rows[name]["ratio"]) for name in names]
    for index, (end, ratio) in enumerate(zip(ends, ratios, strict=True)):
        axis.text(end, index, f" {ratio:.2f}", va="center", fontsize=8)
    axis.set_xlim(0, 1.22 * max(ends))
    axis.tick_params(labelsize=8)


SECTIONS = (
    peers,
    own,
    idle,
    dispatch,
    checkpoint,
    remote,
    ema,
    importing,
    growth,
    pictures,
    ddp,
    order,
    loading,
    optimization,
    ports,
    finetune,
    foreign,
    conditions,
)


if __name__ == "__main__":
    sys.exit(main())
