"""The live view: what the owner of a run shows while it trains.

Room: deploy. May import: rich, league.sprt (numpy). Everything shown comes from one RunStatus; the
view keeps no figures of its own, so ``cardleague status`` draws the same picture from the file.

On a terminal of 80 x 24 or more the picture is redrawn in place; anywhere else there is one plain
line at most every PLAIN_EVERY_S seconds, and one for every event.
"""

from __future__ import annotations

import math

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from deploy.config import RunConfig
from deploy.status import RunStatus, WorkerStatus
from league.config import GateConfig
from league.messages import GateOutcome, GateStatus
from league.sprt import Bounds, Sprt, bounds

PLAIN_EVERY_S = 10.0
MIN_WIDTH = 60
WIDE = 100
"""Width from which there is room for figures of lesser interest."""
BAR_WIDTH = 30
FIXED_LINES = 16
"""Lines that are drawn whatever the run does; workers and gate outcomes share the rest."""
MAX_STRENGTHS = 3
"""Evaluations in the picture; the others are in ``cardleague compare`` and the metrics."""
OUTCOME_STYLE = {"promoted": "green", "rejected": "red", "undecided": "yellow"}
STATE_STYLE = {"running": "green", "paused": "yellow", "stopping": "yellow", "stopped": "bold"}
UNKNOWN = "–"


class LiveView:
    """Draws RunStatus after RunStatus on standard output."""

    def __init__(self, config: RunConfig, console: Console | None = None) -> None:
        self._config = config
        self._console = console or Console()
        self._live: Live | None = None
        self._plain_at = -math.inf
        self._plain_event: tuple[object, ...] = ()
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def update(self, status: RunStatus) -> None:
        """Show ``status``."""
        if self._live is not None:
            size = self._console.size
            picture = draw(status, gate_bounds(self._config.gate), size.width, size.height - 1)
            self._live.update(picture, refresh=True)
            return
        event = _events(status)
        if event == self._plain_event and status.updated_at < self._plain_at + PLAIN_EVERY_S:
            return
        self._plain_at, self._plain_event = status.updated_at, event
        self._console.print(plain_line(status), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the last picture on the terminal; repeated calls do nothing."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _events(status: RunStatus) -> tuple[object, ...]:
    """Return what is worth a line at once when it changes."""
    gates = (status.num_promoted, status.num_rejected, status.num_undecided)
    restarts = (status.worker_restarts, status.server_restarts)
    return status.state, status.champion, gates, restarts, tuple(status.alerts)


def print_status(status: RunStatus, gate: GateConfig, console: Console | None = None) -> None:
    """Draw ``status`` once, with all its workers."""
    console = console or Console()
    height = FIXED_LINES + len(status.workers) + max(1, len(status.outcomes)) + len(status.alerts)
    console.print(draw(status, gate_bounds(gate), console.size.width, height))


def gate_bounds(gate: GateConfig) -> Bounds:
    """Return the boundaries between which the gate's log-likelihood ratio moves."""
    return bounds(Sprt(p0=gate.p0, p1=gate.p1, alpha=gate.alpha, beta=gate.beta))


# --- words and numbers ----------------------------------------------------------------------------


def number(value: float, digits: int = 0) -> str:
    """Return a figure for people; ``–`` for what is not known yet."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else UNKNOWN


def rate(value: float) -> str:
    """Return a rate: small ones with a decimal."""
    return number(value, 1 if abs(value) < 100 else 0)


def duration(seconds: float) -> str:
    """Return ``m:ss`` or ``h:mm:ss``."""
    whole = max(0, round(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def size(num_bytes: float) -> str:
    """Return bytes as MB or GB."""
    return f"{num_bytes / 1e9:.2f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.0f} MB"


def version(number_: int) -> str:
    """Return ``v12``; ``–`` before there is one."""
    return f"v{number_}" if number_ >= 0 else UNKNOWN


def invocation_s(status: RunStatus) -> float:
    """Return how long this invocation has trained, as far as ``status`` says."""
    return max(0.0, status.updated_at - status.started_at) if status.started_at else 0.0


def outcome_words(outcome: GateOutcome) -> str:
    """Return one gate outcome in words."""
    return (
        f"{version(outcome.candidate)} {outcome.outcome} against {version(outcome.champion)}, "
        f"score {outcome.score:.3f}, {outcome.num_decided} decided pairs of {outcome.num_pairs}"
    )


def plain_line(status: RunStatus) -> str:
    """Return ``status`` in one line, for logs."""
    totals, metrics, gate = status.totals, status.metrics, status.gate
    limited = status.limit_s and status.state != "starting"  # which is not counted
    limit = f" of {duration(status.limit_s)}" if limited else ""
    parts = [
        f"{duration(invocation_s(status))}{limit} {status.state}",
        f"games {number(totals.games)} ({rate(status.games_per_s)}/s)",
        f"plies {rate(status.plies_per_s)}/s",
        f"simulations {rate(status.simulations_per_s)}/s",
        f"examples {number(totals.examples)}",
        f"window {number(status.window_positions)}",
        f"step {number(status.step)}",
        f"policy loss {number(metrics.policy_loss, 3)} "
        f"(held out {number(metrics.held_out_policy_loss, 3)})",
        f"R² {number(metrics.held_out_value_r2, 3)}",
        f"newest {version(status.newest)} champion {version(status.champion)}",
    ]
    if gate.candidate >= 0:
        parts.append(f"gate {version(gate.candidate)} LLR {gate.llr:+.2f}")
    if status.message:
        parts.append(status.message)
    parts += [f"ALERT {alert}" for alert in status.alerts]
    return " | ".join(parts)


# --- the picture ----------------------------------------------------------------------------------


def draw(status: RunStatus, gate: Bounds, width: int, height: int) -> RenderableType:
    """Return the whole picture, at most ``height`` lines for a terminal ``width`` wide."""
    width = max(width, MIN_WIDTH)
    num_workers, num_outcomes = _share_lines(status, height - FIXED_LINES - len(status.alerts))
    title = Text.assemble(
        ("cardleague ", "bold"), f"{status.run} · {status.game} {status.rules}".rstrip()
    )
    lines: list[RenderableType] = [
        Rule(title, align="left", style="cyan"),
        _state(status),
        _rates(status),
        _window(status),
        _learning(status),
        _models(status, width >= WIDE),
        *_strength(status),
        *_gate(status.gate, gate),
        *_outcomes(status, num_outcomes),
        Rule(style="dim"),
        _workers(status, num_workers),
        *[Text(f"! {alert}", style="bold red", no_wrap=True) for alert in status.alerts],
        _footer(status),
    ]
    return Group(*lines)


def _share_lines(status: RunStatus, free: int) -> tuple[int, int]:
    """Return how many workers and gate outcomes are shown in ``free`` lines, at least one each."""
    workers, outcomes = len(status.workers), max(1, len(status.outcomes))
    if workers > free - 1:  # one line says how many are hidden
        return max(1, free - 2), 1
    return workers, max(1, min(outcomes, free - workers))


def _line(*parts: str | tuple[str, str]) -> Text:
    text = Text.assemble(*parts)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _label(word: str) -> tuple[str, str]:
    return (f"{word:<11}", "dim")


def _state(status: RunStatus) -> Text:
    spent = invocation_s(status)
    style = STATE_STYLE.get(status.state, "bold")
    parts: list[str | tuple[str, str]] = [_label("state"), (status.state, style)]
    if status.state == "stopped":
        pass
    elif status.limit_s and status.state == "starting":
        parts.append(f"   {duration(spent)}, then {duration(status.limit_s)}")
    elif status.limit_s:
        left = max(0.0, status.limit_s - spent)
        parts.append(f"   {duration(spent)} of {duration(status.limit_s)}, {duration(left)} left")
    else:
        parts.append(f"   {duration(spent)}, until Ctrl-C")
    parts.append((f"   trained {duration(status.elapsed_s)} in all", "dim"))
    if status.resident_bytes:
        parts.append((f"   {size(status.resident_bytes)}", "dim"))
    return _line(*parts)


def _rates(status: RunStatus) -> Table:
    totals = status.totals
    table = _figures(("", "games", "plies", "simulations", "examples", "updates"))
    per_s = (
        status.games_per_s,
        status.plies_per_s,
        status.simulations_per_s,
        status.examples_per_s,
        status.updates_per_s,
    )
    counts = (totals.games, totals.plies, totals.simulations, totals.examples, status.step)
    table.add_row(Text("per second", "dim"), *[rate(value) for value in per_s])
    table.add_row(Text("total", "dim"), *[number(value) for value in counts])
    return table


def _figures(heads: tuple[str, ...]) -> Table:
    """Return a grid of right-aligned figures under ``heads``; the first column is words."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    for _ in heads[1:]:
        table.add_column(justify="right", no_wrap=True)
    first, *others = heads
    table.add_row(Text(f"{first:<11}", "dim"), *[Text(f"{head:>11}", "dim") for head in others])
    return table


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """Return a bar that is full to ``share`` (0 to 1)."""
    full = round(width * min(1.0, max(0.0, share)))
    return "█" * full + "░" * (width - full)


def _window(status: RunStatus) -> Text:
    share = status.window_positions / status.window_capacity if status.window_capacity else 0.0
    lag = status.metrics.policy_lag
    return _line(
        _label("window"),
        (bar(share), "blue"),
        f" {number(status.window_positions)} of {number(status.window_capacity)}",
        (f"   lag {number(lag, 1)} versions", "dim"),
    )


def _learning(status: RunStatus) -> Table:
    metrics = status.metrics
    table = _figures(("learning", "policy loss", "value loss", "value R²", "outcome R²"))
    table.add_row(
        Text("training", "dim"),
        number(metrics.policy_loss, 3),
        number(metrics.value_loss, 3),
        number(metrics.value_r2, 3),
        "",
    )
    table.add_row(
        Text("held out", "dim"),
        number(metrics.held_out_policy_loss, 3),
        number(metrics.held_out_value_loss, 3),
        Text(number(metrics.held_out_value_r2, 3), "bold"),
        number(metrics.held_out_outcome_r2, 3),
    )
    more = Text(
        f"entropy {number(metrics.entropy, 3)}\n"
        f"scale {number(metrics.held_out_scale, 2)}\n"
        f"gradient {number(metrics.gradient_norm, 2)}",
        style="dim",
        no_wrap=True,
    )
    beside = Table.grid(padding=(0, 3))
    beside.add_row(table, more)
    return beside


def _models(status: RunStatus, wide: bool) -> Text:
    return _line(
        _label("models"),
        "newest ",
        (version(status.newest), "bold"),
        "   champion ",
        (version(status.champion), "bold green"),
        f"   {status.num_promoted} promoted, {status.num_rejected} rejected, "
        f"{status.num_undecided} undecided",
        (f"   pool {len(status.pool)}" if wide else "", "dim"),
    )


def _strength(status: RunStatus) -> list[Text]:
    """Return a line with the last evaluations of the champion, or of what was measured at all."""
    shown = [r for r in status.evaluations if r.is_champion] or status.evaluations
    if not shown:
        return []
    parts: list[str | tuple[str, str]] = [_label("strength")]
    for record in shown[:MAX_STRENGTHS]:
        how = f"{record.simulations}" if record.simulations else "policy"
        half = 50 * (record.win_rate_high - record.win_rate_low)
        parts.append(f"{version(record.version)} {how} {100 * record.win_rate:.0f} ± {half:.0f} % ")
        parts.append((f"{record.opponent}   ", "dim"))
    return [_line(*parts)]


def llr_bar(llr: float, gate: Bounds, width: int = BAR_WIDTH) -> Text:
    """Return the ratio's way from 0 towards one of its two bounds."""

    def place(value: float) -> int:
        share = (min(max(value, gate.lower), gate.upper) - gate.lower) / (gate.upper - gate.lower)
        return min(width - 1, int(width * share))

    zero, at = place(0.0), place(llr)
    text = Text()
    for i in range(width):
        inside = min(zero, at) <= i <= max(zero, at)
        style = ("green" if at >= zero else "red") if inside else "dim"
        text.append("┃" if i == zero else "█" if inside else "─", style)
    return text


def _gate(status: GateStatus, gate: Bounds) -> list[RenderableType]:
    if status.candidate < 0:
        return [_line(_label("gate"), "idle: waits for a newer version"), Text("")]
    losses = status.num_decided - status.wins
    return [
        _line(
            _label("gate"),
            f"{version(status.candidate)} against {version(status.champion)}: "
            f"{number(status.num_pairs)} pairs, {status.wins} won, {losses} lost, "
            f"{status.num_pairs - status.num_decided} split",
        ),
        _line(_label("LLR"), f"reject {gate.lower:.2f} ")
        + llr_bar(status.llr, gate)
        + Text(f" {gate.upper:.2f} promote   {status.llr:+.2f}"),
    ]


def _outcomes(status: RunStatus, count: int) -> list[Text]:
    last = status.outcomes[-count:][::-1]
    lines = []
    for i, outcome in enumerate(last):
        style = OUTCOME_STYLE.get(outcome.outcome, "")
        lines.append(_line(_label("last gates" if i == 0 else ""), (outcome_words(outcome), style)))
    return lines or [_line(_label("last gates"), "none yet")]


def _workers(status: RunStatus, count: int) -> RenderableType:
    if not status.workers:
        stopped = status.state == "stopped"
        return _line(("no process runs" if stopped else "no process has answered yet", "dim"))
    table = Table.grid(padding=(0, 1))
    heads = ("process", "node", "model", "plies/s", "sims/s", "network", "outbox", "memory", "")
    for i in range(len(heads)):
        table.add_column(justify="left" if i < 2 or i == 8 else "right", no_wrap=True)
    table.add_row(*[Text(f"{head:<11}" if i == 0 else head, "dim") for i, head in enumerate(heads)])
    for worker in status.workers[:count]:
        table.add_row(*_worker(worker))
    hidden = len(status.workers) - count
    if hidden > 0:
        return Group(table, _line((f"and {hidden} more (cardleague status shows all)", "dim")))
    return table


def _worker(worker: WorkerStatus) -> list[str | Text]:
    playing = worker.role == "selfplay"
    notes = [f"restarted {worker.restarts}×"] if worker.restarts else []
    if not worker.alive:
        notes.insert(0, "down")
    elif worker.last_reply_s > 5:
        notes.append(f"silent {duration(worker.last_reply_s)}")
    return [
        Text(f"{worker.role} {worker.slot}", "" if worker.alive else "red"),
        worker.node or UNKNOWN,
        version(worker.model_version),
        worker.device if worker.role == "learner" else rate(worker.plies_per_s),
        rate(worker.simulations_per_s) if playing else "",
        f"{worker.evaluate_share:.0%}" if playing else "",
        number(worker.outbox) if playing else "",
        size(worker.resident_bytes),
        Text(", ".join(notes), "yellow"),
    ]


def _footer(status: RunStatus) -> Text:
    where = f"metrics {status.metrics_url}" if status.metrics_url else ""
    return _line(
        (status.message, "bold"), "   " if status.message and where else "", (where, "dim")
    )
