"""Flags of XLA for programs that run once or twice, as most of the tests' do.

Most of the time is compiling: plain code takes a third less of it. XLA ends the process for a flag
that it does not know: only those that all versions have.
"""

QUICK = '--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true'
