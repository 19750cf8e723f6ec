"""The whole session runs on eight virtual CPU devices, so that any test may ask for a mesh.

Set here and not through the environment: commands that a test starts see the machine as it is.
JAX_PLATFORMS chooses another platform.
"""

from __future__ import annotations

import os

import jax

jax.config.update('jax_num_cpu_devices', 8)
if not os.environ.get('JAX_PLATFORMS'):
    jax.config.update('jax_platforms', 'cpu')
