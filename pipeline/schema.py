"""The contract's tables as Spark and as Arrow schemas.

Made from ``engine.delivery.contract`` and from nothing else, so that whatever reads or writes these
tables agrees with the application.  Arrow and Spark are imported only by the function that makes
their schema: an export needs Arrow alone.
"""

from typing import TYPE_CHECKING

from engine.delivery.contract import Table, Type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType


def spark_schema(table: Table) -> "StructType":
    """Columns in the contract's order, with its nullability."""
    # ruff: noqa: PLC0415
    from pyspark.sql import types

    kinds: dict[Type, DataType] = {
        Type.INT16: types.ShortType(),
        Type.INT32: types.IntegerType(),
        Type.INT64: types.LongType(),
        Type.FLOAT64: types.DoubleType(),
        Type.TEXT: types.StringType(),
        Type.BINARY: types.BinaryType(),
        Type.TEXTS: types.ArrayType(types.StringType(), containsNull=False),
        Type.INT64S: types.ArrayType(types.LongType(), containsNull=False),
    }
    return types.StructType(
        [
            types.StructField(column.name, kinds[column.type], nullable=column.nullable)
            for column in table.columns
        ]
    )


def arrow_schema(table: Table) -> "pa.Schema":
    """Columns in the contract's order, with its nullability."""
    import pyarrow as pa

    kinds: dict[Type, pa.DataType] = {
        Type.INT16: pa.int16(),
        Type.INT32: pa.int32(),
        Type.INT64: pa.int64(),
        Type.FLOAT64: pa.float64(),
        Type.TEXT: pa.string(),
        Type.BINARY: pa.binary(),
        Type.TEXTS: pa.list_(pa.field("element", pa.string(), nullable=False)),
        Type.INT64S: pa.list_(pa.field("element", pa.int64(), nullable=False)),
    }
    return pa.schema(
        [
            pa.field(column.name, kinds[column.type], nullable=column.nullable)
            for column in table.columns
        ]
    )
