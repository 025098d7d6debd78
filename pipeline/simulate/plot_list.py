"""Which plots the study has, and what others published of the same: titles, axes, units, lines.

Marks are figures of the post in which the authors of MVDS told of their simulation ("P2P Data Sync
for Mobile", vac.dev, July 2019): with peers that are offline for 90 % of the time, "~5 minute
latency overhead and a bandwidth multiplier of x100-1000" in interactive mode; by a calculation
about 100 in batch mode, and less than 10 with a cache that is always there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pipeline.report.svg import Mark

Row: TypeAlias = Mapping[str, object]
RARELY: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """``unit``: what the figure is divided by."""

    file: str
    sweep: str
    title: str
    about: str
    """Under what conditions."""
    x: str
    x_text: str
    ys: Sequence[tuple[str, str]]
    """(column, text)"""
    y_text: str
    line: Callable[[Row], str] = lambda _row: ""
    unit: float = 1.0
    x_unit: float = 1.0
    log_x: bool = False
    log_y: bool = False
    marks: Sequence[Mark] = ()


def _mode(row: Row) -> str:
    if row["config"] == "reference":
        return f"{row['mode']}, reference's back-off"
    return "ours, with hints and Store copies" if row["presence"] else "ours"


def _plain_mode(row: Row) -> str:
    return str(row["mode"])


def _config(row: Row) -> str:
    return "js-waku's defaults" if row["config"] == "reference" else "ours"


_TIMES: Final = [("delivery_p50_ms", "delivered, p50"), ("delivery_p95_ms", "delivered, p95"),
                 ("ack_p95_ms", "acknowledged, p95")]  # fmt: skip
_BYTES: Final = [("bytes_per_message", "bytes per message")]
_PUBLISHED: Final = Mark("published, interactive: 100 to 1 000 times", RARELY, 100, 1_000)
_CALCULATED: Final = Mark("estimated there, batch: about 100 times", RARELY, 100, 100)
_CACHED: Final = Mark("estimated there, with a cache: below 10", RARELY, 1, 10)
_FIVE_MINUTES: Final = Mark("published, interactive: about 5 minutes", RARELY, 300, 300)
_AWAY: Final = "share of the time that each is offline"
_LOST: Final = "share of copies lost, at each receiver"
_TIMES_CONTENT: Final = "bytes sent, as multiples of the text's"
_BROADCAST: Final = "bytes broadcast per message of 200 B"
_PAIR: Final = "Two people, texts of 1 kB"
_EIGHT: Final = "8 members, 100 messages of 200 B, one every 2 s, 5 % doubled, 10 % overtaken"
_SLOW: Final = "8 members, 60 messages of 200 B, one every 20 s, a tenth lost"
_MANY: Final = "16 members, 60 messages of 200 B, a fifth lost, no prompt answers"
_CROWD: Final = "2 messages of 200 B, a tenth lost, watched for 15 s after the last one; one seed"
_SIZES: Final = "10 to 100 messages of 200 B, a tenth lost; up to 16 members answer at once"

MVDS_PLOTS: Final = (
    Plot(file="mvds-missed-bandwidth", sweep="mvds-missed",
         title="MVDS: bandwidth if every payload may miss its peer",
         about=f"{_PAIR}, one every 5 s each; the model of the published simulation",
         x="loss", x_text="share of payloads that miss their peer",
         ys=[("bytes_per_message", "")], y_text=_TIMES_CONTENT, line=_mode, unit=1_000, log_y=True,
         marks=(_PUBLISHED, _CALCULATED)),
    Plot(file="mvds-missed-copies", sweep="mvds-missed",
         title="MVDS: copies of a text if every payload may miss its peer",
         about=f"{_PAIR}, one every 5 s each; the model of the published simulation",
         x="loss", x_text="share of payloads that miss their peer",
         ys=[("copies_per_message", "")], y_text="times that each text is sent", line=_mode,
         log_y=True, marks=(_CALCULATED,)),
    Plot(file="mvds-missed-latency", sweep="mvds-missed",
         title="MVDS: latency if every payload may miss its peer",
         about=f"{_PAIR}, one every 5 s each; the model of the published simulation",
         x="loss", x_text="share of payloads that miss their peer",
         ys=[("delivery_p50_ms", "")], y_text="seconds to delivery, median", line=_mode,
         unit=1_000, log_y=True, marks=(_FIVE_MINUTES,)),
    Plot(file="mvds-bandwidth", sweep="mvds-offline", title="MVDS: bandwidth and absence",
         about=f"{_PAIR}, sessions of 10 min on average, two texts in each", x="offline",
         x_text=_AWAY, ys=[("bytes_per_message", "")], y_text=_TIMES_CONTENT, line=_mode,
         unit=1_000, log_y=True, marks=(_PUBLISHED, _CALCULATED, _CACHED)),
    Plot(file="mvds-latency-p50", sweep="mvds-offline", title="MVDS: latency and absence, median",
         about=f"{_PAIR}, sessions of 10 min on average, two texts in each", x="offline",
         x_text=_AWAY, ys=[("delivery_p50_ms", "")], y_text="seconds to delivery", line=_mode,
         unit=1_000, log_y=True),
    Plot(file="mvds-latency-p95", sweep="mvds-offline",
         title="MVDS: latency and absence, 95th percentile",
         about=f"{_PAIR}, sessions of 10 min on average, two texts in each", x="offline",
         x_text=_AWAY, ys=[("delivery_p95_ms", "")], y_text="seconds to delivery", line=_mode,
         unit=1_000, log_y=True),
    Plot(file="mvds-network-latency", sweep="mvds-latency", title="MVDS: latency of the network",
         about=f"{_PAIR}, both always online; payloads take up to twice as long by chance",
         x="latency_ms", x_text="seconds that a payload takes at least",
         ys=[("delivery_p50_ms", "")], y_text="seconds to delivery, median", line=_mode,
         unit=1_000, x_unit=1_000, log_x=True, log_y=True),
    Plot(file="mvds-network-bandwidth", sweep="mvds-latency",
         title="MVDS: latency of the network and bandwidth",
         about=f"{_PAIR}, both always online; payloads take up to twice as long by chance",
         x="latency_ms", x_text="seconds that a payload takes at least",
         ys=[("bytes_per_message", "")], y_text=_TIMES_CONTENT, line=_mode, unit=1_000,
         x_unit=1_000, log_x=True),
    Plot(file="mvds-churn", sweep="mvds-churn", title="MVDS: how often people come and go",
         about=f"{_PAIR}, each offline for half the time", x="churn",
         x_text="sessions in an hour of being online", ys=[("delivery_p95_ms", "")],
         y_text="seconds to delivery, p95", line=_mode, unit=1_000, log_x=True, log_y=True),
    Plot(file="mvds-churn-bandwidth", sweep="mvds-churn",
         title="MVDS: how often people come and go, bandwidth",
         about=f"{_PAIR}, each offline for half the time", x="churn",
         x_text="sessions in an hour of being online", ys=[("bytes_per_message", "")],
         y_text=_TIMES_CONTENT, line=_mode, unit=1_000, log_x=True, log_y=True),
    Plot(file="mvds-people", sweep="mvds-people", title="MVDS: more than two people",
         about="Texts of 1 kB for all others; each offline for half the time",
         x="people", x_text="people", ys=[("delivery_p95_ms", "")],
         y_text="seconds to delivery, p95", line=_mode, unit=1_000),
    Plot(file="mvds-people-bandwidth", sweep="mvds-people",
         title="MVDS: more than two people and bandwidth",
         about="Texts of 1 kB for all others; each offline for half the time",
         x="people", x_text="people", ys=[("bytes_per_message", "")], y_text=_TIMES_CONTENT,
         line=_mode, unit=1_000),
    Plot(file="mvds-back-off", sweep="mvds-back-off", title="MVDS: back-off and latency",
         about=f"{_PAIR}, each offline for 70 % of the time; waits double from 4 s",
         x="back_off_longest_ms", x_text="minutes of the longest wait",
         ys=[("delivery_p95_ms", "")], y_text="seconds to delivery, p95", line=_plain_mode,
         unit=1_000, x_unit=60_000, log_x=True, log_y=True),
    Plot(file="mvds-back-off-bandwidth", sweep="mvds-back-off",
         title="MVDS: back-off and bandwidth",
         about=f"{_PAIR}, each offline for 70 % of the time; waits double from 4 s",
         x="back_off_longest_ms", x_text="minutes of the longest wait",
         ys=[("bytes_per_message", "")], y_text=_TIMES_CONTENT, line=_plain_mode, unit=1_000,
         x_unit=60_000, log_x=True, log_y=True),
)  # fmt: skip
SDS_PLOTS: Final = (
    Plot(file="sds-loss-delivery", sweep="sds-loss", title="SDS: loss and delivery",
         about=_EIGHT, x="loss", x_text=_LOST, ys=[("delivery_p95_ms", "")],
         y_text="seconds to delivery, p95", line=_config, unit=1_000, log_y=True),
    Plot(file="sds-loss-acks", sweep="sds-loss", title="SDS: loss and acknowledgement",
         about=_EIGHT, x="loss", x_text=_LOST, ys=[("ack_p95_ms", "")],
         y_text="seconds to acknowledgement, p95", line=_config, unit=1_000, log_y=True),
    Plot(file="sds-loss-overhead", sweep="sds-loss", title="SDS: loss and bandwidth",
         about=_EIGHT, x="loss", x_text=_LOST, ys=[("bytes_per_message", "")], y_text=_BROADCAST,
         line=_config, log_y=True),
    Plot(file="sds-latency", sweep="sds-latency", title="SDS: latency of the network",
         about="8 members, 100 messages of 200 B, one every 2 s, a tenth lost", x="latency_ms",
         x_text="seconds that a copy takes at least, and up to twice as long",
         ys=[("delivery_p95_ms", "delivered, p95"), ("ack_p95_ms", "acknowledged, p95")],
         y_text="seconds", line=_config, unit=1_000, x_unit=1_000, log_x=True, log_y=True),
    Plot(file="sds-latency-overhead", sweep="sds-latency",
         title="SDS: latency of the network and bandwidth",
         about="8 members, 100 messages of 200 B, one every 2 s, a tenth lost", x="latency_ms",
         x_text="seconds that a copy takes at least, and up to twice as long",
         ys=[("bytes_per_message", "")], y_text=_BROADCAST, line=_config, x_unit=1_000,
         log_x=True, log_y=True),
    Plot(file="sds-offline", sweep="sds-offline", title="SDS: absence, without Stores",
         about=f"{_SLOW}; sessions of 10 min on average", x="offline", x_text=_AWAY, ys=_TIMES,
         y_text="seconds", unit=1_000, log_y=True),
    Plot(file="sds-churn", sweep="sds-churn", title="SDS: how often people come and go",
         about=f"{_SLOW}; each offline for 30 % of the time", x="churn",
         x_text="sessions in an hour of being online", ys=_TIMES, y_text="seconds", unit=1_000,
         log_x=True, log_y=True),
    Plot(file="sds-size-times", sweep="sds-size", title="SDS: group size",
         about=_SIZES, x="members", x_text="members", ys=_TIMES, y_text="seconds", unit=1_000,
         log_x=True, log_y=True),
    Plot(file="sds-size-overhead", sweep="sds-size", title="SDS: group size and bandwidth",
         about=_SIZES, x="members", x_text="members", ys=_BYTES, y_text=_BROADCAST, log_x=True,
         log_y=True),
    Plot(file="sds-crowd", sweep="sds-crowd", title="SDS: crowds, what is there after 15 s",
         about=_CROWD, x="members", x_text="members",
         ys=[("delivered_share", "delivered"), ("acked_share", "acknowledged")],
         y_text="share of (message, other member)", log_x=True),
    Plot(file="sds-crowd-overhead", sweep="sds-crowd", title="SDS: crowds and bandwidth",
         about=_CROWD, x="members", x_text="members", ys=_BYTES, y_text=_BROADCAST, log_x=True,
         log_y=True),
    Plot(file="sds-history", sweep="sds-history", title="SDS: length of the causal history",
         about=_MANY, x="history", x_text="entries of the causal history", ys=_TIMES,
         y_text="seconds", unit=1_000, log_x=True),
    Plot(file="sds-history-overhead", sweep="sds-history",
         title="SDS: length of the causal history and bandwidth", about=_MANY, x="history",
         x_text="entries of the causal history", ys=_BYTES, y_text=_BROADCAST, log_x=True),
    Plot(file="sds-bloom", sweep="sds-bloom", title="SDS: size of the filter and bandwidth",
         about="Open channel of 8, 200 messages of 200 B, one a second, a fifth lost",
         x="bloom_capacity", x_text="ids that the filter is made for", ys=_BYTES,
         y_text=_BROADCAST, log_x=True),
    Plot(file="sds-bloom-acks", sweep="sds-bloom", title="SDS: size of the filter and its word",
         about="Open channel of 8, 200 messages of 200 B, one a second, a fifth lost",
         x="bloom_capacity", x_text="ids that the filter is made for",
         ys=[("delivery_p95_ms", "delivered, p95"),
             ("known_p95_ms", "named by a filter or a history, p95")],
         y_text="seconds", unit=1_000, log_x=True),
    Plot(file="sds-sync", sweep="sds-sync", title="SDS: interval of sync messages", about=_MANY,
         x="sync_interval_ms", x_text="seconds between sync messages", ys=_TIMES, y_text="seconds",
         unit=1_000, x_unit=1_000),
    Plot(file="sds-sync-overhead", sweep="sds-sync",
         title="SDS: interval of sync messages and bandwidth", about=_MANY, x="sync_interval_ms",
         x_text="seconds between sync messages", ys=_BYTES, y_text=_BROADCAST, x_unit=1_000),
    Plot(file="sds-back-off", sweep="sds-back-off", title="SDS: back-off",
         about="8 members, 100 messages of 200 B, 30 % lost, no prompt answers; waits double",
         x="back_off_first_ms", x_text="seconds until a message is first sent again", ys=_TIMES,
         y_text="seconds", unit=1_000, x_unit=1_000, log_x=True),
    Plot(file="sds-back-off-overhead", sweep="sds-back-off", title="SDS: back-off and bandwidth",
         about="8 members, 100 messages of 200 B, 30 % lost, no prompt answers; waits double",
         x="back_off_first_ms", x_text="seconds until a message is first sent again", ys=_BYTES,
         y_text=_BROADCAST, x_unit=1_000, log_x=True),
)  # fmt: skip
PLOTS: Final = (*MVDS_PLOTS, *SDS_PLOTS)
