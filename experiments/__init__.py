"""Entry points: from a config file to runs, records, figures and tables."""

import importlib.util
import os
import sys

# `python -m` looks into the current folder first, which may have packages of these names.
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
for _name in ('nope', 'configs'):
    _found = importlib.util.find_spec(_name)
    if _found is None or _found.origin != os.path.join(_ROOT, _name, '__init__.py'):
        sys.path.insert(0, _ROOT)
        break
