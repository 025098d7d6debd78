"""What DuckDB could not do of what was asked."""

from pyspark.errors import PySparkException


class DuckError(PySparkException):
    """The text is one line for the reader."""

    def __init__(self, text: str) -> None:
        super().__init__(message=text)
        self.text = text


class NotHere(DuckError):  # noqa: N818 - says what is so
    """Something that only Spark itself can do, or that nobody has said in DuckDB's words yet."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: this takes Spark, --master local[*] starts it")
