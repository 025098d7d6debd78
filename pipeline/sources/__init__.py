"""Where rows come from: delivery logs as the application writes them, and what was exported."""
