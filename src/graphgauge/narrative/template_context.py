"""Facts in the words of one language: the names that templates can use.

This file makes every name that a template can use, from the facts alone: labels of things without a
name ("feature 12"), counted things ("3 accounts"), reasons for what is missing, and functions:

    number, percent, listing, plural    as the language writes them
    sentence                            begins with a capital
    question                            which class is explained, if it is not the predicted one
    evidence("features", true)          what speaks for and against that class
    nodes(3)                            "3 accounts"
    labels, scored                      items as a list, without or with their scores
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphgauge.narrative.facts import Facts
from graphgauge.narrative.language import Language

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class TemplateContext:
    """The facts of one explanation, and the language of the text."""

    facts: Facts
    language: Language

    def context(self) -> Facts:
        """Return everything that a template can use, by name."""
        facts, language = self.facts, self.language
        plain = "level task signed order top_k redacted decision role not_used".split()
        return {
            **{name: facts[name] for name in plain},
            "explainer": facts["explainer"] or language.phrase("labels", "explainer"),
            "target": self.target(),
            "prediction": self.prediction(),
            "question": self.question(),
            "evidence": self.evidence,
            "features": self.side("features", self.feature),
            "edges": self.side("edges", self.edge),
            "groups": [self.group(group) for group in facts["edges"]["groups"]],
            "change": facts["change"],
            "metrics": [self.metric(name, value) for name, value in facts["metrics"].items()],
            "quality": self.quality(),
            "important_neighbours": self.important_neighbours(),
            "number": language.number,
            "percent": language.percent,
            "listing": language.listing,
            "plural": language.plural,
            "sentence": lambda text: text[:1].upper() + text[1:],
            "nodes": self.nodes,
            "labels": lambda items: language.listing(item["label"] for item in items),
            "scored": lambda items: language.listing(
                f"{item['label']} ({language.number(item['score'])})" for item in items
            ),
        }

    # --- parts ------------------------------------------------------------------------------------

    def target(self) -> str:
        """The node, link or graph that was explained."""
        level, target = self.facts["level"], self.facts["target"]
        labels = [
            self.labelled(number, name)
            for number, name in zip(target["ids"], target["names"], strict=True)
        ]
        if level == "link":
            return (
                self.say("link", first=labels[0], second=labels[1])
                if labels
                else self.say("hidden_link")
            )
        return labels[0]

    def prediction(self) -> Facts:
        """The class and its probability, or the value with its unit.

        ``text`` has quotation marks around a class, ``bare`` has none.
        """
        prediction = self.facts["prediction"]
        if prediction["status"] != "ok":
            return {"known": False, "text": "", "bare": "", "probability": None}
        if "value" in prediction:
            text = f"{self.language.number(prediction['value'])}\u00a0{prediction['unit']}".rstrip(
                "\u00a0"
            )
            return {"known": True, "text": text, "bare": text, "probability": None}
        bare = self.class_name(prediction)
        return {
            "known": True,
            "text": self.language.quoted(bare),
            "bare": bare,
            "probability": prediction["probability"],
        }

    def class_name(self, fact: Facts) -> str:
        """A class by its name or number, or a label that a target has or lacks."""
        if fact.get("label") is not None:
            return self.say(
                "label" if fact["class"] else "no_label", name=fact["name"] or str(fact["label"])
            )
        return fact["name"] or self.say("class", id=str(fact["class"]))

    def question(self) -> str:
        """Say which class is explained; '' if it is the predicted one.

        Facts from an earlier version do not hold it.
        """
        chosen = self.facts.get("chosen")
        if chosen is None:
            return ""
        name, probability = (
            self.language.quoted(self.class_name(chosen)),
            self.language.percent(chosen["probability"]),
        )
        return self.language.phrase("chosen", "question", name=name, probability=probability)

    def evidence(self, side: str, with_scores: bool) -> str:
        """Say what speaks for and against the explained class, if it is not the predicted one.

        ``side`` is "features" or "edges".
        """
        items_of_side = self.side(side, self.feature if side == "features" else self.edge)
        if items_of_side["gap"]:
            return str(items_of_side["gap"])
        name, sentences = self.language.quoted(self.class_name(self.facts["chosen"])), []
        for part, ending in (
            ("top", "for" if self.facts["signed"] else "unsigned"),
            ("opposing", "against"),
        ):
            items = [
                f"{item['label']} ({self.language.number(item['score'])})"
                if with_scores
                else item["label"]
                for item in items_of_side[part]
            ]
            if items and (part == "top" or self.facts["signed"]):
                sentences.append(
                    self.language.phrase(
                        "chosen", f"{side}_{ending}", name=name, items=self.language.listing(items)
                    )
                )
        return " ".join(sentences)

    def side(self, side: str, to_item: "Callable[[Facts], Facts]") -> Facts:
        """Features or edges, each with its label; ``gap`` says why there are none."""
        fact = self.facts[side]
        gap = "" if fact["status"] == "ok" else self.language.phrase("gaps", side, fact["status"])
        lists = {part: [to_item(item) for item in fact[part]] for part in ("top", "opposing")}
        return {**fact, **lists, "gap": gap, "is_ok": not gap}

    def feature(self, item: Facts) -> Facts:
        """A feature with its label: its name, and whose it is if not the target's."""
        name = item["name"] or self.say("feature", id=str(item["index"]))
        owner = item["of"]
        return {
            **item,
            "name": name,
            "label": self.owned(name, owner),
            "is_own": owner in ("target", "nodes"),
        }

    def owned(self, name: str, owner: str) -> str:
        """Name a feature and whose it is.

        Texts for affected persons avoid "neighbours", a word with another meaning to them.
        """
        if owner in ("first", "second"):
            return self.say("of_end", name=name, end=self.end(owner))
        return self.say(
            "of_others" if owner == "neighbours" and self.facts["redacted"] else f"of_{owner}",
            name=name,
        )

    def end(self, which: str) -> str:
        """One end of a link target; without a name where that is hidden."""
        target, place = self.facts["target"], ("first", "second").index(which)
        return (
            self.labelled(target["ids"][place], target["names"][place])
            if target["ids"]
            else self.say(f"hidden_{which}")
        )

    def edge(self, item: Facts) -> Facts:
        """An edge with its label, and the labels of its ends that are not the target."""
        ends = {way: self.node(item[way]) for way in ("source", "destination")}
        label = (
            self.say("related", relation=item["relation"], **ends)
            if item["relation"]
            else self.say("edge", **ends)
        )
        return {**item, **ends, "label": label, "others": [ends[way] for way in item["other"]]}

    def group(self, item: Facts) -> Facts:
        """A group of nodes with its label: "3 accounts with prior defaults"."""
        return {**item, "label": self.language.counted(item["count"], item["one"], item["other"])}

    def metric(self, name: str, value: float) -> Facts:
        """A measured number with the metric's name."""
        return {"label": self.metric_name(name), "score": value}

    def quality(self) -> Facts:
        """The verdict, and a phrase for each failure.

        Facts from an earlier version do not say whether the verdict is the method's.
        """
        verdict = {"at_validation": False, **self.facts["quality"]}
        return {**verdict, "failures": [self.failure(item) for item in verdict["failures"]]}

    def failure(self, item: Facts) -> str:
        """One missed threshold."""
        number, way = self.language.number, "at_least" if item["at_least"] else "at_most"
        values = {
            "metric": self.metric_name(item["metric"]),
            "threshold": number(item["threshold"]),
        }
        if item["value"] is None:
            return self.language.phrase("failures", f"none_{way}", **values)
        return self.language.phrase("failures", way, value=number(item["value"]), **values)

    def important_neighbours(self) -> list[str]:
        """The nodes that the strongest edges lead to; groups where nodes are not named."""
        if self.facts["redacted"]:
            return [self.group(group)["label"] for group in self.facts["edges"]["groups"]]
        nodes = [
            label for item in self.facts["edges"]["top"] for label in self.edge(item)["others"]
        ]
        return list(dict.fromkeys(nodes))

    # --- words ------------------------------------------------------------------------------------

    def say(self, label: str, **values: str) -> str:
        """A label of this language."""
        return self.language.phrase("labels", label, **values)

    def noun(self, kind: str) -> tuple[str, str]:
        """Singular and plural of a kind: the user's words, or else the language's."""
        one, other = self.facts["nouns"][kind]
        own_one, own_other = self.language.phrases["nouns"][kind]
        return (one, other) if other else (own_one, own_other)

    def nodes(self, count: int) -> str:
        """Count nodes in the user's words: "3 accounts"."""
        return self.language.counted(count, *self.noun("node"))

    def node(self, item: Facts) -> str:
        """A node by its name or its number."""
        return item["name"] or self.say("node", noun=self.one("node"), id=str(item["id"]))

    def labelled(self, number: int, name: str) -> str:
        """The target, or an end of it, by its name or its number."""
        kind = "graph" if self.facts["level"] == "graph" else "node"
        return name or self.say(kind, noun=self.one(kind), id=str(number))

    def one(self, kind: str) -> str:
        """The singular, for labels; the language's own if the user gave only a plural."""
        return self.noun(kind)[0] or str(self.language.phrases["nouns"][kind][0])

    def metric_name(self, name: str) -> str:
        """The name of a metric in this language; its own name if there is none."""
        return str(self.language.phrases["metrics"].get(name, name))
