"""What a drift says of a patch, in words that every report shares."""

from __future__ import annotations

from patchkit.drift.values import PatchForecast
from patchkit.model.counting import counted
from patchkit.model.outcome import Status


def forecast_words(forecast: PatchForecast) -> str:
    """What a bump to the tip would do, to be read after those words."""
    conflicts, review = len(forecast.conflicts), len(forecast.review)
    match forecast.status:
        case Status.CONFLICTED:
            what = f"leaves {conflicts} of {counted(len(forecast.files), 'file')} in conflict"
        case Status.REGENERATED:
            what = "regenerates it from its recipe"
        case Status.ABSORBED:
            by = f" ({'; '.join(forecast.absorbed_by)})" if forecast.absorbed_by else ""
            what = f"retires it: upstream has it{by}"
        case Status.WAITING:
            what = f"carries it once {' and '.join(forecast.waits_for)} is resolved"
        case _:
            what = "carries it"
    return f"{what}, {review} to look at" if review else what
