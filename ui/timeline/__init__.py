"""The timeline: one conversation drawn as a thread with beads, paged, anchored, accessible.

``view.TimelineView`` is the widget.  It hands Qt's events to its collaborators, which share one
model, ``scene.Scene``:

* ``canvas`` lays out, scrolls and paints (``rows``, ``boxes``, ``layout``, ``paint``);
* ``interaction`` takes input (``pointer``, ``selection``, ``menu``) and asks the window by
  ``requests``;
* ``updates`` applies live changes, ``navigation`` reads pages (``paging``, ``loaded``), and
  ``reading`` tracks what was seen.

``accessible`` is the same timeline for a screen reader.
"""
