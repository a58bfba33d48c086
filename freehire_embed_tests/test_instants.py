"""Dates of files: read exactly, or told apart as unreadable; never guessed, never the end of an import."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehire_embed import instants
from freehire_embed.instants import NotADate, instant

NOON = datetime(2026, 7, 8, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [
        "2026-07-08T12:00:00Z",
        "2026-07-08T14:00:00.000000+0200",
        " 2026-07-08 12:00 ",
        "2026-07-08 12:00:00 UTC",
        "2026-07-08 14:00 CEST",
        "2026-07-08T14:00:00 +0200",
        "2026-07-08T14:00+02:00[Europe/Berlin]",
        "20260708T12",
        NOON.timestamp(),
        int(NOON.timestamp()) * 1000,
        Decimal(int(NOON.timestamp())),
        str(int(NOON.timestamp())),
        str(int(NOON.timestamp()) * 1000),
        f"{int(NOON.timestamp()) * 1000}.0",
        f"{int(NOON.timestamp())}.0",
        "Wed, 08 Jul 2026 14:00:00 +0200",
        "Wed, 08 Jul 2026 14:00:00 +02:00",
        "Wed, 08 Jul 2026 14:00:00 CEST",
        "Wed, 08 Jul 2026 07:00:00 -0500 (CDT)",
        "8 Jul 2026 14:00 GMT+2",
        "Wed Jul 08 2026 14:00:00 GMT+0200 (Central European Summer Time)",
        "Wed Jul 08 2026 08:00:00 GMT-0400 (Eastern Daylight Time)",
        "Wed, 08 Jul 2026 12:00:00 GMT",
        "Wed, 08 Jul 2026 12:00:00",
    ],
)
def test_a_date_is_understood(written: object) -> None:
    assert instant(written) == NOON


@pytest.mark.parametrize("written", [None, "", "  ", float("nan")])
def test_no_date_is_none(written: object) -> None:
    assert instant(written) is None


@pytest.mark.parametrize("zone", ["IST", "CST", "PST", "BST", "KST", "XYZ", "PM", "Europe/Berlin", "EST+2"])
@pytest.mark.parametrize("clock", ["Wed, 08 Jul 2026 12:00:00", "2026-07-08 12:00"])
def test_a_zone_that_may_mean_several_offsets_is_not_guessed(clock: str, zone: str) -> None:
    with pytest.raises(NotADate):
        instant(f"{clock} {zone}")


@pytest.mark.parametrize(
    "written",
    [
        "3 days ago",
        "03/04/2026",
        "0001-01-01",
        "9999-12-31T23:59:59-14:00",
        0,
        -1,
        1e20,
        -1e20,
        1e300,
        float("inf"),
        10**400,
        Decimal("1e99999"),
        True,
        [1],
        object(),
        "9" * 5000,
        "1:11" * 100_000,
    ],
)
def test_what_is_no_date_of_a_posting_is_unreadable(written: object) -> None:
    with pytest.raises(NotADate):
        instant(written)


@given(
    st.one_of(st.text(), st.floats(), st.integers(), st.decimals(allow_nan=False), st.datetimes(), st.dates())
)
def test_any_value_is_a_date_of_this_age_or_unreadable(value: object) -> None:
    try:
        when = instant(value)
    except NotADate:
        return
    assert when is None or 1990 <= when.year < 2100


def test_each_zone_that_is_believed_means_one_offset_wherever_it_is_used() -> None:
    used: dict[str, set[timedelta | None]] = {}
    for name in available_timezones():
        for days in range(0, 365 * 26, 91):
            when = (datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days)).astimezone(ZoneInfo(name))
            used.setdefault(str(when.tzname()), set()).add(when.utcoffset())
    for name, offset in instants._ZONES.items():
        given_offset = datetime.strptime(offset, "%z").utcoffset()
        assert used.get(name, {given_offset}) == {given_offset}, name
