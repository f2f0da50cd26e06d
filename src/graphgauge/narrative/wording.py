"""Facts in the words of one language: what templates are given.

Every name that a template can use is made here, from the facts alone: labels of what has no name
("feature 12"), counted things ("3 accounts"), reasons for what is missing, and functions:

    number, percent, listing, plural    as the language writes them          sentence    begins with a capital
    question, evidence("features", true)    where a class is explained that is not predicted: which, and what speaks for it
    nodes(3)                            "3 accounts"                         labels, scored    items as a list, with their scores
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphgauge.narrative.language import Language


@dataclass(frozen=True)
class Wording:
    """The facts of one explanation, and the language they are told in."""

    facts: Mapping[str, Any]
    language: Language

    def context(self) -> dict[str, Any]:
        """What templates know, by name."""
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
        level, found = self.facts["level"], self.facts["target"]
        labels = [
            self.labelled(number, name)
            for number, name in zip(found["ids"], found["names"], strict=True)
        ]
        if level == "link":
            return (
                self.say("link", first=labels[0], second=labels[1])
                if labels
                else self.say("hidden_link")
            )
        return labels[0]

    def prediction(self) -> dict[str, Any]:
        """The class in quotation marks and its probability, or the value with its unit; ``bare``
        has no quotation marks.
        """
        found = self.facts["prediction"]
        if found["status"] != "ok":
            return {"known": False, "text": "", "bare": "", "probability": None}
        if "value" in found:
            text = f"{self.language.number(found['value'])}\u00a0{found['unit']}".rstrip("\u00a0")
            return {"known": True, "text": text, "bare": text, "probability": None}
        bare = self.class_name(found)
        return {
            "known": True,
            "text": self.language.quoted(bare),
            "bare": bare,
            "probability": found["probability"],
        }

    def class_name(self, found: Mapping[str, Any]) -> str:
        """A class by its name or number, or a label that a target has or has not."""
        if found.get("label") is not None:
            return self.say(
                "label" if found["class"] else "no_label", name=found["name"] or str(found["label"])
            )
        return found["name"] or self.say("class", id=str(found["class"]))

    def question(self) -> str:
        """Which class is explained, where it is not the predicted one; else ''. Facts of an earlier
        version do not say.
        """
        found = self.facts.get("chosen")
        if found is None:
            return ""
        name, probability = (
            self.language.quoted(self.class_name(found)),
            self.language.percent(found["probability"]),
        )
        return self.language.phrase("chosen", "question", name=name, probability=probability)

    def evidence(self, side: str, with_scores: bool) -> str:
        """What speaks for and against the explained class, of "features" or "edges", where it is
        not the predicted one.
        """
        found = self.side(side, self.feature if side == "features" else self.edge)
        if found["gap"]:
            return str(found["gap"])
        name, told = self.language.quoted(self.class_name(self.facts["chosen"])), []
        for part, ending in (
            ("top", "for" if self.facts["signed"] else "unsigned"),
            ("opposing", "against"),
        ):
            items = [
                f"{item['label']} ({self.language.number(item['score'])})"
                if with_scores
                else item["label"]
                for item in found[part]
            ]
            if items and (part == "top" or self.facts["signed"]):
                told.append(
                    self.language.phrase(
                        "chosen", f"{side}_{ending}", name=name, items=self.language.listing(items)
                    )
                )
        return " ".join(told)

    def side(self, side: str, worded: Any) -> dict[str, Any]:
        """Features or edges, each with its label; ``gap`` says why there are none."""
        found = self.facts[side]
        gap = "" if found["status"] == "ok" else self.language.phrase("gaps", side, found["status"])
        lists = {part: [worded(item) for item in found[part]] for part in ("top", "opposing")}
        return {**found, **lists, "gap": gap, "is_ok": not gap}

    def feature(self, item: Mapping[str, Any]) -> dict[str, Any]:
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
        """A feature and whose it is; people who are affected are not told of neighbours, a word
        with another meaning to them.
        """
        if owner in ("first", "second"):
            return self.say("of_end", name=name, end=self.end(owner))
        return self.say(
            "of_others" if owner == "neighbours" and self.facts["redacted"] else f"of_{owner}",
            name=name,
        )

    def end(self, which: str) -> str:
        """One end of a link target; without a name where that is hidden."""
        found, place = self.facts["target"], ("first", "second").index(which)
        return (
            self.labelled(found["ids"][place], found["names"][place])
            if found["ids"]
            else self.say(f"hidden_{which}")
        )

    def edge(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """An edge with its label, and the labels of its ends that are not the target."""
        ends = {way: self.node(item[way]) for way in ("source", "destination")}
        label = (
            self.say("related", relation=item["relation"], **ends)
            if item["relation"]
            else self.say("edge", **ends)
        )
        return {**item, **ends, "label": label, "others": [ends[way] for way in item["other"]]}

    def group(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """A group of nodes with its label: "3 accounts with prior defaults"."""
        return {**item, "label": self.language.counted(item["count"], item["one"], item["other"])}

    def metric(self, name: str, value: float) -> dict[str, Any]:
        """A measured number with the metric's name."""
        return {"label": self.metric_name(name), "score": value}

    def quality(self) -> dict[str, Any]:
        """The verdict, and a phrase for each failure; facts that were kept by an earlier version do
        not say whose it is.
        """
        found = {"at_validation": False, **self.facts["quality"]}
        return {**found, "failures": [self.failure(item) for item in found["failures"]]}

    def failure(self, item: Mapping[str, Any]) -> str:
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
        """The nodes, other than the target, that the strongest edges lead to; the groups where
        nodes are not named.
        """
        if self.facts["redacted"]:
            return [self.group(group)["label"] for group in self.facts["edges"]["groups"]]
        found = [
            label for item in self.facts["edges"]["top"] for label in self.edge(item)["others"]
        ]
        return list(dict.fromkeys(found))

    # --- words ------------------------------------------------------------------------------------

    def say(self, label: str, **values: str) -> str:
        """A label of this language."""
        return self.language.phrase("labels", label, **values)

    def noun(self, kind: str) -> tuple[str, str]:
        """Singular and plural of nodes, links or graphs: the user's words, or the language's own."""
        one, other = self.facts["nouns"][kind]
        own_one, own_other = self.language.phrases["nouns"][kind]
        return (one, other) if other else (own_one, own_other)

    def nodes(self, count: int) -> str:
        """So many nodes, in the user's words: "3 accounts"."""
        return self.language.counted(count, *self.noun("node"))

    def node(self, item: Mapping[str, Any]) -> str:
        """A node by its name or its number."""
        return item["name"] or self.say("node", noun=self.one("node"), id=str(item["id"]))

    def labelled(self, number: int, name: str) -> str:
        """The target, or an end of it, by its name or its number."""
        kind = "graph" if self.facts["level"] == "graph" else "node"
        return name or self.say(kind, noun=self.one(kind), id=str(number))

    def one(self, kind: str) -> str:
        """The singular, for labels; the language's own where the user gave a plural alone."""
        return self.noun(kind)[0] or str(self.language.phrases["nouns"][kind][0])

    def metric_name(self, name: str) -> str:
        """The metric in this language, or under the name it has."""
        return str(self.language.phrases["metrics"].get(name, name))
