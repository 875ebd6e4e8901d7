#!/bin/sh
# A user's submission of SCRIPT on nodes that share no links, if enough are idle: submit.sh NODES FABRIC SCRIPT [OPTION...]
#
# sinfo is asked first, because it costs little. If too few nodes are idle for PATIENCE seconds, the job goes to the
# queue as any other, so that it does not lose its place. One user at a time chooses nodes (LOCK), until his job has
# started, because two who look at once would choose the same nodes. If the job does not start, its list is dropped.
# Prints the job's number, and whether its nodes were chosen, dropped or left to Slurm (plain).
nodes=$1 fabric=$2 script=$3
shift 3
until=$(($(date +%s) + ${PATIENCE:-3}))

enough_idle() { [ "$(sinfo --noheader --states=idle --partition=all --format=%D | head -n 1)" -ge "$nodes" ] 2>/dev/null; }
pending() { [ "$(squeue --noheader --job="$1" --states=PENDING --format=%T 2>/dev/null)" = PENDING ]; }

exec 9>>"${LOCK:-/tmp/topompi-select.lock}"
while ! enough_idle && [ "$(date +%s)" -lt "$until" ]; do sleep 0.5; done
if enough_idle && flock --wait "${PATIENCE:-3}" 9 && enough_idle; then
    chosen=$(${TOPOMPI:-topompi} slurm select -N "$nodes" --cluster "$fabric" 2>/dev/null) || chosen=
fi
job=$(sbatch --parsable ${chosen:+--nodelist="$chosen"} "$@" "$script" 9>&-) || exit 1
how=plain
if [ -n "$chosen" ]; then
    how=chosen
    for _ in 1 2 3 4 5; do pending "$job" && sleep 0.3; done
    pending "$job" && scontrol update JobId="$job" ReqNodeList= && how=dropped
fi
echo "$job $how"
