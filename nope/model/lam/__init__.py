"""lambda: one softmax temperature per head, and the forms it takes. The README.md here is the
way in."""

from nope.model.lam.base import Coefficient, Form
from nope.model.lam.coefficients import check_shape, initial, is_neutral, uniform
from nope.model.lam.constant import Constant
from nope.model.lam.log_length import LogLength
from nope.model.lam.product import Product
from nope.model.lam.queries import scale_queries
from nope.model.lam.registry import FORMS, from_section

__all__ = [
    'FORMS',
    'Coefficient',
    'Constant',
    'Form',
    'LogLength',
    'Product',
    'check_shape',
    'from_section',
    'initial',
    'is_neutral',
    'scale_queries',
    'uniform',
]
