"""Hosts of jobs of PBS and LSF: one name per slot, and no other list is taken for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.inputs.batchhosts import batch_hosts
from topompi.inputs.hostlist import compress, read_hosts

HOSTS = st.lists(
    st.tuples(st.from_regex(r"[a-z]{1,5}[0-9]{1,3}(-ib)?(\.[a-z]{2})?", fullmatch=True), st.integers(1, 4)),
    min_size=1,
    max_size=4,
)
FORMS = {
    "exec_host": lambda pairs: "exec_host = " + "+".join(f"{host}/0*{count}" for host, count in pairs),
    "slots": lambda pairs: "+".join(f"{host}/{slot}" for host, count in pairs for slot in range(count)),
    "exec_vnode": lambda pairs: "+".join(f"({host}:ncpus=9:mpiprocs={count}:mem=4gb)" for host, count in pairs),
    "ncpus": lambda pairs: "exec_vnode=" + "+".join(f"({host}:ncpus={count})" for host, count in pairs),
    "LSB_MCPU_HOSTS": lambda pairs: "LSB_MCPU_HOSTS='" + " ".join(f"{host} {count}" for host, count in pairs) + "'",
    "pairs": lambda pairs: " ".join(f"{host} {count}" for host, count in pairs),
    "LSB_HOSTS": lambda pairs: "LSB_HOSTS=" + " ".join(host for host, count in pairs for _ in range(count)),
}


@pytest.mark.parametrize("form", FORMS)
@given(pairs=HOSTS)
def test_every_form_gives_one_host_per_slot(form: str, pairs: list[tuple[str, int]]) -> None:
    text = FORMS[form](pairs)
    expected = [host for host, count in pairs for _ in range(count)]
    assert batch_hosts(text) == expected
    assert read_hosts(text) == expected


@given(names=st.lists(st.from_regex(r"[a-z]{1,4}[0-9]{1,4}", fullmatch=True), min_size=1, max_size=6))
def test_lists_of_slurm_stay_what_they_are(names: list[str]) -> None:
    assert batch_hosts(compress(names)) is None
    assert batch_hosts(",".join(names)) is None
    assert read_hosts(",".join(names)) == names


@pytest.mark.parametrize("text", ["", "a b", "fabrics/x.txt", "n[1-4]", "1 2 3 4", "n1/x+n2/0", "(n1:ncpus)"])
def test_other_texts_are_none_of_these(text: str) -> None:
    assert batch_hosts(text) is None


def test_a_file_of_a_job_of_pbs_gives_its_hosts(tmp_path: Path) -> None:
    (tmp_path / "job").write_text("exec_host = n01/0*2+n02/0*1\n")
    (tmp_path / "nodes").write_text("n01\nn01\nn02\n")
    assert read_hosts(str(tmp_path / "job")) == read_hosts(str(tmp_path / "nodes")) == ["n01", "n01", "n02"]
