"""The errors of graphgauge. Each message says what was asked, what was found and what to do.

    GraphgaugeError
    ├── BadGraph         (ValueError)   the graph or its features cannot be used as they are
    ├── BadTarget        (ValueError)   a target is not a node, link or graph of this data
    ├── BadModel         (ValueError)   the network fails, or its output is not as declared
    ├── BadSetting       (ValueError)   an option has a value it cannot have
    ├── BadExplanation   (ValueError)   scores do not fit their target (shape, ids, missing side)
    ├── ChangedModel     (RuntimeError) an explainer changed the network's weights, or the data
    ├── UndefinedScore   (ValueError)   a number was asked for that does not exist here
    ├── UnknownName      (LookupError)  no such explainer, metric, data set ...
    ├── BadFile          (OSError)      a file is missing, damaged or not ours
    ├── OutOfMemory      (MemoryError)  even one copy of a graph does not fit
    ├── OutOfTime        (TimeoutError) a call took longer than it was given
    ├── MissingExtra     (ImportError)  an optional package is not installed
    └── FailedCheck      (AssertionError) a model, explainer or metric fails a `check_...` function

The command line shows any of them as one line and exits with code 2. What is done but should be
known is a `GraphgaugeWarning` (UserWarning).
"""


class GraphgaugeError(Exception):
    """Parent of every error that graphgauge raises on purpose."""


class BadGraph(GraphgaugeError, ValueError):
    """The graph or its features cannot be used as they are."""


class BadTarget(GraphgaugeError, ValueError):
    """A target is not a node, link or graph of this data."""


class BadModel(GraphgaugeError, ValueError):
    """The network cannot be called, or its output is not what was declared."""


class BadSetting(GraphgaugeError, ValueError):
    """An option has a value it cannot have."""


class BadExplanation(GraphgaugeError, ValueError):
    """Scores do not fit their target."""


class ChangedModel(GraphgaugeError, RuntimeError):
    """An explainer changed the network's weights, or the data, so that its explanations are of
    something else.
    """


class UndefinedScore(GraphgaugeError, ValueError):
    """A number was asked for that does not exist here."""


class UnknownName(GraphgaugeError, LookupError):
    """No such explainer, metric, data set or other named thing."""


class BadFile(GraphgaugeError, OSError):
    """A file is missing, damaged or not ours."""


class OutOfMemory(GraphgaugeError, MemoryError):
    """Even one copy of a graph does not fit into memory."""


class OutOfTime(GraphgaugeError, TimeoutError):
    """A call took longer than it was given."""


class MissingExtra(GraphgaugeError, ImportError):
    """An optional package is not installed."""


class FailedCheck(GraphgaugeError, AssertionError):
    """A model, explainer or metric broke a promise that a public check tests."""


class GraphgaugeWarning(UserWarning):
    """Something was done as asked, with a consequence that people should know."""
