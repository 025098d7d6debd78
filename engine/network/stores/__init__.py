"""Queries Store nodes for history over the connections of a transport.

``port`` is the port and ``asking`` its only real adapter; ``testing`` tests a single Store.
"""
