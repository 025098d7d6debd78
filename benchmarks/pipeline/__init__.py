"""The pipeline measured: a generator with faults, the plain way in Spark, DuckDB and Polars."""
