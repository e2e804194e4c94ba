"""The protocol line by line: what no well-behaved client sends must not stop the server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import DiscoverResult, ListToolsResult
from tests.contract.agent_support import HostStandIn, RawServer, connect, start_raw

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def host(tmp_path: Path) -> HostStandIn:
    return HostStandIn(tmp_path / "ipc")


@pytest.fixture
async def server(host: HostStandIn) -> AsyncIterator[RawServer]:
    async with start_raw(host.ipc_dir) as raw:
        yield raw


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_version_with_a_handshake_is_echoed(server: RawServer, version: str) -> None:
    server.send("initialize", 1, protocolVersion=version, capabilities={})
    server.send("notifications/initialized")
    server.send("ping", 2)

    agreed, pong = await server.receive(), await server.receive()

    assert agreed["result"]["protocolVersion"] == version
    assert "tools" in agreed["result"]["capabilities"]
    assert pong == {"jsonrpc": "2.0", "id": 2, "result": {}}


async def test_an_unknown_version_is_offered_the_newest_with_a_handshake(server: RawServer) -> None:
    server.send("initialize", 1, protocolVersion="1999-01-01", capabilities={})

    assert (await server.receive())["result"]["protocolVersion"] == "2025-11-25"


async def test_discover_and_list_have_what_the_stateless_era_wants(server: RawServer) -> None:
    server.send("server/discover", 1, _meta=META)
    server.send("tools/list", 2, _meta=META)

    discovered, listed = await server.receive(), await server.receive()

    assert DiscoverResult.model_validate(discovered["result"]).supported_versions == ["2026-07-28"]
    assert discovered["result"]["resultType"] == "complete"
    assert listed["result"]["cacheScope"] in {"public", "private"}
    assert listed["result"]["ttlMs"] >= 0
    assert listed["result"]["resultType"] == "complete"
    assert len(ListToolsResult.model_validate(listed["result"]).tools) == 4


async def test_a_call_is_answered_in_the_era_that_it_was_made_in(server: RawServer) -> None:
    arguments = {"request_id": "none"}
    server.send("tools/call", 1, name="check_answer", arguments=arguments, _meta=META)
    stateless = await server.receive()
    server.send("tools/call", 2, name="check_answer", arguments=arguments)
    handshake = await server.receive()

    assert stateless["result"]["resultType"] == "complete"
    assert "resultType" not in handshake["result"]
    assert stateless["result"]["content"] == handshake["result"]["content"]


async def test_a_later_version_is_refused_with_those_that_work(server: RawServer) -> None:
    meta = META | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    server.send("server/discover", 1, _meta=meta)

    error = (await server.receive())["error"]

    assert error["code"] == -32022
    assert error["data"]["requested"] == "2099-01-01"
    assert {"2026-07-28", "2025-11-25"} <= set(error["data"]["supported"])


async def test_half_an_envelope_is_told_what_it_lacks(server: RawServer) -> None:
    server.send("tools/list", 1, _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"})

    error = (await server.receive())["error"]

    assert error["code"] == -32602
    assert "clientCapabilities" in error["message"]


async def test_the_official_client_settles_on_the_stateless_era(host: HostStandIn) -> None:
    async with connect(host.ipc_dir, "auto") as client:
        assert client.protocol_version == "2026-07-28"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b"42", -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}', -32602),
        (b"x" * (4 * 1024 * 1024 + 1), -32600),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_a_bad_line_is_refused_and_the_next_one_served(
    server: RawServer, line: bytes, code: int
) -> None:
    server.write(line + b"\n")
    refused = await server.receive()
    server.send("ping", "next")
    pong = await server.receive()

    assert refused["error"]["code"] == code
    assert pong["id"] == "next"


async def test_what_needs_no_answer_gets_none(server: RawServer) -> None:
    server.write(b"\n\r\n")
    server.write(b'{"jsonrpc": "2.0", "id": 9, "result": {}}\n')
    server.send("notifications/roots/list_changed")
    server.send("notifications/cancelled", requestId=77)
    server.send("notifications/cancelled", requestId=[])
    server.send("ping", 1)

    assert (await server.receive())["id"] == 1


async def test_an_id_in_use_is_refused_and_its_call_goes_on(
    host: HostStandIn, server: RawServer
) -> None:
    server.call(1, "ask_user", question="Deploy?")
    request = await host.request()
    server.call(1, "ask_user", question="Again?")
    refused = await server.receive()
    host.answer(request, "yes")
    answered = await server.receive()

    assert refused["error"]["code"] == -32600
    assert "yes" in json.dumps(answered["result"])


async def test_a_cancelled_call_is_never_answered(host: HostStandIn, server: RawServer) -> None:
    server.call(1, "ask_user", question="Deploy?")
    request = await host.request()
    server.send("notifications/cancelled", requestId=1)
    await host.request("cancel")
    server.send("notifications/cancelled", requestId=1)
    server.send("ping", 2)
    pong = await server.receive()
    host.answer(request, "yes")
    server.call(3, "check_answer", request_id=request["request_id"])
    checked = await server.receive()

    assert pong["id"] == 2
    assert checked["id"] == 3
    assert "yes" in json.dumps(checked["result"])
