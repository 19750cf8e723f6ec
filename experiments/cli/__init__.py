"""The command `nope`: its subcommands, each a module that `python -m MODULE` runs as well.

A new one is a module here and a line in `COMMANDS`. Nothing heavy is imported before the module.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping

# name -> module, and what it does.
COMMANDS: Mapping[str, tuple[str, str]] = {
    'run': ('experiments.run', 'train what a figure lacks, measure, draw it: nope run fig1:quick'),
    'draw': ('experiments.draw', 'draw figures again from their records alone'),
    'status': ('experiments.status', 'show what is done, running, failed and missing'),
    'claims': ('experiments.claims', 'put the claims of all figures on one page'),
    'report': ('experiments.report', 'put a work folder, or two, on one HTML page'),
    'evaluate': ('experiments.cli.evaluate', 'measure a checkpoint: loss by length, RULER, ...'),
    'generate': ('experiments.cli.generate', 'continue prompts with a checkpoint'),
    'extend': ('experiments.cli.extend', 'make a checkpoint read further, and export it'),
    'import': ('experiments.cli.import_', 'check and convert a Hugging Face directory'),
    'export': ('experiments.cli.export', 'write a run as a Hugging Face directory'),
    'harness': ('experiments.cli.harness', "run tasks of EleutherAI's lm_eval on a checkpoint"),
    'tokenizer': ('experiments.cli.tokenizer', 'train a BPE tokenizer on a corpus'),
    'prepare': ('experiments.cli.prepare', 'tokenise a corpus into shards'),
}
BAD_INPUT = 2


def main() -> int:
    """Runs the subcommand that the command line names; its exit status ends the process."""
    name, *arguments = sys.argv[1:] or ['--help']
    if name in ('-h', '--help', 'help'):
        print(usage())
        return 0
    if name not in COMMANDS:
        print(f'error: nope {name}; accepted: {", ".join(COMMANDS)}', file=sys.stderr)
        return BAD_INPUT
    sys.argv = [f'nope {name}', *arguments]
    runpy.run_module(COMMANDS[name][0], run_name='__main__', alter_sys=True)
    return 0


def usage() -> str:
    wide = max(map(len, COMMANDS))
    lines = [f'  {name:{wide}}  {what}' for name, (_, what) in COMMANDS.items()]
    return '\n'.join(
        [
            'Length generalization of causal Transformers without position encoding.',
            '',
            'usage: nope COMMAND ...; nope COMMAND --help says more',
            '',
            *lines,
        ]
    )
