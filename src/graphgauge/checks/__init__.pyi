from .explainer_checks import EXPLAINER_CHECKS as EXPLAINER_CHECKS
from .explainer_suite import check_explainer as check_explainer
from .metric_checks import METRIC_CHECKS as METRIC_CHECKS
from .metric_suite import check_metric as check_metric
from .model_checks import MODEL_CHECKS as MODEL_CHECKS
from .model_suite import check_model as check_model
from .suite import CheckResult as CheckResult
from .suite import OnFail as OnFail
