"""lambda: one softmax temperature per head, and the laws it takes. The README.md here is the
way in."""

from nope.model.lam.base import Coefficient, Law
from nope.model.lam.coefficients import check_shape, initial, is_neutral, uniform
from nope.model.lam.constant import Constant
from nope.model.lam.given import GivenLaw
from nope.model.lam.log_floor import LogFloor
from nope.model.lam.log_length import LogLength
from nope.model.lam.product import Product
from nope.model.lam.registry import LAWS, from_section, given_from_section
from nope.model.lam.scale import adaptive_multipliers, entropy_multipliers, scale_queries, times

__all__ = [
    'LAWS',
    'Coefficient',
    'Constant',
    'GivenLaw',
    'Law',
    'LogFloor',
    'LogLength',
    'Product',
    'adaptive_multipliers',
    'check_shape',
    'entropy_multipliers',
    'from_section',
    'given_from_section',
    'initial',
    'is_neutral',
    'scale_queries',
    'times',
    'uniform',
]
