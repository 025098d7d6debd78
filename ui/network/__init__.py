"""The network view: peers, health of Stores and service nodes, and what happened."""
