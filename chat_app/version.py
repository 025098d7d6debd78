"""The program's version, from the package's metadata, when somebody asks for it.

What reads metadata brings a dozen modules with it, from zip files to e-mail: 1.2 MiB and some
milliseconds of every start and of every opening process, for a number that few want to see.
"""


def version() -> str:
    """As it stands in pyproject.toml."""
    from importlib import metadata  # noqa: PLC0415 - see above

    return metadata.version("causerie")
