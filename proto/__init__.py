"""Generated protobuf modules, one per ``.proto`` file beside them.

Regenerate with ``make proto``; ``make check`` fails when they drift from their sources.  Only
``engine.codec`` imports from here: everything else speaks the core's own types.
"""
