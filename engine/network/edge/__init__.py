"""The edge role: chatting through service nodes, without relaying.

Filter brings messages, lightpush sends them, and metadata tells the cluster. All run over
connections that this device dials itself.
"""
