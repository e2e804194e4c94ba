"""`pynchy whatsapp` and what `pynchy doctor` says of it, with the real child."""

import asyncio
import json
import stat
from pathlib import Path

import pytest
from tests.acceptance.support import Host
from tests.standins.whatsapp import WhatsAppStandIn
from tests.waiting import until
from tests.whatsapp.support import ANA, TEAM, group_table, pair, settings


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A data folder and settings; no host runs on it."""
    return Host(tmp_path / "data", settings(group_table("team", TEAM)))


async def run(host: Host, *arguments: str) -> tuple[int, str, str]:
    return await host.cli(*arguments, "--config", str(host.config))


async def test_a_phone_is_paired_by_the_code_that_it_scans(
    whatsapp: WhatsAppStandIn, host: Host
) -> None:
    whatsapp.paired = False
    pairing = asyncio.create_task(run(host, "whatsapp", "pair"))
    await until(lambda: whatsapp.connected, "the child")

    whatsapp.scan()
    code, told, _ = await pairing

    assert (code, "█" in told or "▀" in told) == (0, True)
    assert "Paired with +491700000000." in told
    session = host.data / "whatsapp" / "session.db"
    assert stat.S_IMODE(session.stat().st_mode) == 0o600
    assert stat.S_IMODE(session.parent.stat().st_mode) == 0o700
    again = await run(host, "whatsapp", "pair")
    assert again[0] != 0
    assert "already" in again[2]


async def test_a_phone_is_paired_by_letters(whatsapp: WhatsAppStandIn, host: Host) -> None:
    whatsapp.paired = False
    pairing = asyncio.create_task(run(host, "whatsapp", "pair", "--phone", "+49 (170) 000-0000"))
    await until(lambda: whatsapp.asked_phone, "a code")

    whatsapp.scan()
    code, told, _ = await pairing

    assert whatsapp.asked_phone == "491700000000"
    assert (code, "ABCD-EFGH" in told) == (0, True)


async def test_logging_out_tells_whatsapp_and_removes_the_session(
    whatsapp: WhatsAppStandIn, host: Host
) -> None:
    pair(host.data)
    (host.data / "whatsapp" / "session.db").touch(mode=0o600)
    whatsapp.groups = {TEAM: "The team"}

    listed = await run(host, "whatsapp", "groups")
    code, told, _ = await run(host, "whatsapp", "logout")

    assert listed[:2] == (0, f"{TEAM}  The team\n")
    assert (code, told, whatsapp.paired) == (0, "Logged out.\n", False)
    assert not (host.data / "whatsapp" / "session.db").exists()
    code, _, told = await run(host, "whatsapp", "groups")
    assert (code, "pynchy whatsapp pair" in told) == (1, True)


async def test_without_whatsapp_logging_out_fails_unless_forced(
    whatsapp: WhatsAppStandIn, host: Host
) -> None:
    pair(host.data)
    whatsapp.stop()

    code, _, told = await run(host, "whatsapp", "logout")
    forced = await run(host, "whatsapp", "logout", "--force")

    assert (code, "dial" in told) == (1, True)
    assert forced[0] == 0
    assert not (host.data / "whatsapp" / "account.json").exists()


async def test_the_doctor_looks_at_library_session_chats_and_people(host: Host) -> None:
    host.configure(
        settings(group_table("team", f"+{ANA}"), group_table("nobody", TEAM, allowed=()))
    )

    _, told, _ = await run(host, "doctor", "--json")

    found = {f["check"]: f for f in json.loads(told) if f["check"].startswith("whatsapp")}
    assert found["whatsapp library"]["status"] == "ok", found
    assert "neonize 0.5" in found["whatsapp library"]["detail"]
    assert "pynchy whatsapp pair" in found["whatsapp session"]["fix"]
    assert found["whatsapp people of team"]["status"] == "ok"
    assert found["whatsapp chat of nobody"]["status"] == "ok"
    assert found["whatsapp people of nobody"]["detail"] == "nobody may answer"
    assert not (host.data / "whatsapp").exists()


async def test_pairing_offline_says_that_whatsapp_cannot_be_reached(
    whatsapp: WhatsAppStandIn, host: Host
) -> None:
    whatsapp.paired = False
    Path(whatsapp.address).unlink()

    code, _, told = await run(host, "whatsapp", "pair")

    assert code == 1
    assert "WhatsApp cannot be reached" in told
    assert "run this again" in told
    assert "trying again" not in told
