"""Checkpoints: Orbax saves with checksums, the folders they lie in, one writer for each."""
