"""The edge role: to chat through service nodes, without relaying.

Filter brings messages, lightpush sends them, metadata says in which cluster; all of it over
connections that this device dials itself.
"""
