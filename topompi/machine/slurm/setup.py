"""The files that an administrator needs for the bridge, and how to undo them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from ..daemon.unit import Unit
from .view import BridgeRules

__all__ = ["FIELDS", "guard", "partition_lines", "service", "steps"]

# Fields of scontrol show partition that are limits, and so hold for the bridge's partitions, too.
_KEPT = (
    *("Nodes", "AllowGroups", "AllowAccounts", "AllowQos", "DenyAccounts", "DenyQos", "AllocNodes"),
    *("DefaultTime", "MaxTime", "MaxNodes", "MinNodes", "MaxCPUsPerNode", "GraceTime", "QoS", "DefMemPerNode"),
    *("DefMemPerCPU", "MaxMemPerNode", "MaxMemPerCPU", "LLN", "DisableRootJobs"),
)
_DEFAULTS = {
    *("AllowGroups=ALL", "AllowAccounts=ALL", "AllowQos=ALL", "AllocNodes=ALL", "DefaultTime=NONE"),
    *("MaxNodes=UNLIMITED", "MinNodes=0", "MinNodes=1", "MaxCPUsPerNode=UNLIMITED", "GraceTime=0", "QoS=N/A", "LLN=NO"),
    *("DefMemPerNode=UNLIMITED", "MaxMemPerNode=UNLIMITED", "DisableRootJobs=NO"),
}
FIELDS = (*_KEPT, "PriorityTier")
TIERS = (
    10  # tiers between the usual partition and the bridge's, whose jobs would else wait behind those of the usual one
)

_GUARD = """\
-- Keeps the partition "{run}" for the topompi bridge: job_submit.lua, beside slurm.conf (JobSubmitPlugins=lua).
-- Slurm's own options for a partition (RootOnly, AllowGroups) would stop the bridge's jobs, too, because Slurm checks
-- them with the job's user.

local function names_run(partitions)
   for word in string.gmatch(partitions or "", "[^,]+") do
      if word == "{run}" then
         return true
      end
   end
   return false
end

function slurm_job_submit(job, partitions, uid)
   if uid ~= 0 and names_run(job.partition) then
      slurm.log_user("partition {run}: expecting jobs from the bridge only; submit to {door}")
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   if uid ~= 0 and (names_run(job.partition) or names_run(record.partition)) then
      slurm.log_user("partition {run}: expecting changes by the bridge only")
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

return slurm.SUCCESS
"""

_STEPS = """\
To begin
  1. Add the lines above to slurm.conf, and change Default=YES of the partition {usual} to NO.
  2. Store the guard as job_submit.lua beside slurm.conf and set JobSubmitPlugins=lua; skip it if you trust your users.
  3. scontrol reconfigure. From now on jobs of the default partition {door} start by Slurm's own placement.
  4. Look first: topompi slurm bridge --dry-run --policy isolated --topology SOURCE
  5. Store the unit as /etc/systemd/system/topompi-bridge.service; systemctl enable --now topompi-bridge

To undo
  1. systemctl disable --now topompi-bridge. The door is open again: Slurm itself places all waiting jobs.
     Without systemd: scontrol update PartitionName={door} State=UP
  2. Set Default=YES for {usual}; when no job is left in {door} and {run}, remove their lines and the guard,
     and run scontrol reconfigure. The bridge keeps nothing else; its notes are in AdminComment of waiting jobs.
"""


def partition_lines(policy: BridgeRules, usual: Mapping[str, str]) -> str:
    """Return the lines for slurm.conf that make the bridge's two partitions, with the limits of the usual one.

    The door is up there, so that Slurm itself places jobs until the bridge starts, also after a restart of slurmctld.

    :param policy: names of the partitions.
    :param usual: fields of the usual partition, as ``scontrol show partition`` names them; may be empty.
    """
    limits = [f"{name}={usual[name]}" for name in _KEPT if name in usual]
    kept = " ".join(["Nodes=ALL"] * ("Nodes" not in usual) + [word for word in limits if word not in _DEFAULTS])
    tier = int(usual.get("PriorityTier", "1"))
    # Whole nodes, because a link below a node has no second user then, and the allocators give whole nodes.
    shared = f"{kept} OverSubscribe=EXCLUSIVE State=UP"
    return (
        f"PartitionName={policy.door} {shared} PriorityTier={tier} Default=YES\n"
        f"PartitionName={policy.run} {shared} PriorityTier={tier + TIERS}\n"
    )


def guard(policy: BridgeRules) -> str:
    """Return a script for Slurm's plugin job_submit/lua, by which only root puts jobs into the bridge's partition.

    :param policy: names of the partitions.
    """
    return _GUARD.format(run=policy.run, door=policy.door)


def service(policy: BridgeRules, command: Sequence[str]) -> str:
    """Return a systemd unit that runs the bridge, restarts it, and opens the door whenever it ends, even by a kill.

    :param policy: names of the partitions.
    :param command: command line of the bridge, with absolute paths.
    """
    scontrol = shutil.which("scontrol") or "/usr/bin/scontrol"
    own = (
        f"ExecStopPost={scontrol} update PartitionName={policy.door} State=UP",
        "Restart=always",
        "# Slurm takes these commands from root or the user slurm.",
        "User=root",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        "PrivateDevices=yes",
    )
    return Unit("Places the jobs of Slurm by the network's topology", command, own, stop_seconds=30.0).text()


def steps(policy: BridgeRules) -> str:
    """Return the steps to begin with the bridge, and those to undo it.

    :param policy: names of the partitions.
    """
    return _STEPS.format(door=policy.door, run=policy.run, usual=policy.usual)
