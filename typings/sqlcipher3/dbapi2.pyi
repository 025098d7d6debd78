# What the project uses of sqlcipher3: the interface of the standard library's sqlite3 on SQLCipher,
# with classes of its own.  A connection is declared as sqlite3's because it offers the same methods
# and sqlite-utils takes nothing else; its exceptions are NOT sqlite3's, so they are declared here.
import sqlite3

sqlite_version: str

class Error(Exception):
    sqlite_errorcode: int
    sqlite_errorname: str

class InterfaceError(Error): ...
class DatabaseError(Error): ...
class DataError(DatabaseError): ...
class OperationalError(DatabaseError): ...
class IntegrityError(DatabaseError): ...
class InternalError(DatabaseError): ...
class ProgrammingError(DatabaseError): ...
class NotSupportedError(DatabaseError): ...

def connect(
    database: str,
    timeout: float = ...,
    detect_types: int = ...,
    isolation_level: str | None = ...,
    check_same_thread: bool = ...,
    *,
    cached_statements: int = ...,
    uri: bool = ...,
) -> sqlite3.Connection: ...
