"""Open channels: SDS as js-waku speaks it, with no key or one that all members share."""
