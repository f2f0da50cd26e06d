"""One language: a folder of phrases and templates; Babel formats its numbers, plurals and lists.

    languages/it/phrases.toml            words and short phrases, checked against the English ones
    languages/it/expert.txt              a template per audience: internal.txt, affected-person.txt
    languages/it/paper-loan.txt ...      further templates, by name

A folder given as ``languages=`` is searched first, file by file. It can add languages (the folder's
name is the language, `locale` in its phrases names the rules for numbers and plurals), or replace
words and templates of the shipped ones.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.lists import format_list
from babel.numbers import format_decimal, format_percent, format_scientific

from graphgauge.core import BadFile, BadSetting, lookup

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHIPPED_LANGUAGES = Path(__file__).parent / "languages"
_PHRASES_FILE = "phrases.toml"
#: numbers below and from here on are written as 2.7E-28: nobody counts zeros
_SMALLEST_PLAIN_NUMBER, _LARGEST_PLAIN_NUMBER = (1e-4, 1e15)
_OPTIONAL_PHRASES = ("last_word",)  #: what some languages need and others do not
#: words and short phrases as the TOML file nests them
Phrases = Mapping[str, Any]
LanguageFolder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Language:
    """How one language writes. Its templates lie in ``folders``; the first folder wins."""

    code: str
    locale: Locale
    folders: tuple[Path, ...]
    phrases: Phrases

    def number(self, value: float) -> str:
        """Format a number with the language's separators; tiny and huge ones with an exponent."""
        if float(value) and not _SMALLEST_PLAIN_NUMBER <= abs(value) < _LARGEST_PLAIN_NUMBER:
            return format_scientific(value, locale=self.locale, decimal_quantization=False)
        is_whole = float(value).is_integer()
        grouped = abs(value) >= self.phrases["group_from"]
        return format_decimal(
            int(value) if is_whole else value,
            locale=self.locale,
            decimal_quantization=False,
            group_separator=grouped,
        )

    def percent(self, value: float) -> str:
        """Format a share of 1 as a percentage."""
        return format_percent(value, locale=self.locale, decimal_quantization=False)

    def listing(self, items: Iterable[str]) -> str:
        """Join several things to one phrase: "a, b and c"."""
        parts = [str(item) for item in items]
        text = format_list(parts, locale=self.locale) if parts else ""
        word = self.phrases.get("last_word")
        if word and len(parts) > 1 and re.match(word["before"], parts[-1], re.IGNORECASE):
            tail = word["usual"] + parts[-1]
            text = (
                text.removesuffix(tail) + word["instead"] + parts[-1]
                if text.endswith(tail)
                else text
            )
        return text

    def plural(self, count: float, **forms: str) -> str:
        """Choose the form for a count (zero, one, few, many, other); ``{n}`` is the number."""
        if "other" not in forms:
            raise BadSetting(
                f"plural needs a form called 'other', but has {', '.join(sorted(forms)) or 'none'}."
            )
        form = forms.get(self.locale.plural_form(count), forms["other"])
        return _fill_phrase(form, {"n": self.number(count)})

    def counted(self, count: int, one: str, other: str) -> str:
        """Say how many: "3 accounts"; "accounts (1)" where the singular is unknown.

        Args:
            count: How many there are.
            one: The noun for a single thing ("account"), or "" if it is unknown.
            other: The noun for any other count ("accounts").
        """
        if self.locale.plural_form(count) == "one" and not one:
            return f"{other} ({self.number(count)})"
        return self.plural(count, one="{n} ", other="{n} ") + (
            one if self.locale.plural_form(count) == "one" else other
        )

    def phrase(self, *path: str, **values: str) -> str:
        """Return one of the phrases, with its gaps filled."""
        phrase: Any = self.phrases
        for part in path:
            phrase = phrase[part]
        return _fill_phrase(phrase, values)

    def quoted(self, text: str) -> str:
        """Put a text into the language's quotation marks."""
        first, last = self.phrases["quotes"]
        return f"{first}{text}{last}"


def _fill_phrase(phrase: str, values: Mapping[str, str]) -> str:
    """Replace each ``{name}`` at once, so that filled-in text is never read again.

    >>> _fill_phrase("{a} and {b}", {"a": "{b}", "b": "c"})
    '{b} and c'
    """
    return re.sub(
        r"\{(\w+)\}",
        lambda gap: lookup(values, gap[1], f"value for {gap[0]} in {phrase!r}"),
        phrase,
    )


def find_language(code: str, languages: LanguageFolder = None) -> Language:
    """Return the language with this code.

    Args:
        code: Name of the language's folder: "en", "de", "fr", "it", "es", or one of your own.
        languages: A folder of further languages, which is searched first.

    >>> find_language("en").listing(["a", "b", "c"])
    'a, b, and c'
    """
    places = [Path(languages), SHIPPED_LANGUAGES] if languages is not None else [SHIPPED_LANGUAGES]
    known = list_languages(places)
    lookup(dict.fromkeys(known), code, "language")
    folders = tuple(place / code for place in places if (place / code).is_dir())
    phrases = _read_phrases(code, folders)
    return Language(code, _read_locale(code, phrases), folders, phrases)


def list_languages(places: Iterable[Path]) -> list[str]:
    """Return the names of all language folders in these places."""
    for place in places:
        if not place.is_dir():
            raise BadFile(
                f"languages={os.fspath(place)!r} is not a folder. "
                "Give the folder that holds one folder per language."
            )
    return sorted(
        {
            path.name
            for place in places
            for path in place.iterdir()
            if path.is_dir() and not path.name.startswith((".", "_"))
        }
    )


def _read_phrases(code: str, folders: tuple[Path, ...]) -> Phrases:
    """Read the first phrases that the folders hold; raise if some are missing."""
    path = next(
        (folder / _PHRASES_FILE for folder in folders if (folder / _PHRASES_FILE).is_file()), None
    )
    if path is None:
        raise BadFile(
            f"the language {code!r} has no {_PHRASES_FILE} in {', '.join(map(str, folders))}. "
            f"Copy {SHIPPED_LANGUAGES / 'en' / _PHRASES_FILE}."
        )
    phrases, wanted = _parse_phrases(path), _parse_phrases(SHIPPED_LANGUAGES / "en" / _PHRASES_FILE)
    gaps = [name for name in _flatten_keys(wanted) if name not in _flatten_keys(phrases)]
    if gaps:
        raise BadFile(
            f"{path} has no {', '.join(gaps)}. "
            f"Every phrase of {SHIPPED_LANGUAGES / 'en' / _PHRASES_FILE} is needed."
        )
    return phrases


@lru_cache
def _read_toml(path: Path, changed: float) -> Phrases:
    """Read a TOML file; ``changed`` makes the cache miss when the file was changed."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _parse_phrases(path: Path) -> Phrases:
    """Read a file of phrases."""
    try:
        return _read_toml(path, path.stat().st_mtime)
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be read as TOML: {error}.") from error


def _flatten_keys(phrases: Phrases, above: str = "") -> list[str]:
    """Return the dotted names of all phrases."""
    names: list[str] = []
    for key, value in phrases.items():
        if key not in _OPTIONAL_PHRASES:
            names += (
                _flatten_keys(value, f"{above}{key}.")
                if isinstance(value, Mapping)
                else [above + key]
            )
    return names


def _read_locale(code: str, phrases: Phrases) -> Locale:
    """Return Babel's rules for the language."""
    try:
        return Locale.parse(phrases["locale"])
    except (UnknownLocaleError, ValueError, TypeError) as error:
        raise BadFile(
            f"locale = {phrases['locale']!r} in the phrases of {code!r} is none that Babel knows: "
            f"{error}."
        ) from error
