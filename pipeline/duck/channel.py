"""Spark Connect's service in this process, by DuckDB: the other end of Spark's own client.

The client sends plans and gets rows in Arrow's format; to it this is a channel like any other.
Nothing is sent anywhere: requests and answers are handed over as they are.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar
from uuid import uuid4

import duckdb
import pyarrow as pa
from pyspark.sql.connect import proto
from pyspark.sql.connect.types import pyspark_types_to_proto_types

from pipeline.duck.errors import DuckError, NotHere
from pipeline.duck.relations import Tables
from pipeline.duck.spilled import Spilled
from pipeline.duck.types import parsed

if TYPE_CHECKING:
    from google.protobuf.message import Message

MEMORY: Final = "spark.driver.memory"
_MEMORY: Final = "2g"
"""What does not fit goes to a disk: of few rows of input there may be very many witnesses."""
BATCH_ROWS: Final = 500_000
_LARGE: Final = str(2**31 - 1)
_CONFIGURED: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.localRelationCacheThreshold": _LARGE,
    "spark.sql.session.localRelationSizeLimit": _LARGE,
    "spark.sql.session.localRelationChunkSizeRows": _LARGE,
    "spark.sql.session.localRelationChunkSizeBytes": _LARGE,
    "spark.sql.session.localRelationBatchOfChunksSizeBytes": _LARGE,
    "spark.sql.execution.pandas.convertToArrowArraySafely": "false",
    "spark.sql.execution.pandas.inferPandasDictAsMap": "false",
    "spark.sql.pyspark.inferNestedDictAsStruct.enabled": "false",
    "spark.sql.pyspark.legacy.inferArrayTypeFromFirstElement.enabled": "false",
    "spark.sql.pyspark.legacy.inferMapTypeFromFirstPair.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
"""What the client asks for before it hands rows over: in one piece."""
_REPLACES: Final[Mapping[int, bool]] = {
    proto.WriteOperation.SAVE_MODE_UNSPECIFIED: False,
    proto.WriteOperation.SAVE_MODE_ERROR_IF_EXISTS: False,
    proto.WriteOperation.SAVE_MODE_OVERWRITE: True,
}
"""By Spark's mode of writing: whether what is there goes."""

_Asked: TypeAlias = (
    proto.ExecutePlanRequest
    | proto.AnalyzePlanRequest
    | proto.ConfigRequest
    | proto.ReleaseExecuteRequest
    | proto.ReleaseSessionRequest
)
_Answer = TypeVar(
    "_Answer",
    proto.ExecutePlanResponse,
    proto.AnalyzePlanResponse,
    proto.ConfigResponse,
    proto.ReleaseExecuteResponse,
    proto.ReleaseSessionResponse,
)
Call: TypeAlias = "Callable[..., Message | Iterator[Message]]"


class DuckChannel:
    """What the client uses of gRPC's Channel; of one session."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._spilled = Spilled()
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": options.get(MEMORY, _MEMORY),
                "temp_directory": str(self._spilled.place),
            },
        )
        self._tables = Tables(self._connection)
        self._configured = {**_CONFIGURED, **options}
        self._server = str(uuid4())

    def _answer(self, answer: _Answer, asked: _Asked) -> _Answer:
        answer.session_id = asked.session_id
        answer.server_side_session_id = self._server
        return answer

    def _execute(self, asked: proto.ExecutePlanRequest) -> "Iterator[Message]":
        found: list[proto.ExecutePlanResponse] = []
        if asked.plan.WhichOneof("op_type") == "command":
            self._command(asked.plan.command)
        else:
            table = self._tables.of(asked.plan.root)
            schema = pyspark_types_to_proto_types(table.schema)
            found.append(proto.ExecutePlanResponse(schema=schema))
            batches = _batches(self._tables.rows(table))
            found += [proto.ExecutePlanResponse(arrow_batch=batch) for batch in batches]
        done = proto.ExecutePlanResponse.ResultComplete()
        found.append(proto.ExecutePlanResponse(result_complete=done))
        for one in found:
            one.operation_id = asked.operation_id
            one.response_id = str(uuid4())
        return iter([self._answer(one, asked) for one in found])

    def _command(self, command: proto.Command) -> None:
        which = command.WhichOneof("command_type")
        if which == "create_dataframe_view":
            view = command.create_dataframe_view
            self._tables.give_name(view.name, view.input)
            return
        write = command.write_operation
        if which != "write_operation" or write.source != "parquet":
            raise NotHere(f"command {which}")
        if write.mode not in _REPLACES:
            raise NotHere("adding to what is written")
        if write.partitioning_columns or write.sort_column_names or write.HasField("bucket_by"):
            raise NotHere("writing by values")
        place = Path(write.path.removeprefix("file://"))
        replaces = _REPLACES[write.mode]
        self._tables.write(self._tables.of(write.input), place, replaces=replaces)

    def _analyze(self, asked: proto.AnalyzePlanRequest) -> "Message":
        answer = self._answer(proto.AnalyzePlanResponse(), asked)
        which = asked.WhichOneof("analyze")
        if which == "schema":
            schema = self._tables.of(asked.schema.plan.root).schema
            answer.schema.schema.CopyFrom(pyspark_types_to_proto_types(schema))
        elif which == "ddl_parse":
            kind = parsed(asked.ddl_parse.ddl_string)
            answer.ddl_parse.parsed.CopyFrom(pyspark_types_to_proto_types(kind))
        elif which == "persist":
            self._tables.keep(asked.persist.relation)
            answer.persist.SetInParent()
        elif which == "unpersist":
            answer.unpersist.SetInParent()  # Few rows, until the session ends.
        else:
            raise NotHere(f"question {which}")
        return answer

    def _config(self, asked: proto.ConfigRequest) -> "Message":
        answer = self._answer(proto.ConfigResponse(), asked)
        operation = asked.operation
        which = operation.WhichOneof("op_type")
        if which == "set":
            self._configured |= {pair.key: pair.value for pair in operation.set.pairs}
        elif which == "get":
            for key in operation.get.keys:
                answer.pairs.add(key=key, value=self._configured.get(key))
        elif which == "get_with_default":
            for pair in operation.get_with_default.pairs:
                answer.pairs.add(key=pair.key, value=self._configured.get(pair.key, pair.value))
        else:
            raise NotHere(f"configuration {which}")
        return answer

    def _release(self, asked: proto.ReleaseExecuteRequest) -> "Message":
        return self._answer(proto.ReleaseExecuteResponse(), asked)

    def _end(self, asked: proto.ReleaseSessionRequest) -> "Message":
        return self._answer(proto.ReleaseSessionResponse(), asked)

    # --- what a channel has -----------------------------------------------------------------------

    def _called(self, method: str, *_arguments: object, **_options: object) -> Call:
        answers: Mapping[str, Call] = {
            "ExecutePlan": self._execute,
            "AnalyzePlan": self._analyze,
            "Config": self._config,
            "ReleaseExecute": self._release,
            "ReleaseSession": self._end,
        }
        name = method.rpartition("/")[2]

        def call(request: "Message", **_more: object) -> "Message | Iterator[Message]":
            if name not in answers:
                raise NotHere(f"request {name}")
            try:
                return answers[name](request)
            except duckdb.Error as error:
                first = next(iter(str(error).splitlines()), "it says no more")
                raise DuckError(f"DuckDB could not finish: {first}") from error

        return call

    unary_unary = unary_stream = stream_unary = stream_stream = _called

    def close(self) -> None:
        self._connection.close()
        self._spilled.close()


def _batches(rows: pa.Table) -> Iterator[proto.ExecutePlanResponse.ArrowBatch]:
    """At least one; a message of the protocol has room for 2 GB."""
    empty = pa.RecordBatch.from_pylist([], schema=rows.schema)
    for batch in rows.to_batches(max_chunksize=BATCH_ROWS) or [empty]:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(batch)
        data = sink.getvalue().to_pybytes()
        yield proto.ExecutePlanResponse.ArrowBatch(row_count=batch.num_rows, data=data)
