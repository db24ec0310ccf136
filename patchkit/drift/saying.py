"""What a drift says of a patch, in words that every report shares."""

from __future__ import annotations

from patchkit.drift.values import Forecast
from patchkit.model.counting import counted
from patchkit.model.outcome import Status


def forecast_words(forecast: Forecast) -> str:
    """What a bump to the tip would do, to be read after those words."""
    conflicts, review = len(forecast.conflicts), len(forecast.review)
    match forecast.status:
        case Status.CONFLICTED:
            what = f"leaves {conflicts} of {counted(forecast.files, 'file')} in conflict"
        case Status.REGENERATED:
            what = "makes it anew from its recipe"
        case Status.ABSORBED:
            what = "retires it: upstream has it"
        case _:
            what = "carries it"
    return f"{what}, {review} to look at" if review else what
