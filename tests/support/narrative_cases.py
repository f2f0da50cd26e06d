"""Explanations with known scores, names in five languages, and snapshots, for several files of
tests.
"""

import os
from functools import cache
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_add_pool

import graphgauge as gg

LANGUAGES = ["en", "it", "de", "fr", "es"]
AUDIENCES = ["expert", "internal", "affected person"]
SNAPSHOTS = Path(__file__).parent.parent / "narrative" / "snapshots"
SIGNED, UNSIGNED = "input_x_gradient", "gnn_explainer"
#: a path of six nodes, each edge both ways
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]])

ID_NAMES = {0: "A-17", 1: "B-3", 2: "C-8", 3: "D-1"}
WORDS = {
    "en": {
        "features": ["income", "age", "debt", "savings"],
        "classes": ["approved", "denied"],
        "unit": "thousand euros",
        "node": ("account", "accounts"),
        "graph": ("household", "households"),
        "decision": "your loan application",
        "role": "A clerk looks at it before deciding.",
        "groups": {("account with prior defaults", "accounts with prior defaults"): [1, 3, 2]},
        "not_used": ["nationality", "gender"],
    },
    "it": {
        "features": ["reddito", "età", "debiti", "risparmi"],
        "classes": ["approvato", "rifiutato"],
        "unit": "migliaia di euro",
        "node": ("conto", "conti"),
        "graph": ("nucleo familiare", "nuclei familiari"),
        "decision": "la Sua richiesta di prestito",
        "role": "Un operatore lo esamina prima di decidere.",
        "groups": {
            ("conto con insolvenze precedenti", "conti con insolvenze precedenti"): [1, 3, 2]
        },
        "not_used": ["nazionalità", "sesso"],
    },
    "de": {
        "features": ["Einkommen", "Alter", "Schulden", "Ersparnisse"],
        "classes": ["bewilligt", "abgelehnt"],
        "unit": "Tausend Euro",
        "node": ("Konto", "Konten"),
        "graph": ("Haushalt", "Haushalte"),
        "decision": "Ihr Kreditantrag",
        "role": "Vor der Entscheidung sieht sich eine Fachkraft das Ergebnis an.",
        "groups": {
            ("Konto mit früheren Zahlungsausfällen", "Konten mit früheren Zahlungsausfällen"): [
                1,
                3,
                2,
            ]
        },
        "not_used": ["Staatsangehörigkeit", "Geschlecht"],
    },
    "fr": {
        "features": ["revenu", "âge", "dettes", "épargne"],
        "classes": ["accordé", "refusé"],
        "unit": "milliers d’euros",
        "node": ("compte", "comptes"),
        "graph": ("foyer", "foyers"),
        "decision": "votre demande de prêt",
        "role": "Un conseiller l’examine avant de décider.",
        "groups": {
            ("compte avec des impayés antérieurs", "comptes avec des impayés antérieurs"): [1, 3, 2]
        },
        "not_used": ["nationalité", "sexe"],
    },
    "es": {
        "features": ["ingresos", "edad", "deudas", "ahorros"],
        "classes": ["aprobado", "denegado"],
        "unit": "miles de euros",
        "node": ("cuenta", "cuentas"),
        "graph": ("hogar", "hogares"),
        "decision": "su solicitud de préstamo",
        "role": "Una persona lo revisa antes de decidir.",
        "groups": {("cuenta con impagos anteriores", "cuentas con impagos anteriores"): [1, 3, 2]},
        "not_used": ["nacionalidad", "sexo"],
    },
}


class Small(torch.nn.Module):
    def __init__(self, out, level):
        super().__init__()
        self.conv, self.level = GCNConv(4, out), level

    def forward(self, x, edge_index, edge_label_index=None, batch=None):
        h = self.conv(x, edge_index)
        if self.level == "link":
            return h[edge_label_index[0]] + h[edge_label_index[1]]
        return global_add_pool(h, batch) if self.level == "graph" else h


@cache
def evaluator(level="node", task="classification"):
    torch.manual_seed(0)
    data = Data(x=torch.randn(6, 4), edge_index=EDGES)
    wrapper = getattr(gg, f"{level.capitalize()}{task.capitalize()}Model")
    net = Small(2 if task == "classification" else 1, level)
    options = {"output": "logits"} if task == "classification" else {}
    return gg.Evaluator(wrapper(net, [data, data] if level == "graph" else data, **options))


TARGETS = {"node": 0, "link": (0, 3), "graph": 1}
FEATURES = torch.zeros(6, 4)
FEATURES[0] = torch.tensor([-0.21, 0.0, 0.7312, 0.052])
FEATURES[1] = torch.tensor([0.0, 0.0, 0.25, -0.004])
FEATURES[3] = torch.tensor([0.11, 0.0, -0.3, 0.0])
EDGE_SCORES = torch.tensor([0.01, 0.42, 0.0, -0.15, 0.0, 0.33, 0.0, 0.005, 0.0, 0.0])


def measured(**counts):
    """Metrics as an evaluator leaves them; ``feature=(4, True)`` is an EC of 4 edits after which
    the prediction changed.
    """
    values = {f"{side}_ec": float(count) for side, (count, _) in counts.items()}
    cells = {
        f"{side}_ec": {"value": float(count), "flipped": flipped}
        for side, (count, flipped) in counts.items()
    }
    known = {
        "feature_stability": 0.98765,
        "edge_stability": 1.0,
        "feature_pertinence": 0.512,
        "edge_pertinence": None,
    }
    return {**known, **values, "evaluation": {"key": "", "cells": cells}}


def explanation(level="node", task="classification", explainer=SIGNED, **changes):
    is_signed = explainer == SIGNED
    prediction = (
        torch.tensor([0.1267, 0.8733]) if task == "classification" else torch.tensor(1234.56)
    )
    given = {
        "target": TARGETS[level],
        "nodes": torch.arange(6),
        "edges": torch.arange(10),
        "num_nodes": 6,
        "num_edges": 10,
        "feature_score": FEATURES if is_signed else FEATURES.abs(),
        "edge_score": EDGE_SCORES if is_signed else EDGE_SCORES.abs(),
        "level": level,
        "prediction": prediction,
        "explainer": explainer,
        "metrics": measured(feature=(2, True), edge=(5, False)),
    }
    return gg.Xplanation(**{**given, **changes})


QUALITY = {
    "feature_pertinence": (0.512, 0.6, False),
    "feature_stability": (0.988, 0.8, True),
    "time": (7.25, 5.0, False),
}


def names(language="en", **changes):
    return gg.Names(**{**WORDS[language], "nodes": ID_NAMES, **changes})


def told(
    x=None, *, level="node", task="classification", explainer=SIGNED, language="en", **options
):
    found = explanation(level, task, explainer) if x is None else x
    given = {
        "names": names(language) if "names" not in options else None,
        "quality": QUALITY,
        **options,
    }
    return evaluator(level, task).get_textual_explanation(found, language=language, **given)


def check_snapshot(name, sections):
    """Compare with the stored text; GRAPHGAUGE_WRITE_SNAPSHOTS=1 stores it instead."""
    text = "\n\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items()) + "\n"
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("GRAPHGAUGE_WRITE_SNAPSHOTS") == "1":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
