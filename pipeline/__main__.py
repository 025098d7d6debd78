"""``causerie-pipeline`` and ``python -m pipeline``."""

import sys


def main() -> int:
    try:
        from pipeline import cli  # noqa: PLC0415 - what it needs may not be installed
    except ModuleNotFoundError as lacking:
        sys.stderr.write(
            f"causerie-pipeline needs {lacking.name}: pip install 'causerie[pipeline]'\n"
        )
        return 2
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
