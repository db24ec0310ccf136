"""Dates: a mail's to git's raw form ("1700000000 +0100") and back, independent of the locale."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ZONES = {"": "+0000", "Z": "+0000", "UT": "+0000", "UTC": "+0000", "GMT": "+0000"}

_EPOCH = datetime(1970, 1, 1)
_RAW = re.compile(r"@?(-?\d{1,18}) ([+-]\d{4})")
_ZONE = r"\s*(?P<zone>[+-]\d{2}:?\d{2}|Z|UTC?|GMT|)(?:\s*\(.*\))?"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?"
_MONTH = r"(?P<month>[A-Za-z]{3})[a-z]*"
# Compiled as far as they are tried: nearly always one.
_FORMS = (
    # Fri, 21 Nov 2026 11:00:00 +0100
    rf"(?:\w+,\s*)?(?P<day>\d{{1,2}})\s+{_MONTH}\s+(?P<year>\d{{4}})\s+{_TIME}{_ZONE}",
    # Fri Nov 21 11:00:00 2026 +0100
    rf"\w+\s+{_MONTH}\s+(?P<day>\d{{1,2}})\s+{_TIME}\s+(?P<year>\d{{4}}){_ZONE}",
    # 2026-11-21 11:00:00 +0100, 2026-11-21T11:00:00Z
    rf"(?P<year>\d{{4}})-(?P<month>\d{{2}})-(?P<day>\d{{2}})[T ]{_TIME}{_ZONE}",
)


def parse_date(text: str) -> str:
    """A date of a mail, of git or of ISO 8601 in git's raw form; empty for any other text."""
    text = text.strip()
    raw = _RAW.fullmatch(text)
    if raw:
        return f"{int(raw[1])} {raw[2]}"
    for form in _FORMS:
        match = re.fullmatch(form, text)
        if match:
            return _from_fields(match.groupdict())
    return ""


def format_date(raw: str) -> str:
    """The mail form of a raw date; raw with `@` before it where there is no such form."""
    match = _RAW.fullmatch(raw)
    if match is None:
        return ""
    seconds, zone = int(match[1]), match[2]
    try:
        moment = _EPOCH.replace(tzinfo=timezone.utc) + timedelta(
            seconds=seconds + _zone_seconds(zone)
        )
    except OverflowError:
        return f"@{raw}"
    if moment.year < 1000 or int(zone[3:]) > 59:
        return f"@{raw}"
    day, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]
    return f"{day}, {moment.day} {month} {moment.year} {moment:%H:%M:%S} {zone}"


def _from_fields(fields: dict[str, str | None]) -> str:
    month = fields["month"] or ""
    zone = (fields["zone"] or "").replace(":", "")
    zone = _ZONES.get(zone, zone)
    try:
        moment = datetime(
            int(fields["year"] or 0),
            int(month) if month.isdigit() else _MONTHS.index(month.title()) + 1,
            int(fields["day"] or 0),
            int(fields["hour"] or 0),
            int(fields["minute"] or 0),
            min(int(fields["second"] or 0), 59),
        )
    except ValueError:
        return ""
    return f"{(moment - _EPOCH) // timedelta(seconds=1) - _zone_seconds(zone)} {zone}"


def _zone_seconds(zone: str) -> int:
    seconds = (int(zone[1:3]) * 60 + int(zone[3:5])) * 60
    return -seconds if zone[0] == "-" else seconds
