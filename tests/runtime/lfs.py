"""Pointers as Git LFS leaves them in a clone without the files."""

from __future__ import annotations


def pointer(size: int = 548_105_171) -> bytes:
    """That of a file of `size` bytes."""
    version = 'version https://git-lfs.github.com/spec/v1'
    return f'{version}\noid sha256:{"4a" * 32}\nsize {size}\n'.encode()
