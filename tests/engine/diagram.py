"""The table of felixresp/engine/transitions.py drawn as text.

    python -m tests.engine.diagram

prints what stands between the marks in docs/semantics.md.
"""

from __future__ import annotations

from felixresp.engine.transitions import STATES, TABLE, Step

WIDTH = 100


def draw() -> str:
    return "\n\n".join("\n".join(_draw_state(state)) for state in STATES)


def _draw_state(state: str) -> list[str]:
    steps: dict[Step, list[str]] = {}
    for event, row in TABLE.items():
        steps.setdefault(row[state], []).append(event)
    lines = [state]
    refused = []
    for step, events in steps.items():
        if step.to:
            lines += _wrap("--", events, f"--> {_describe(step)}")
        elif step.gone:
            lines += _wrap("--", events, f"--> {step.gone} where it is gone, else no")
        else:
            refused = events
    return lines + _wrap("no: ", refused, "")


def _describe(step: Step) -> str:
    words = step.to
    if step.attempts:
        words += f", attempts {step.attempts}"
    for other, when in ((step.spent, "spent"), (step.gone, "gone")):
        if other:
            words += f" ({when}: {other})"
    return words


def _wrap(before: str, events: list[str], after: str) -> list[str]:
    lines, line = [], f"    {before}"
    for at, event in enumerate(events):
        piece = event + (" | " if at < len(events) - 1 else after)
        if len(line) + len(piece) > WIDTH and line.strip() != before.strip():
            lines.append(line.rstrip())
            line = "      "
        line += piece
    return [*lines, line.rstrip()]


if __name__ == "__main__":
    print(draw())
