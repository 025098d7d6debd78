"""Asking Store nodes for history over whatever connections a transport has.

The port is ``port``, its one real adapter ``asking``; what a single test of a Store looks at is
``testing``.
"""
