"""What the golden run computes: a list of named cases, each of which gives lines of text.

Floats are written with ``repr``, so that a change of the last bit shows. Clocks, dates, versions,
paths and the messages of errors are left out.
"""

import contextlib
import hashlib
import json
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from golden_networks import MODELS, score_by_value, write_project
from torch import Tensor

import graphgauge as gg
from graphgauge.metrics import Curves, Metric, mean_over_cases

#: parts of keys and of metrics' names that stand for clocks, machines and places
LEFT_OUT = re.compile(
    "second|^time|^saved$|version|machine|python|platform|^at$|_at$|date|^made$|expires|signed|"
    "path|^folder$|^run$|message|phases|store"
)
LANGUAGES = ("en", "it", "de", "fr", "es")
AUDIENCES = ("expert", "internal", "affected_person")
FURTHER = ("error", "flipped", "trials", "stop", "per_reference", "per_level")
SMALL = {"timed": 0}
QUICK = {
    **SMALL,
    "trials": (5, 20),
    "twin_trials": 8,
    "feature_trials": 7,
    "calls": 4,
    "permutations": 4,
}


# --- text ---------------------------------------------------------------------------------------


def flat_lines(value: Any, name: str = "") -> Iterator[str]:
    """One line for each number or text inside nested data, with the way to it."""
    if isinstance(value, Mapping):
        if str(value.get("metric", "")).startswith("time"):
            return
        for key, part in value.items():
            if not LEFT_OUT.search(str(key)):
                yield from flat_lines(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        if all(item is None or isinstance(item, (bool, int, float)) for item in value):
            yield f"{name}: {shown(list(value))}"
        else:
            for number, part in enumerate(value):
                yield from flat_lines(part, f"{name}[{number}]")
    else:
        yield f"{name}: {shown(value)}"


def shown(value: Any) -> str:
    """A value as text, floats to the last bit."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, (list, tuple)):
        return f"[{' '.join(map(shown, value))}]"
    return value if isinstance(value, str) else repr(value)


def row_lines(results: Any) -> list[str]:
    """A line for each row but the clocks: status, value and whatever else the cell holds."""
    lines = []
    for row in results.to_pandas().to_dict("records"):
        if row["metric"].startswith("time"):
            continue
        who = f"{row['explainer']} {shown(row['target'])}#{row['occurrence']} {row['metric']}"
        value = [] if is_missing(row["value"]) else [shown(row["value"])]
        more = [f"{name}={shown(row[name])}" for name in FURTHER if not is_missing(row[name])]
        lines.append(" ".join([f"{who}: {row['status']}", *value, *more]))
    return lines


def is_missing(value: Any) -> bool:
    """None, or the NaN that a table has in its place."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def table_lines(table: Any) -> list[str]:
    """The rows of a data frame."""
    records = json.loads(table.reset_index().to_json(orient="split", double_precision=15))
    kept = [
        number for number, name in enumerate(records["columns"]) if not LEFT_OUT.search(str(name))
    ]
    lines = [" ".join(str(records["columns"][number]) for number in kept)]
    for row in table.reset_index().itertuples(index=False):
        cells = [
            row[number].item() if hasattr(row[number], "item") else row[number] for number in kept
        ]
        if not any(isinstance(cell, str) and cell.startswith("time") for cell in cells):
            lines.append(" ".join("-" if is_missing(cell) else shown(cell) for cell in cells))
    return lines


def score_line(name: str, score: Tensor | None) -> str:
    """Scores in one line: how many, their sum, the first ones, and a digest of all."""
    if score is None:
        return f"  {name}: none"
    digest = hashlib.sha256(score.detach().contiguous().numpy().tobytes()).hexdigest()[:16]
    numbers = score.flatten().tolist()
    first = shown(numbers[:4])
    return (
        f"  {name}: {tuple(score.shape)} sum={math.fsum(numbers)!r} first={first} digest={digest}"
    )


# --- explanations -------------------------------------------------------------------------------


def all_explainers() -> dict[str, Any]:
    """Every registered explainer, the learned ones with a few epochs, and a user's function."""
    parameters: dict[str, dict[str, Any]] = {
        "gnn_explainer": {"epochs": 6},
        "graphmask": {"epochs": 3},
        "integrated_gradients": {"steps": 6},
        "pyg:GNNExplainer": {"options": {"epochs": 3}},
        "pyg:GraphMaskExplainer": {"options": {"epochs": 2}},
        "pyg:PGExplainer": {"options": {"epochs": 2}},
        "pyg:CaptumExplainer": {"options": {"attribution_method": "Saliency"}},
    }
    named = {
        name: partial(gg.find_explainer, name, **parameters.get(name, {}))
        for name in gg.explainer_names()
    }
    function = partial(
        gg.CallableExplainer, score_by_value, deterministic=True, scope="computation graph"
    )
    return {**named, "function": function}


def some_explainers() -> dict[str, Any]:
    """One that is exact, one that is learned, and chance."""
    return {
        "lrp": gg.LRP(),
        "gnn_explainer": gg.GNNExplainer(epochs=5),
        "random": gg.RandomExplainer(),
    }


def model_of(kind: str, **options: Any) -> tuple[Any, list[Any]]:
    """A model and its targets."""
    make, targets = MODELS[kind]
    return make(**options), targets


def explanations(kind: str) -> Iterator[str]:
    """Scores of every explainer; a target named twice is explained twice."""
    model, targets = model_of(kind)
    yield f"prediction: {shown(model.pred_continuous(targets))}"
    for name, make in all_explainers().items():
        yield name
        explainer = make()
        try:
            xs = explainer.explain(model, [*targets, targets[0]], seed=7)
        except gg.GraphgaugeError as error:  # an explainer that this network or task does not suit
            yield f"  {type(error).__name__}"
            continue
        for x in xs:
            yield f" target {shown(x.target)}#{x.occurrence} network={x.network}"
            yield f"  nodes={shown(x.nodes)} edges={shown(x.edges)}"
            yield score_line("features", x.feature_score)
            yield score_line("edges", x.edge_score)


def models(kind: str) -> Iterator[str]:
    """Predictions, computation graphs, and how the network is treated."""
    model, targets = model_of(kind)
    yield (
        f"discrete: {shown(model.pred_discrete(targets))}"
        if "classification" in kind
        else "discrete: none"
    )
    yield f"continuous: {shown(model.pred_continuous(targets))}"
    yield f"hidden: {shown(model.embed(targets))}"
    for graph in model.computation_graphs(targets):
        yield f"graph {shown(graph.target)}: nodes={shown(graph.nodes)} edges={shown(graph.edges)}"
    yield from flat_lines(model.record())
    yield f"sample: {shown(gg.sample_targets(model, 4, seed=3))}"
    labels = {"classification": 1}.get(kind.partition("_")[2])
    if labels is not None:
        for x in gg.Saliency().explain(model, targets, label=labels, seed=1):
            yield score_line(f"saliency of class {labels}", x.feature_score)


# --- results ------------------------------------------------------------------------------------


def rows(kind: str, preset: str, removal: str) -> list[str]:
    """The rows of some explainers under a preset and a way to remove edges."""
    model, targets = model_of(kind)
    evaluator = gg.Evaluator(
        model, preset=preset, seed=1, edge_removal=removal, cap=12, task=kind, **SMALL
    )
    return row_lines(evaluator.compare(some_explainers(), targets[:2]))


def rows_of_all(preset: str) -> list[str]:
    """Every explainer that runs on the node classification model."""
    model, targets = model_of("node_classification")
    named = {
        name: make()
        for name, make in all_explainers().items()
        if name not in ("pyg:AttentionExplainer", "pyg:PGExplainer")
    }
    evaluator = gg.Evaluator(model, preset=preset, cap=12, **{**QUICK, "calls": 3})
    return row_lines(evaluator.compare(named, targets[:2]))


#: settings that change what is measured, each beside the paper's
VARIATIONS: dict[str, dict[str, Any]] = {
    "extras": {"extras": True, "top": 3},
    "extras of a share, magnitude": {"extras": True, "top": 0.4, "order": "magnitude"},
    "undirected": {"removal_unit": "undirected"},
    "undirected, drop, induced": {
        "removal_unit": "undirected",
        "edge_removal": "drop",
        "edge_scope": "induced",
    },
    "edges only, no early stop": {"sides": "edges", "early_stop": "none", "tau": None},
    "features only, betting": {"sides": "features", "early_stop": "betting"},
    "draws, medoids, sum": {"draws": 3, "medoids": 2, "pooling": "sum"},
    "blocks": {"random_orders": "blocks", "pooling": "mean"},
    "binomial": {"stability": "binomial"},
    "no stability, no twins": {"stability": "none", "twins": False},
    "cap 2, tolerance": {"cap": 2, "tolerance": 1e-2, "flip": 0.05},
}
VALUE_VARIATIONS = {
    **{
        f"direction {name}": {"direction": name}
        for name in ("any", "down", "up", "towards_reference")
    },
    **{f"curve {name}": {"regression_curve": name} for name in ("towards", "abs")},
    "extras": {"extras": True, "top": 3},
}


def variations(kind: str) -> Iterator[str]:
    """One setting after the other."""
    model, targets = model_of(kind)
    named = {"input_x_gradient": gg.InputXGradient(), "gnn_explainer": gg.GNNExplainer(epochs=3)}
    for name, changed in (VALUE_VARIATIONS if "regression" in kind else VARIATIONS).items():
        own = model_of(kind, edge_scope="induced")[0] if "edge_scope" in changed else model
        evaluator = gg.Evaluator(
            own, seed=2, seed_scope=("task", "network"), **{**QUICK, **changed}
        )
        yield f"--- {name}: settings {evaluator.settings.digest}"
        yield f"metrics {' '.join(evaluator.metric_names)}"
        yield from row_lines(evaluator.compare(named, targets[:2]))


@dataclass(frozen=True)
class SteepestEdit(Metric[Curves]):
    """A metric of one's own: the most that the output loses by one of the first edits."""

    name = "steepest_edit"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = True
    chance = None
    needs = "curves"
    top: int = 3

    def __call__(self, curves: Curves) -> Tensor:
        heights = torch.cat([curves.start[:, None], curves.curve], 1).double()
        counts = torch.arange(1, heights.size(1)) <= curves.length.clamp(max=self.top)[:, None]
        loss = torch.where(counts, -heights.diff(dim=1), -torch.inf).amax(1)
        return mean_over_cases(loss, curves.target, curves.num_targets)


def own_metrics() -> Iterator[str]:
    """A user's metrics, a known truth, a chosen class, explanations from elsewhere, and stories."""
    model, targets = model_of("node_classification")
    chosen = (
        SteepestEdit(),
        gg.metrics.Sparsity(),
        gg.metrics.FidelityPlus(),
        gg.metrics.Unfaithfulness(),
    )
    in_motif = torch.arange(model.source.num_edges) % 3 == 0
    truth = {
        "edge": in_motif,
        "node": torch.arange(14) % 4 == 1,
        "feature": torch.tensor([True, False, True, False, False]),
    }
    evaluator = gg.Evaluator(model, metrics=chosen, **QUICK)
    results = evaluator.compare(some_explainers(), [*targets, targets[0]], truth=truth)
    yield from row_lines(results)
    for metric in ("edge_ec", "feature_pertinence", "edge_pertinence"):
        yield str(results.explain({"explainer": "lrp", "target": targets[1], "metric": metric}))
    yield "--- class 1"
    yield from row_lines(evaluator.compare([gg.Saliency(), gg.RandomExplainer()], targets, label=1))
    yield "--- explanations that were given"
    xs = gg.InputXGradient().explain(model, targets, seed=3)
    yield from row_lines(evaluator.evaluate(xs, truth={"edge": in_motif}))
    yield from row_lines(evaluator.evaluate(xs))  # what they carry is not measured again
    for x in xs:
        yield from flat_lines(x.metrics.get("evaluation", {}), f"carried {x.target}")


def tables() -> Iterator[str]:
    """Tables of results, of one network and of two, and what is saved."""
    model, targets = model_of("node_classification")
    results = gg.Evaluator(model, name="first", extras=True, **QUICK).compare(
        some_explainers(), targets
    )
    other = gg.Evaluator(model, name="second", seed=4, extras=True, **QUICK).compare(
        some_explainers(), targets
    )
    yield f"identity: {shown(sorted(results.made['identity'].items()))}"
    for name, table in {
        "summary": results.summary(),
        "headline": results.headline(),
        "flips": results.flip_curve("edge").iloc[:12],
        "flips of features": results.flip_curve("feature").iloc[:5],
        "fidelity": results.fidelity_curve("edge", "plus"),
        "fidelity minus": results.fidelity_curve("feature", "minus"),
        "pareto": results.pareto("feature_pertinence", "edge_ec"),
        "two networks": gg.concat([results, other]).summary(),
        "sum": (results + other).headline(),
    }.items():
        yield f"--- {name}"
        yield from table_lines(table)
    with tempfile.TemporaryDirectory() as folder:
        results.save(folder)
        kept = gg.Results.load(folder)
        yield f"--- read again: {kept.rows == results.rows}"
        yield shown(sorted(path.name for path in Path(folder).iterdir()))
        yield from flat_lines(json.loads((Path(folder) / "settings.json").read_text()), "settings")
        yield from flat_lines(json.loads((Path(folder) / "made.json").read_text()), "made")
        yield from flat_lines(json.loads((Path(folder) / "examples.json").read_text()), "examples")


# --- judging and telling ------------------------------------------------------------------------


def judging(kind: str) -> Iterator[str]:
    """Verdicts, recommendation, findings, checklist."""
    from graphgauge import guidelines

    model, _ = model_of(kind)
    targets = gg.sample_targets(model, 12)
    results = gg.Evaluator(model, task=kind, **QUICK).compare(some_explainers(), targets)
    for wanted in (
        guidelines.Requirements(),
        guidelines.Requirements(
            limits={"feature_ec": 3, "edge_pertinence": 0.4}, stakes="high-stakes", focus="edge"
        ),
    ):
        yield "--- requirements"
        yield from flat_lines(wanted.record(), "requirements")
        yield from flat_lines(
            [verdict.record() for verdict in guidelines.verdicts(results, wanted)], "verdict"
        )
        yield from flat_lines(
            [own.record() for own in guidelines.recommend(results, wanted)], "recommendation"
        )
        yield from flat_lines(
            [finding.record() for finding in guidelines.diagnose(results, wanted)], "finding"
        )


def consultation() -> Iterator[str]:
    """What the shipped benchmark and the paper say of each kind of task."""
    from graphgauge import guidelines

    for kind in guidelines.TASK_KINDS:
        wanted = guidelines.Requirements(num_features=20)
        found = guidelines.consult(kind, wanted)
        yield from flat_lines(found.record(), kind)
        yield guidelines.requirements_document(found, wanted)


def report(kind: str) -> Iterator[str]:
    """The data of a report."""
    model, targets = model_of(kind)
    results = gg.Evaluator(model, task=kind, **QUICK).compare(some_explainers(), targets)
    with tempfile.TemporaryDirectory() as folder:
        content = json.loads(
            results.report(language="de").save(Path(folder) / "report.json").read_text()
        )
        for name in ("provenance", "settings"):
            content.pop(name)
        yield from flat_lines(content)


NAMES = {
    "features": ["income", "age", "debt", "terms", "score"],
    "classes": ["low", "mid", "high"],
    "decision": "credit",
}


def narrative(kind: str) -> Iterator[str]:
    """Sentences in five languages for three audiences, with measured quality."""
    model, targets = model_of(kind)
    names = (
        NAMES
        if "classification" in kind and "link" not in kind
        else {"features": NAMES["features"]}
    )
    evaluator = gg.Evaluator(model, **QUICK)
    xs = gg.InputXGradient().explain(model, targets[:2], seed=1) + gg.GNNExplainer(
        epochs=4
    ).explain(model, targets[2:], seed=1)
    evaluator.evaluate(xs)
    for language in LANGUAGES:
        for audience in AUDIENCES:
            for x in xs if audience == "expert" else xs[:1]:
                yield f"--- {language} {audience} {shown(x.target)}"
                try:
                    text = evaluator.get_textual_explanation(
                        x, names=names, language=language, audience=audience
                    )
                except gg.GraphgaugeError as error:
                    text = type(error).__name__
                yield from text.splitlines()


# --- the command line ---------------------------------------------------------------------------


def run_command(*arguments: Any) -> Any:
    """A command of graphgauge, in this process."""
    from typer.testing import CliRunner

    from graphgauge.cli.main import app

    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], catch_exceptions=False
    )


def json_lines(name: str, *arguments: Any) -> Iterator[str]:
    """The exit code and the JSON of a command."""
    done = run_command(*arguments, "--json")
    yield f"--- {name}: exit code {done.exit_code}"
    yield from flat_lines(json.loads(done.stdout))


@contextlib.contextmanager
def project_folder(**changes: Any) -> Iterator[tuple[Path, Path]]:
    """A folder with a project, and its file."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        yield folder, write_project(folder, **changes)


def command_line() -> Iterator[str]:
    """consult, evaluate, check, report, explain and analyse."""
    yield from json_lines("consult", "consult", "node-classification", "--features", 5)
    with project_folder() as (folder, project):
        yield from json_lines("evaluate", "evaluate", project, "--output", folder / "run", "-q")
        yield from row_lines(gg.Results.load(folder / "run"))
        yield from json_lines("check", "check", folder / "run")
        run_command("report", folder / "run", "--output", folder / "r.json")
        report = json.loads((folder / "r.json").read_text())
        yield from flat_lines(
            {
                name: report[name]
                for name in ("answer", "facts", "columns", "overall", "requirements")
            },
            "report",
        )
        yield from json_lines("explain", "explain", project, "--target", 3)
        yield run_command(
            "explain", project, "--target", 4, "--language", "fr", "--audience", "internal"
        ).stdout
        yield from sorted(
            path.relative_to(folder).as_posix() for path in (folder / "run").iterdir()
        )
        run_command("analyse", folder / "run", "--draws", 50, "--output", folder / "analysis")
        for path in sorted((folder / "analysis").glob("*.csv")):
            yield f"--- {path.name}"
            yield from (line for line in path.read_text().splitlines() if "time" not in line)


def monitoring() -> Iterator[str]:
    """A baseline and two runs, the second of other weights, and what is due."""
    from safetensors.torch import load_file, save_file

    with project_folder() as (folder, project):
        store = ["--store", folder / "monitor.sqlite"]
        yield from json_lines(
            "baseline",
            "monitor",
            "baseline",
            project,
            *store,
            "--at",
            "2026-01-05",
            "--per-run",
            8,
            "--explainer",
            "saliency",
            "-q",
        )
        yield from json_lines(
            "run", "monitor", "run", project, *store, "--at", "2026-01-12", "--no-pictures", "-q"
        )
        weights = load_file(folder / "weights.safetensors")
        save_file(
            {name: value * 1.2 for name, value in weights.items()}, folder / "weights.safetensors"
        )
        yield from json_lines(
            "other weights",
            "monitor",
            "run",
            project,
            *store,
            "--at",
            "2026-01-19",
            "--no-pictures",
            "-q",
        )
        yield from json_lines("status", "monitor", "status", *store, "--at", "2026-01-20")
        for run in gg.monitor.Monitor(folder / "monitor.sqlite").history().runs:
            yield from flat_lines(
                {name: value for name, value in run.body.items() if name != "triggers"}, "stored"
            )


def validation() -> Iterator[str]:
    """The decision file of a validation, and the rows of both measurements."""
    settings = {
        "trials": [5, 20],
        "twin_trials": 8,
        "permutations": 4,
        "timed": 0,
        "cap": 10,
        "calls": 4,
    }
    with project_folder(settings=settings) as (folder, project):
        done = run_command("validate", project, "--output", folder / "v", "--json")
        yield f"--- validate: exit code {done.exit_code}"
        for name, text in (
            ("printed", done.stdout),
            ("decision", (folder / "v" / "decision.json").read_text()),
        ):
            # the digests of a decision and of its rows speak of clocks, too
            yield from (
                line
                for line in flat_lines(json.loads(text), name)
                if not re.search(r"\.(rows|digest): ", f".{line}")
            )
        yield from row_lines(gg.Results.load(folder / "v"))
        yield from row_lines(gg.Results.load(folder / "v" / "production"))


EXPERIMENT = {
    "name": "golden",
    "tasks": ["ba-shapes-node", "ba-shapes-link"],
    "models": ["gcn", "gat"],
    "explainers": [
        "saliency",
        {"name": "gnn_explainer", "parameters": {"epochs": 2}},
        "random",
    ],
    "settings": {
        "cap": 6,
        "trials": [3, 6],
        "twin_trials": 3,
        "calls": 3,
        "permutations": 2,
        "timed": 0,
    },
    "metrics": ["sparsity"],
    "targets": {"number": 3},
    "block": 2,
}


def benchmark() -> Iterator[str]:
    """The stored rows of a small benchmark run on shipped networks of BA-Shapes."""
    import yaml

    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "golden.yaml").write_text(yaml.safe_dump(EXPERIMENT, sort_keys=False))
        asked = [
            "benchmark",
            folder / "golden.yaml",
            "--engine",
            "inline",
            "--folder",
            folder / "run",
        ]
        yield from json_lines("plan", *asked, "--dry-run")
        yield from json_lines("benchmark", *asked)
        results = gg.Results.load(folder / "run")
        names = ("task", "model", "explainer", "target", "occurrence", "metric")
        records = results.to_pandas().to_dict("records")
        for row in sorted(records, key=lambda row: [str(row[name]) for name in names]):
            if not row["metric"].startswith("time"):
                value = "" if is_missing(row["value"]) else f" {shown(row['value'])}"
                who = " ".join(shown(row[name]) for name in names)
                yield f"{who}: {row['status']}{value} settings={row['settings']} seed={row['seed']}"
        for name, table in {
            "table 1": gg.benchmark.table_1(results),
            "summary": gg.benchmark.summary_table(results),
        }.items():
            yield f"--- {name}"
            yield from (
                table_lines(table) if hasattr(table, "itertuples") else str(table).splitlines()
            )


# --- files of earlier versions --------------------------------------------------------------------

STORED = Path(__file__).parent / "stored"


def stored() -> Iterator[str]:
    """What is read from files that an earlier version wrote (see `make_stored.py`)."""
    with tempfile.TemporaryDirectory() as text:  # whoever reads a database writes beside it
        yield from stored_in(Path(shutil.copytree(STORED, Path(text) / "stored")))


def stored_in(folder: Path) -> Iterator[str]:
    """What is read from a copy of these files."""
    results = gg.Results.load(folder / "results")
    yield "--- results"
    yield from row_lines(results)
    yield from flat_lines(results.settings.record(), "settings")
    x = gg.Xplanation.load(folder / "explanation.safetensors")
    yield f"--- explanation of {x.target} by {gg.find_explainer(x.explainer, **x.params)!r}"
    yield score_line("features", x.feature_score)
    yield score_line("edges", x.edge_score)
    model, _ = model_of("link_regression")
    settings = {**QUICK, "cap": 5, "flip": 0.2, "flip_unit": "sd"}
    evaluator = gg.Evaluator(model, task="links", name="gcn", extras=True, **settings)
    yield from row_lines(evaluator.evaluate([x]))  # numbers that it carries are not measured again
    yield from json_lines("check of a run", "check", folder / "run")
    yield "--- decision"
    decision = gg.lifecycle.Decision.read(folder / "validation")
    yield f"{decision.label}, digest {decision.digest}, rows {decision.rows}"
    yield from row_lines(gg.Results.load(folder / "validation"))
    yield from row_lines(gg.Results.load(folder / "validation" / "production"))
    monitor = ["--store", folder / "monitor.sqlite", "--at", "2026-01-20"]
    yield from json_lines("monitoring", "monitor", "status", *monitor)
    yield "--- benchmark"
    yield from row_lines(gg.Results.load(folder / "benchmark"))
    done = run_command("audit", "verify", folder / "audit.sqlite")
    yield f"--- audit: exit code {done.exit_code}"
    done = run_command("audit", "export", folder / "audit.sqlite")
    for line in done.stdout.splitlines():
        yield hashlib.sha256(line.encode()).hexdigest()
    project = gg.Project.read(folder / "project.yaml")
    yield f"--- project: {project.evaluator().settings.digest}"
    yield from flat_lines(project.form.model_dump(mode="json"), "project")


#: the name of each file without its suffix, and what its lines are
COMMANDS = """
    demo consult init doctor evaluate explain report check validate sign serve
    audit,verify audit,export monitor,baseline monitor,run monitor,status monitor,trigger
    monitor,settle monitor,page dashboard documents benchmark analyse datasets train explainers
""".split()


def help_texts() -> Iterator[str]:
    """What every command says of itself and its options; how lines are broken does not count."""
    for command in COMMANDS:
        words = command.split(",")
        yield f"--- {' '.join(words)}"
        text = run_command(*words, "--help").stdout
        paragraphs = re.sub(r"\n {11,}", " ", text)  # an option's text goes on further to the right
        yield from (re.sub(r"\s+", " ", line).strip() for line in paragraphs.splitlines())


CASES: dict[str, Callable[[], Any]] = {
    **{f"models_{kind}": partial(models, kind) for kind in MODELS},
    **{f"explanations_{kind}": partial(explanations, kind) for kind in MODELS},
    **{
        f"rows_{kind}_{preset}_{removal}": partial(rows, kind, preset, removal)
        for kind in MODELS
        for preset in ("paper", "calibrated")
        for removal in ("mask", "drop")
    },
    **{
        f"rows_of_all_explainers_{preset}": partial(rows_of_all, preset)
        for preset in ("paper", "calibrated")
    },
    **{
        f"settings_{kind}": partial(variations, kind)
        for kind in ("node_classification", "link_classification", "node_regression")
    },
    "own_metrics": own_metrics,
    "tables": tables,
    **{
        f"judging_{kind}": partial(judging, kind)
        for kind in ("node_classification", "node_regression")
    },
    "consultation": consultation,
    **{
        f"report_{kind}": partial(report, kind)
        for kind in ("node_classification", "link_regression")
    },
    **{f"narrative_{kind}": partial(narrative, kind) for kind in MODELS},
    "command_line": command_line,
    "help_texts": help_texts,
    "monitoring": monitoring,
    "validation": validation,
    "benchmark": benchmark,
    "stored": stored,
}


def compute(name: str) -> str:
    """The text of a case; torch computes in one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return (
            "\n".join(line.rstrip() for text in CASES[name]() for line in text.split("\n")) + "\n"
        )
    finally:
        torch.set_num_threads(threads)
