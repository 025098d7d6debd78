"""Open channels: SDS as js-waku speaks it, which anybody can read and write."""
