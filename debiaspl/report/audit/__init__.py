"""How biased predictions are, and what debiasing them would change."""

from debiaspl.report.audit.numbers import Audit as Audit, audit as audit
from debiaspl.report.audit.page import audit_page as audit_page
