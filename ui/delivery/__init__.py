"""The view of a conversation's delivery: causal order, who holds what, and figures over time."""
