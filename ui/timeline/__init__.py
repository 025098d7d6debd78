"""The timeline: one conversation drawn as a thread with beads, paged, anchored, accessible.

``view.TimelineView`` is the widget; the rest of the package are its parts: which messages are
loaded (``loaded``), which rows they make (``rows``), what the rows say (``words``), how large they
are (``measure``), how they look (``paint``), what is selected (``selection``), when pages are
fetched (``paging``) and what a screen reader hears (``accessible``).
"""
