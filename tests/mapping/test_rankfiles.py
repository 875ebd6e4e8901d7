"""Files for launchers: round trips, and errors in them."""

import json
import shlex
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slurm import CORES, slurm_cluster  # noqa: F401 - a fixture
from tests.support import examples, shared_data
from topompi.mapping.machine import Machine
from topompi.mapping.mapping import Mapping
from topompi.mapping.rankfiles import WRITERS, RankFileError, read_mapping, write_mapping
from topompi.mapping.rankfiles.slurm import plane_size

HOLDS_SLOTS = ("rankfile", "rankfile5", "json")


@st.composite
def mappings(draw, holes=True):
    """A mapping on hosts with unequal slots, some of them left empty."""
    slots = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(sum))
    machine = Machine.tree([f"n{at:02d}.site" for at in range(len(slots))], slots, [], [1, 0])
    order = draw(st.permutations(range(sum(slots))))
    ranks = draw(st.integers(1, sum(slots))) if holes else sum(slots)
    return Mapping.of(order[:ranks], machine.hosts, machine.slots), machine


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("maps")


def written(folder, text):
    path = folder / "map"
    path.write_text(text, encoding="utf-8")
    return path


def lines_of(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


@examples(150)
@given(mappings(), st.sampled_from([form for form in WRITERS if form not in ("mpich", "plane")]), st.booleans())
def test_a_mapping_comes_back_from_every_format(folder, case, form, machine_given):
    mapping, machine = case
    path = written(folder, write_mapping(mapping, form))
    back = read_mapping(path, machine if machine_given else None)
    assert back.host_of_rank.tolist() == mapping.host_of_rank.tolist()
    assert back.hosts == mapping.hosts
    assert back.slots.tolist() == mapping.slots.tolist()
    if form in HOLDS_SLOTS:
        assert back.slot_of_rank.tolist() == mapping.slot_of_rank.tolist()


@examples(80)
@given(mappings(holes=False))
def test_the_rank_order_is_the_inverse_vector(folder, case):
    mapping, _ = case
    text = write_mapping(mapping, "mpich")
    ranks = [int(word) for line in lines_of(text) for word in line.split(",")]
    assert ranks == mapping.rank_of_slot.tolist()
    assert [ranks[slot] for slot in mapping.slot_of_rank] == list(range(mapping.size))
    assert read_mapping(written(folder, text)).slot_of_rank.tolist() == mapping.slot_of_rank.tolist()


def test_a_rank_order_is_refused_where_a_host_is_not_filled_before_the_next():
    machine = Machine.hierarchy("2:3", "0:1")
    with pytest.raises(RankFileError, match=r"h1 has empty slots before ranks that come later.*--slots 2,1,1\)"):
        write_mapping(Mapping.of([0, 1, 3, 4], machine.hosts, machine.slots), "mpich")
    write_mapping(Mapping.of([0, 1, 2], machine.hosts, machine.slots), "mpich")  # what is empty comes last


def test_the_cyclic_order_on_unequal_hosts_is_spelled_as_each_launcher_wants_it():
    mapping = Mapping.of([0, 3, 5, 1, 4, 2], ["a", "b", "c"], np.array([3, 2, 1]))
    assert lines_of(write_mapping(mapping, "rankfile")) == [
        "rank 0=a slot=0",
        "rank 1=b slot=0",
        "rank 2=c slot=0",
        "rank 3=a slot=1",
        "rank 4=b slot=1",
        "rank 5=a slot=2",
    ]
    assert lines_of(write_mapping(mapping, "mpich")) == ["0,3,5", "1,4", "2"]
    assert lines_of(write_mapping(mapping, "hydra")) == ["a:3", "b:2", "c:1"]
    assert "# rankmap 0,1,2,0,1,0" in write_mapping(mapping, "hydra").splitlines()
    assert lines_of(write_mapping(mapping, "slurm")) == ["a", "b", "c", "a", "b", "a"]


@examples(60)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.data())
def test_every_plane_is_spelled_and_comes_back(folder, block, hosts, rounds, data):
    ranks = data.draw(st.integers(1, block * hosts * rounds))
    machine = Machine.hierarchy([block * rounds, hosts], [0, 1])
    dealt = np.arange(ranks) // block % hosts
    mapping = Mapping.on_hosts(dealt, machine)
    size = plane_size(mapping)
    assert (np.arange(ranks) // size % hosts == dealt).all()
    path = written(folder, write_mapping(mapping, "plane"))
    assert read_mapping(path).host_of_rank.tolist() == dealt.tolist()


def test_what_is_no_plane_is_refused():
    machine = Machine.hierarchy("2:2", "0:1")
    for hosts in ([0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 1, 0]):
        mapping = Mapping.on_hosts(hosts, machine)
        assert plane_size(mapping) is None
        with pytest.raises(RankFileError, match="blocks of equal size"):
            write_mapping(mapping, "plane")


def test_every_file_says_hosts_slots_digest_and_how_it_is_used():
    machine = Machine.hierarchy("2:2", "0:1")
    mapping = Mapping.identity(machine, 4)
    for form in WRITERS:
        text = write_mapping(mapping, form)
        assert machine.digest in text
        if form == "json":
            assert json.loads(text)["slots"] == [2, 2]
            continue
        assert text.splitlines()[0].startswith("# topompi mapping: 4 ranks on 2 hosts")
        assert text.splitlines()[1].startswith("# launch: ")
        assert text.splitlines()[2:4] == ["# host h0 slots 2", "# host h1 slots 2"]


# Files of other programs.


def test_a_foreign_rank_file_needs_the_allocation(tmp_path):
    path = written(tmp_path, "rank 1=h1 slot=1\nrank  0 = h0 slots=0 # mine\n")
    with pytest.raises(RankFileError, match="does not say for which hosts and slots it is; give them"):
        read_mapping(path)
    assert read_mapping(path, Machine.hierarchy("2:2", "0:1")).slot_of_rank.tolist() == [0, 3]


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("0-1,3\n2\n", [0, 1, 3, 2]),
        ("3 2 1 0", [3, 2, 1, 0]),
        ("h1:2\nh0:2", [2, 3, 0, 1]),
        ("h1:1\nh0\nh0\nh1", [2, 0, 1, 3]),
        ("h1\nh0\nh1\nh0", [2, 0, 3, 1]),
        ("--distribution=plane=1", [0, 2, 1, 3]),
        ("rank 0=+n1 slot=0\nrank 1=+n0 slot=0", [2, 0]),
        ("rank 0=h0 slot=0:1\nrank 1=h0 slot=0:0", [1, 0]),
        ("rank 0=h0 slot=1:*\nrank 1=h0 slot=0:0-1", [1, 0]),
        ("rank 0=h0 slots=p0:0\nrank 1=h0 slot=1\nrank 2=h1 slot=2-3\nrank 3=h1 slot=0,1", [0, 1, 3, 2]),
        ("rank 0=h0 slot=17\nrank 1=h0 slot=16\nrank 2=h1 slot=1", [1, 0, 3]),
        ("rank 0=h0.gss.example.com slot=1\nrank 1=h1 slot=0", [1, 2]),
        ("h1*2\nh0*2", [2, 3, 0, 1]),
        ("h1,h0\nh1 , h0", [2, 0, 3, 1]),
        ("h[0-1]*2", [0, 1, 2, 3]),
        ("h1.gss.example.com\nh0", [2, 0]),
        # ERF of jsrun: hosts by number or name, ranks one by one, in ranges or by their number.
        ("cpu_index_using: logical\nrank: 0: { host: 2; cpu: {0-3} }\nrank: 1: { host: 1; cpu: {0-3} }\n", [2, 0]),
        (
            "app 0: ./a b\nrank : 0-1 : {host: h1; cpu: {8},{4}; gpu: {0}} : app 0\nrank: {2}: {cpu: {0}; host: {1}}",
            [3, 2, 0],
        ),
        ("overlapping_rs: allow\n2 : { host: 1 ; cpu: {0-3},{4-7} } : app 0\n1 : { host: 2 ; cpu: * }", [0, 1, 2]),
        ("rank: 3,1: {host: 1; cpu: {0},{1}}\nrank: 2,0: {host: 2; cpu: {4-7},{0-3}}", [2, 1, 3, 0]),
        # LSF's affinity host file.
        ("h1 4,5,6,7\nh0 0,1,2,3\nh1 0,1,2,3\n", [3, 0, 2]),
        ("h0 0 0 2\nh1 0 0 2\nh0 1 0 2\n", [0, 2, 1]),
        ("h0.site 4-7\nh0.site 0-3\n", [1, 0]),
        # MVAPICH's, Open MPI's and Intel's host files.
        ("h1:2:mlx5_0\nh0:1:mlx5_1", [2, 3, 0]),
        ("h1 cpu=2\nh0 sockets=1 slots=2", [2, 3, 0, 1]),
        ("^login1\nh1 slots = 1 max_slots=4\nh0 user_name=me count=2\n", [2, 0, 1]),
        ("h1-ib0:2 ifhn=h1-ib0\nh0_hsn0:1", [2, 3, 0]),
        ("h1-ib0.site.org\nh0-opa", [2, 0]),
        ("rank 0=h1-eth2 slot=0\nrank 1=h0 slot=0", [2, 0]),
    ],
)
def test_files_written_by_hand_are_read(tmp_path, text, slots):
    mapping = read_mapping(written(tmp_path, text), Machine.hierarchy("2:2", "0:1"))
    assert mapping.slot_of_rank.tolist() == slots


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank 0=h0 slot=0\nrank 0=h1 slot=0\n", ":2: expecting rank 0 once, it is on line 1, got 'rank 0=h1 slot=0'"),
        ("rank 0=h0 slot=0\nrank 2=h1 slot=0\n", ":2: expecting ranks 0 to 1, one a line, got 'none for rank 1'"),
        ("rank 0=h0 slot=0\nrank 1=h7 slot=0\n", ":2: expecting a host of the allocation (h0, h1, ...), got 'h7'"),
        ("rank 0=h0 slot=2\nrank 1=h0\nrank 2=h0\n", ":1: expecting at most the 2 slots of h0, got 'slot 2'"),
        ("rank 0=h0 slot=1\nrank 1=h0 slot=1\n", ":2: expecting a free slot, rank 0 has h0's, got 'slot 1'"),
        ("rank 0=h0 slot=core\n", ":1: expecting a slot, CPUs such as 0,2-3, or a socket's such as 0:1, got 'core'"),
        ("rank 0=+n2 slot=0\n", ":1: expecting a host below +n2, the number of hosts, got '+n2'"),
        ("rank 0=+e1 slot=0\n", ":1: expecting a host by name or as +n1, because only mpirun knows which"),
        ("rank: 0: {host: 3; cpu: {0}}", ":1: expecting a host by its number from 1 to 2, got '3'"),
        ("rank: 0: {host: 0; cpu: {0}}", ":1: expecting a host by its number from 1 to 2, got '0'"),
        ("rank: 0: {host: *; cpu: {0}}", ":1: expecting one host of each set of resources, got 'host:*;cpu:{0}'"),
        ("rank: 0-4: {host: 1; cpu: {0}}", ":1: expecting ranks below 4, the number of slots, and ranges of them"),
        ("launch_distribution: cyclic\n2: {host: 1; cpu: {0}}", ":1: expecting ranks that the file places, or packed"),
        ("rank: 0: {host: 1; cpu: {0}}\nrank: 0: {host: 2; cpu: {0}}", ":2: expecting rank 0 once, it is on line 1"),
        ("rank: 1: {host: 1; cpu: {0}}", ":1: expecting ranks 0 to 0, one a line, got 'none for rank 0'"),
        ("h0 0,1\nh9 0,1", ":2: expecting a host of the allocation (h0, h1, ...), got 'h9'"),
        ("h0-ib0:1\nh0-gw1:1", ":2: expecting a host of the allocation (h0, h1, ...), got 'h0-gw1'"),
        ("h0*5", ":1: expecting at most 4 ranks, one a slot, got 'h0*5'"),
        ("rank 0=h0 slot=0\nrank one\n", ":2: expecting 'rank R=HOST slot=S', got 'rank one'"),
        ("0,1,1,2", ":1: expecting rank 1 once, it is on line 1, got '1'"),
        ("0,1\n3", ":2: expecting ranks 0 to 3, got 'no rank 2'"),
        ("0,1\n2,4", ":2: expecting ranks below 4, the number of slots, and ranges of them, got '4'"),
        ("0,1\n2,x", ":2: expecting ranks below 4, the number of slots, and ranges of them, got 'x'"),
        ("h0:1\nh1:9", ":2: expecting 'HOST:COUNT', the counts at most 4 together, got 'h1:9'"),
        ("# rankmap 0,2\nh0:1\nh1:1", ":1: expecting host lines by their number below 2, got '2'"),
        ("h0:3", ":1: expecting at most the 2 slots of h0, got 'slot 2'"),
        ("h0\nh1 h0", ":2: expecting a host, got 'h1 h0'"),
        ("h0\nh0\nh0", ":3: expecting at most the 2 slots of h0, got 'slot 2'"),
        ("--distribution=plane=0", ":1: expecting one line '--nodes=HOSTS --distribution=plane=SIZE"),
        ("--distribution=plane=1 --ntasks=9", ":1: expecting at most 4 ranks, one a slot"),
        ('{"format": "other"}', ": expecting format 'topompi mapping', version 1, got 'other', version None"),
        ('{"format":\n1,}', ":2: expecting JSON: "),
        ("", ": expecting a mapping, got an empty file"),
        ("= what is this =", ": expecting a mapping: one of rankfile, "),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(RankFileError) as caught:
        read_mapping(path, Machine.hierarchy("2:2", "0:1"))
    assert str(caught.value).startswith(str(path) + message), caught.value


@pytest.mark.parametrize("form", [form for form in WRITERS if form != "mpich"])
def test_a_file_for_another_allocation_and_one_that_was_changed_are_refused(tmp_path, form):
    machine = Machine.hierarchy("2:2", "0:1")
    text = write_mapping(Mapping.identity(machine, 3), form)
    path = written(tmp_path, text)
    with pytest.raises(RankFileError, match=f"is for allocation {machine.digest}, but the job's is "):
        read_mapping(path, Machine.hierarchy("2:3", "0:1"))
    changed = text.replace("host h1 slots 2", "host h1 slots 3").replace('"slots": [2, 2]', '"slots": [2, 3]')
    with pytest.raises(RankFileError, match=f"expecting hosts and slots of digest {machine.digest}, got"):
        read_mapping(written(tmp_path, changed))
    if form in ("rankfile", "slurm"):
        with pytest.raises(RankFileError, match="expecting 3 ranks, as its title says, got 2"):
            read_mapping(written(tmp_path, "\n".join(text.splitlines()[:-1])))


def test_host_names_that_a_launcher_would_misread_are_refused():
    mapping = Mapping.of([0], ["a b"], np.array([1]))
    with pytest.raises(RankFileError, match="expecting host names of letters"):
        write_mapping(mapping, "rankfile")
    with pytest.raises(RankFileError, match="expecting a format of rankfile, "):
        write_mapping(mapping, "lsf")


@pytest.mark.parametrize("name", ["B01-rankfiles/fqdn.map", "B01-rankfiles/rel.map", "B01-rankfiles/sock.map"])
def test_rank_files_as_users_write_them_put_two_ranks_on_each_host(name):
    machine = Machine.tree([f"h{at:04d}" for at in range(4)], [2] * 4, [], [1, 0])
    assert read_mapping(shared_data(f"cases/{name}"), machine).slot_of_rank.tolist() == list(range(8))


@pytest.mark.parametrize("name", ["B04-slurmhost/host.txt", "B04-slurmhost/star.txt"])
def test_slurms_host_files_put_two_ranks_on_each_host(name):
    machine = Machine.tree([f"h{at:04d}" for at in range(4)], [2] * 4, [], [1, 0])
    assert read_mapping(shared_data(f"cases/{name}"), machine).slot_of_rank.tolist() == list(range(8))


def test_a_host_of_another_domain_is_another_host(tmp_path):
    machine = Machine.tree(["h0.a.org", "h0.b.org", "h1.a.org"], [1] * 3, [], [1, 0])
    assert read_mapping(written(tmp_path, "h1\nh0.b.org\nh0.a.org"), machine).slot_of_rank.tolist() == [2, 1, 0]
    for name in ("h1.b.org", "h0"):
        with pytest.raises(RankFileError, match=f"a host of the allocation .*, got '{name}'"):
            read_mapping(written(tmp_path, name), machine)


def test_a_slot_beyond_the_header_of_our_own_file_is_refused(tmp_path):
    text = write_mapping(Mapping.identity(Machine.hierarchy("2:2", "0:1"), 4), "rankfile").replace(
        "h1 slot=1", "h1 slot=7"
    )
    with pytest.raises(RankFileError, match="expecting at most the 2 slots of h1, got 'slot 7'"):
        read_mapping(written(tmp_path, text))


@given(order=st.permutations(range(4)), above=st.integers(2, 500), sockets=st.booleans())
def test_ranks_take_slots_in_the_order_of_their_cpus(tmp_path_factory, order, above, sockets):
    words = [f"{cpu // 2}:{cpu % 2 + above}" if sockets else str(cpu + above) for cpu in order]
    text = "".join(f"rank {rank}=h0 slot={word}\n" for rank, word in enumerate(words))
    mapping = read_mapping(written(tmp_path_factory.getbasetemp(), text), Machine.hierarchy("4:1", "0:1"))
    assert mapping.slot_of_rank.tolist() == list(order)


# Slurm itself, on an emulated network.


@pytest.mark.parametrize(("block", "ranks"), [(1, 4), (2, 7), (4, 13)])
def test_slurms_plane_is_the_one_that_was_meant(slurm, block, ranks):
    dealt = np.arange(ranks) // block % len(slurm.hosts)
    machine = Machine.tree(slurm.hosts, [CORES] * len(slurm.hosts), [], [1, 0])
    options = lines_of(write_mapping(Mapping.on_hosts(dealt, machine), "plane"))
    assert slurm.landed(options[0].split(), {}) == [slurm.hosts[host] for host in dealt]


def test_slurm_puts_every_rank_on_its_host(folder, slurm):
    order = np.random.default_rng(3).permutation(CORES * len(slurm.hosts))[:-1]
    mapping = Mapping.of(order, slurm.hosts, np.full(len(slurm.hosts), CORES))
    path = written(folder, write_mapping(mapping, "slurm"))
    options = [f"--ntasks={mapping.size}", "--distribution=arbitrary"]
    assert slurm.landed(options, {"SLURM_HOSTFILE": str(path)}) == [slurm.hosts[at] for at in mapping.host_of_rank]


def test_a_job_maps_itself_onto_the_hosts_that_slurm_gave_it(folder, slurm):
    """Within an allocation: hosts and slots are Slurm's, and those who talk much end up on one host."""
    pairs = [(0, 4), (1, 5), (2, 6), (3, 7)]
    graph, path = folder / "halo.txt", folder / "job.map"
    graph.write_text("".join(f"{a} {b} 900\n{b} {a} 900\n" for a, b in pairs))
    map_it = [sys.executable, "-m", "topompi", "map", str(graph), "--topology", "XGFT(2; 2,2; 1,2)"]
    run_it = ["srun", "--ntasks=8", "--distribution=arbitrary", "sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME"]
    job = f"""
        {shlex.join(map_it)} --hosts "$SLURM_JOB_NODELIST" --format slurm -o {shlex.quote(str(path))} >&2 &&
        SLURM_HOSTFILE={shlex.quote(str(path))} {shlex.join(run_it)}"""
    allocate = ["salloc", "--quiet", "--immediate=20", "--nodes=4", "--ntasks-per-node=2", "--ntasks=8"]
    done = slurm.run([*allocate, "sh", "-c", job])
    assert done.returncode == 0, done.stderr
    host = dict(line.split() for line in done.stdout.splitlines())
    assert sorted(host.values()) == sorted(2 * slurm.hosts)
    assert all(host[str(a)] == host[str(b)] for a, b in pairs)


BLOCKS = [0, 0, 1, 1, 2, 2, 3, 3]


def ranked(form, order=range(8)):
    """Lines of a rank file; ``form`` has r (rank), h (number of the host) and s (its slot)."""
    return "".join(form.format(r=rank, h=rank // 2, s=rank % 2) + "\n" for rank in order)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        (ranked("rank {r}=+n{h} slot={s}:0-2"), BLOCKS),
        (ranked("rank {r}=h{h} slot={s}:*"), BLOCKS),
        (ranked("rank {r}=h{h}.cl.org slot=p{s}"), BLOCKS),
        (ranked("rank {r}=h{h} slot={s}:0-1;{s}:2-3"), BLOCKS),
        (ranked("rank {r}=h{h} slot={s}:0,{s}:1"), BLOCKS),
        ("# mine\n\n" + ranked("RANK  {r} = me@h{h}  SLOT = {s} # last\n", (3, 1, 7, 0, 2, 6, 4, 5)), BLOCKS),
        (ranked("rank\t{r}=h{h}\tslot={s}\r"), BLOCKS),
        ("h0:2 binding=user:0,1\nh1:2 ifhn=ib1\nh2\nh3:1\nh2\n", [0, 0, 1, 1, 2, 3, 2]),
        ("h0\nh1:2\nh0\n", [0, 1, 1, 0]),
        ("h0 slots=2\nh1 slots=2 max-slots=4\nh2\n", [0, 0, 1, 1, 2]),
        ("h0,h0,\nh[1-2]*2,h3\n", [0, 0, 1, 1, 2, 2, 3]),
        ("h[0,2]*2\nh[1,3]\n", [0, 0, 2, 2, 1, 3]),
        ("--nodes=4 --ntasks=8 --distribution=plane=2\n", BLOCKS),
        ("srun -N 4 -n 8 -m plane=2\n", BLOCKS),
    ],
)
def test_files_of_launchers_are_read_as_their_manuals_write_them(tmp_path, text, hosts):
    machine = Machine.tree([f"h{at}" for at in range(4)], [2] * 4, [], [1, 0])
    assert read_mapping(written(tmp_path, text), machine).host_of_rank.tolist() == hosts
