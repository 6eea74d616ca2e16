"""The way of an agent through `flatout mcp`, with the official client: run, why, change, prove. Arguments: flatout, a project's folder."""

import asyncio
import os
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters

FLATOUT, FOLDER = sys.argv[1:]
TRAIN = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.randn(8), torch.randn(1)

torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(Slow(), batch_size=16, num_workers=0):
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
TOOLS = {"run", "job", "runs", "diagnose", "account", "explain", "lint", "apply", "compare", "tune", "report"}


class Agent:
    def __init__(self, client):
        self.client = client
        self.progress = 0

    async def call(self, tool, **arguments):
        async def progressed(*_):
            self.progress += 1

        result = await self.client.call_tool(tool, arguments, progress_callback=progressed)
        (content,) = result.content
        assert not result.is_error, f"{tool}: {content.text}"
        assert len(content.text.encode()) <= 4000, f"{tool}: {len(content.text)} bytes"
        return result.structured_content

    async def refusal(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result
        return result.content[0].text


async def main():
    with open(os.path.join(FOLDER, "train.py"), "w") as file:
        file.write(TRAIN)
    environment = {**os.environ, "FLATOUT_HOME": os.path.join(FOLDER, "home")}
    parameters = StdioServerParameters(command=FLATOUT, args=["--lang", "en", "mcp", "--folder", FOLDER], env=environment)
    async with Client(parameters, mode="legacy") as client:
        assert client.protocol_version == "2025-11-25", client.protocol_version
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        assert (await Agent(client).call("runs"))["runs"] == []
    async with Client(parameters) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        assert client.server_info.name == "flatout" and client.instructions
        # The client checks each answer against the output schema of its tool only once it has the list.
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        await journey(Agent(client))
    print("all answered")


async def journey(agent):
    command = [sys.executable, "train.py"]
    started = await agent.call("run", command=command, name="baseline", steps=400, wait_s=0.2)
    assert started["state"] == "running", started
    baseline = await agent.call("job", job=started["job"], wait_s=300)
    assert baseline["state"] == "ended" and agent.progress > 0, baseline
    rules = [finding["rule"] for finding in baseline["findings"]]
    assert "loader-without-workers" in rules, rules
    first = baseline["findings"][rules.index("loader-without-workers")]
    whole = await agent.call("diagnose", run=baseline["run"], finding=first["id"])
    assert any(fix["how"] == "setting" for fix in whole["finding"]["fixes"]), whole
    page = await agent.call("explain", rule=first["rule"], section="Fix")
    assert "persistent_workers" in page["page"], page
    account = await agent.call("account", run=baseline["run"])
    assert any("time.sleep" in row.get("source", "") for row in account["rows"]), account
    second = await agent.call("run", command=command, name="candidate", steps=400, settings=["loader.num_workers=2"], wait_s=300)
    assert second["state"] == "ended", second
    compared = await agent.call("compare", runs=[baseline["run"], second["run"]], fail_if="slower=90%")
    assert any(row["setting"].endswith("num_workers") for row in compared["settings"]), compared
    written = await agent.call("apply", run=baseline["run"], settings=["loader.num_workers=2"])
    assert "num_workers=2" in written["diff"] and not written["written"], written
    tuned = await agent.call("tune", command=command, knobs=["num_workers"], max_trials=2, trial_seconds=1, budget_s=60, wait_s=300)
    assert tuned["state"] == "ended" and tuned.get("trials"), tuned
    linted = await agent.call("lint", paths=["fixable.py"])
    safe = next(finding for finding in linted["findings"] if finding.get("fix") == "safe")
    assert "diff" in (await agent.call("lint", paths=["fixable.py"], finding=safe["id"]))["finding"]
    assert (await agent.call("apply", paths=["fixable.py"], findings=[safe["id"]], write=True))["written"]
    assert (await agent.call("report", run="candidate"))["figures"]
    assert {run["name"] for run in (await agent.call("runs"))["runs"]} >= {"baseline", "candidate"}
    assert "is outside" in await agent.refusal("lint", paths=["/etc"])
    with open(os.path.join(FOLDER, "train.py")) as file:
        assert file.read() == TRAIN, "the program was changed without being asked"


asyncio.run(main())
