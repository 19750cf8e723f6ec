"""A Hugging Face checkpoint in hand: loss and entropy by position, text, a searched lambda.

What `experiments` does by configs, resumed and recorded, on one model and in memory.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any, Self

import jax
import numpy as np
from jax.sharding import Mesh

from nope import interop, sharding
from nope.data import (
    Batch,
    Continuation,
    Tokenizer,
    encode_with_bos,
    ids_in_use,
    load_tokenizer,
    prefix_of,
)
from nope.data.prefix import begun
from nope.evals import batching, positions
from nope.evals.generation import Generator, Options
from nope.identity import plain
from nope.interop import Described
from nope.model import ModelConfig
from nope.model.lam import Constant
from nope.positions import NoPE
from nope.records import Records
from nope.runtime import paths
from nope.runtime.errors import FieldError
from nope.training.config import Compute, TrainConfig
from nope.training.optim import OptimizerConfig
from nope.training.train import train
from nope.variables import Variables, with_lam_from


@dataclasses.dataclass(frozen=True, eq=False)
class Pretrained:
    """A model on a mesh, with its tokenizer.

    described: the model and its facts. variables: its parameters and lambda. tokenizer: None where
    the directory has none. batch_tokens: tokens of a batch, per device. searched_length: the
    longest sequences that lambda was searched on here.
    """

    path: pathlib.Path
    described: Described
    variables: Variables = dataclasses.field(repr=False)
    tokenizer: Tokenizer | None
    mesh: Mesh
    batch_tokens: int = 16_384
    searched_length: int | None = None

    @classmethod
    def open(
        cls,
        path: str | pathlib.Path,
        *,
        nope: bool = False,
        train_length: int | None = None,
        dtype: str = 'float32',
    ) -> Self:
        """The model of a directory, on all devices of this machine. nope: the weights were trained
        without the rotation of config.json. train_length: replaces that of config.json. dtype: of
        the computation, 'bfloat16' to be fast on a GPU or TPU. Errors as `nope.interop`."""
        directory = interop.open_directory(paths.path(path))
        described = interop.describe(directory, position=NoPE() if nope else None)
        mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=jax.device_count()))
        described = described._replace(model=dataclasses.replace(described.model, dtype=dtype))
        if train_length is not None:
            if type(train_length) is not int or train_length < 1:
                raise FieldError('train_length', train_length, 'accepted: a whole number from 1')
            described = described._replace(train_length=train_length)
        variables = interop.load(directory, described.model, mesh)
        found = interop.tokenizer_in(directory.path)
        tokenizer = None if found is None else load_tokenizer(found, 'tokenizer')
        return cls(directory.path, described, variables, tokenizer, mesh)

    @property
    def model(self) -> ModelConfig:
        return self.described.model

    def blocks(self, text: str, length: int, *, bos: bool | None = None) -> np.ndarray:
        """A text in blocks of length + 1 tokens, one behind the other, int32 [blocks, length + 1].

        Each begins with the tokenizer's prefix in place of its first tokens (bos: see
        `nope.data.prefix`). ValueError where the text has not as many tokens, or the model has no
        tokenizer, or none with BOS.
        """
        tokenizer = self._tokenizer
        prefix = prefix_of(tokenizer, bos)
        ids = tokenizer.encode(text)
        least = max(len(prefix), 1)
        if not least <= length < len(ids):
            raise ValueError(
                f'length is {length}; accepted: {least} or more, and less than the {len(ids)} '
                'tokens of the text'
            )
        count = len(ids) // (length + 1)
        blocks = np.asarray(ids[: count * (length + 1)]).reshape(count, length + 1)
        return begun(blocks, prefix)

    def by_position(self, blocks: np.ndarray) -> Records:
        """Loss, nats [position], and attention entropy, nats [layer, head, position], of blocks
        [windows, T + 1] int32; see `nope.evals.positions.run`."""
        blocks = _checked(blocks)
        length = blocks.shape[1] - 1
        most = batching.most_rows(self.batch_tokens, length, sharding.batch_parts(self.mesh))
        return positions.run(self.model, self.variables, blocks, mesh=self.mesh, batch_size=most)

    def generate(
        self, text: str, new_tokens: int, *, bos: bool | None = None, special: bool = False
    ) -> str:
        """The greedy continuation of a text, up to EOS or another token at which its files stop.

        bos: as `nope.data.prefix` has it. special: what the text spells of special tokens, as a
        chat template does, becomes these tokens.
        """
        tokenizer = self._tokenizer
        prompt = encode_with_bos(tokenizer, text, bos, special=special)
        generator = Generator(self.model, self.variables, self.mesh, batch_tokens=self.batch_tokens)
        (made,) = generator.generate([prompt], Options(new_tokens, stop_ids=tokenizer.stop_ids))
        return Continuation(tokenizer, prompt).text(made)

    def searched(
        self,
        blocks: np.ndarray,
        *,
        steps: int = 200,
        batch_size: int = 8,
        learning_rate: float = 0.1,
        bound: float | None = 1.0,
        seed: int = 0,
    ) -> Self:
        """The model with one multiplier per head searched on blocks [windows, T + 1] int32, every
        weight frozen (HeadScale, arXiv 2404.12224): AdamW with a tenth of the steps to warm up and
        a cosine to a tenth of the rate, no multiplier below `bound`.

        T is what the model is to read, the length it was trained at or more. The search starts from
        the multipliers of the model, or from `bound` where they are lower. ValueError for shorter
        blocks, for a lambda that follows the length or the position, and for ids outside of the
        vocabulary.
        """
        blocks = _checked(blocks)
        if not len(blocks) or steps < 1 or batch_size < 1:
            given = f'{len(blocks)} windows, steps={steps}, batch_size={batch_size}'
            raise ValueError(f'there are {given}; accepted: 1 or more of each')
        length, least = blocks.shape[1] - 1, self.described.train_length or 1
        if length < least:
            raise ValueError(
                f'blocks have {length} tokens and one to predict; accepted: the length that the '
                f'model was trained at, {least}, or more'
            )
        batching.check_ids(blocks, self.model.vocab_size)
        if not isinstance(self.model.lam, Constant):
            raise ValueError(f'lambda is {self.model.lam.describe()}; accepted: a constant one')
        optimizer = OptimizerConfig(
            learning_rate, trains='lam', warmup_steps=steps // 10, decay_steps=steps, bound=bound
        )
        parts = sharding.batch_parts(self.mesh)
        wanted = min(operator.index(batch_size), len(blocks))
        rows = -(-wanted // parts) * parts  # as many on every device
        config = TrainConfig((length,), rows, steps, optimizer)

        start = self.variables if bound is None else with_lam_from(self.variables, bound)

        def batches(consumed: int) -> Iterator[Batch]:
            """Batches of blocks, each epoch in an order of its own."""
            rng, order = np.random.default_rng(seed), np.empty(0, np.int64)
            for number in itertools.count():
                while len(order) < rows:
                    order = np.concatenate([order, rng.permutation(len(blocks))])
                chosen, order = order[:rows], order[rows:]
                if number >= consumed:
                    yield Batch.of_blocks(blocks[chosen])

        with tempfile.TemporaryDirectory() as folder:
            variables = train(
                dataclasses.replace(self.model, remat='fit'),
                config,
                Compute(
                    accumulate=None,
                    shard_sequences=max(self.batch_tokens // length, 1),
                    checkpoint_every=max(steps, 1),
                ),
                mesh=self.mesh,
                initial=lambda: start,
                batches=batches,
                folder=pathlib.Path(folder),
                identity={'model': plain(self.model)},
                title='search',
            )
        reached = max(length, self.searched_length or 0)
        return dataclasses.replace(self, variables=variables, searched_length=reached)

    def save(self, path: str | pathlib.Path, **export: Any) -> None:
        """Writes a Hugging Face directory for stock `transformers`. Lambda is folded into the query
        weights; the files of the tokenizer and of generation are copied. Its config names the
        longest sequences that lambda was searched on, but under dynamic NTK and YaRN, where stock
        computes by the length it had. export: fields of `nope.interop.Export`, as
        lam='scale_param'."""
        interop.save(
            paths.path(path),
            self.variables,
            self.described,
            export=interop.Export(
                **{'dtype': self.described.dtype, 'length': self.searched_length, **export}
            ),
            tokenizer=str(self.path),
        )

    @functools.cached_property
    def _tokenizer(self) -> Tokenizer:
        """ValueError where there is none, or one of more tokens than the model has."""
        if self.tokenizer is None:
            raise ValueError(f'{self.path} holds no tokenizer.json or tokenizer.model')
        used, size = ids_in_use(self.tokenizer), self.model.vocab_size
        if used > size:
            raise ValueError(
                f'the tokenizer of {self.path} has {used} tokens; the model has {size}'
            )
        return self.tokenizer


def _checked(blocks: np.ndarray) -> np.ndarray:
    """ValueError for what has no windows of two tokens or more."""
    found = np.asarray(blocks)
    if found.ndim != 2 or found.shape[1] < 2 or found.dtype.kind not in 'iu':
        raise ValueError(
            f'blocks have shape {found.shape} and dtype {found.dtype}; accepted: integers, '
            'windows and tokens, as `blocks` makes them'
        )
    return found
