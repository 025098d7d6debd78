"""One group on one device: session, people, wire format, and the projection of events to rows."""
