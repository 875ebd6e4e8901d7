"""Host lists: the hosts of an expression, and writing as the inverse of reading."""

import itertools
import lzma
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import shared_data
from topompi.errors import SourceError
from topompi.inputs import Limits
from topompi.inputs.batchhosts import batch_hosts
from topompi.inputs.hostlist import compress, expand, read_hosts

MOST = Limits().hosts
REMEDY = "raise this with --limit hosts=NUMBER"

stems = st.text("abn-.é", min_size=1, max_size=4)
numbers = st.from_regex(r"[0-9]{1,4}", fullmatch=True)
hosts = st.one_of(
    stems,
    st.builds("".join, st.tuples(stems, numbers)),
    st.builds("".join, st.tuples(stems, numbers, stems)),
    st.builds("{}{:03d}{}".format, st.sampled_from("nm"), st.integers(0, 12), st.sampled_from(["", "-ib"])),
    st.from_regex(r"[0-9]{1,25}", fullmatch=True),
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("", []),
        ("  ", []),
        ("login", ["login"]),
        ("tux[0-3,12,18-20]", [f"tux{i}" for i in (0, 1, 2, 3, 12, 18, 19, 20)]),
        ("n[001-003],n[019-020]", ["n001", "n002", "n003", "n019", "n020"]),
        (" a , b[1-2] ", ["a", "b1", "b2"]),
        ("rack[1,4-5]-u[42-43]", [f"rack{r}-u{u}" for r in (1, 4, 5) for u in (42, 43)]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
        ("[08-10]", ["08", "09", "10"]),
        ("n[99-101]", ["n99", "n100", "n101"]),
        ("n[2,1,1],n2", ["n2", "n1", "n1", "n2"]),
    ],
)
def test_expression_stands_for(expression: str, expected: list[str]) -> None:
    assert expand(expression) == expected


@given(st.lists(hosts, max_size=30))
def test_what_is_compressed_expands_to_the_same_hosts_in_the_same_order(names: list[str]) -> None:
    assert expand(compress(names)) == names


@given(st.lists(st.tuples(stems, st.lists(numbers, min_size=1, max_size=3)), min_size=1, max_size=3), stems)
def test_brackets_multiply_with_the_left_one_slowest(parts: list[tuple[str, list[str]]], suffix: str) -> None:
    expression = "".join(f"{stem}[{','.join(choices)}]" for stem, choices in parts) + suffix
    choices = itertools.product(*(values for _, values in parts))
    stems_only = [stem for stem, _ in parts]
    assert expand(expression) == [
        "".join(itertools.chain(*zip(stems_only, chosen, strict=True))) + suffix for chosen in choices
    ]


@given(st.integers(0, 3000), st.integers(0, 50), st.integers(1, 6))
def test_a_range_keeps_the_padding_of_its_first_number(first: int, count: int, width: int) -> None:
    low, high = f"{first:0{width}d}", f"{first + count:0{width}d}"
    assert expand(f"n[{low}-{high}]") == [f"n{i:0{width}d}" for i in range(first, first + count + 1)]


@pytest.mark.parametrize(
    ("names", "expression"),
    [
        (["n001", "n002", "n003", "n019"], "n[001-003,019]"),
        (["n9", "n10", "n11"], "n[9-11]"),
        (["n09", "n10", "n11"], "n[09-11]"),
        (["n99", "n100"], "n[99-100]"),
        (["n099", "n100"], "n[099-100]"),
        (["n09", "n010"], "n[09,010]"),
        (["n99", "n0100"], "n[99,0100]"),
        (["n2", "n1"], "n[2,1]"),
        (["a", "b1", "c"], "a,b1,c"),
        (["n1-ib", "n2-ib", "n3-eth", "m4-eth"], "n[1-2]-ib,n3-eth,m4-eth"),
        ([], ""),
    ],
)
def test_ranges_join_only_ascending_numbers_of_uniform_padding(names: list[str], expression: str) -> None:
    assert compress(names) == expression


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a[1-", "host list 'a[1-': expecting ']' at position 4"),
        ("a[x]", "host list 'a[x]': expecting a number or a range of at most 18 digits at position 2"),
        ("a[1,]", "host list 'a[1,]': expecting a number or a range of at most 18 digits at position 4"),
        ("a[]", "host list 'a[]': expecting a number or a range of at most 18 digits at position 2"),
        ("a[1[2]]", "host list 'a[1[2]]': expecting a number or a range of at most 18 digits at position 2"),
        ("a[1-2-3]", "host list 'a[1-2-3]': expecting a number or a range of at most 18 digits at position 2"),
        ("a[1,5-3]", "host list 'a[1,5-3]': expecting a range that ascends at position 4"),
        ("a,,b", "host list 'a,,b': expecting a host name at position 2"),
        ("a,", "host list 'a,': expecting a host name at position 2"),
        (",a", "host list ',a': expecting a host name at position 0"),
        ("a b", "host list 'a b': expecting ',' at position 2"),
        ("a]", "host list 'a]': expecting ',' at position 1"),
        (
            "n[0-999999999]",
            f"host list 'n[0-999999999]': expecting at most {MOST:,} names, got more; {REMEDY}",
        ),
        (
            "[0-999][0-1000]",
            f"host list '[0-999][0-1000]': expecting at most {MOST:,} names, got more; {REMEDY}",
        ),
        (
            "n[0-999999],m",
            f"host list 'n[0-999999],m': expecting at most {MOST:,} names, got more; {REMEDY}",
        ),
    ],
)
def test_malformed_expression_is_named_with_the_position(expression: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        expand(expression)
    assert str(caught.value) == message


def test_a_number_beyond_64_bits_is_refused_in_a_range() -> None:
    with pytest.raises(SourceError, match="at most 18 digits at position 2"):
        expand(f"a[0-{'9' * 5000}]")


def test_the_largest_allowed_list_expands() -> None:
    assert len(expand(f"n[1-{MOST}]")) == MOST


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a[1]"])
def test_a_name_that_no_expression_can_hold_is_refused(name: str) -> None:
    with pytest.raises(SourceError) as caught:
        compress(["n1", name])
    assert str(caught.value) == f"host list: expecting a name without brackets, commas and blanks, got {name!r}"


def test_hosts_are_read_from_an_expression_with_repeated_ones_kept() -> None:
    assert read_hosts("n[1-2],n1") == ["n1", "n2", "n1"]


def test_a_long_expression_is_not_taken_for_a_file_name() -> None:
    names = [f"host-{i}-x{i * i}" for i in range(2000)]
    assert read_hosts(",".join(names)) == names


@pytest.mark.parametrize("packed", [False, True])
def test_hosts_are_read_from_a_file_with_comments_blank_lines_and_expressions(tmp_path: Path, packed: bool) -> None:
    content = b"# the job\r\nn1\n\n n[2-3]  # two\nn1\n"
    path = tmp_path / "hosts"
    path.write_bytes(lzma.compress(content) if packed else content)
    assert read_hosts(str(path)) == ["n1", "n2", "n3", "n1"]


def test_a_bad_line_of_a_host_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("n1\nn2 slots=4\n")
    with pytest.raises(SourceError) as caught:
        read_hosts(str(path))
    assert str(caught.value) == f"{path}:2: host list 'n2 slots=4': expecting ',' at position 3"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "{path}: expecting a list of hosts, got an empty file"),
        ("# nobody\n", "{path}: expecting at least one host, got none"),
        ("n1\0", "{path}: expecting text, got binary data that begins with 6e 31 00"),
    ],
)
def test_a_host_file_without_hosts_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(content)
    with pytest.raises(SourceError) as caught:
        read_hosts(str(path))
    assert str(caught.value) == message.format(path=path)


def test_a_path_without_file_and_an_empty_argument_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read_hosts(f"{tmp_path}/nowhere")
    assert str(caught.value) == f"{tmp_path}/nowhere: expecting a file of hosts, got none"
    with pytest.raises(SourceError) as caught:
        read_hosts("")
    assert str(caught.value) == "host list: expecting at least one host, got none"


def test_node_lists_of_real_jobs_survive_the_round_trip() -> None:
    with tarfile.open(shared_data("fabrics/leonardo-job-nodelists.tar.gz")) as archive:
        members = [archive.extractfile(member) for member in archive if member.isfile()]
        jobs = [member.read().decode().split() for member in members if member is not None]
    assert len(jobs) == 2215
    for job in jobs:
        assert expand(compress(job)) == job


@pytest.mark.parametrize(
    "text",
    [
        "n[0-1]*2,n2",
        "n0:2\nn1:2 # second\nn2:1\n",
        "n0,n0,\nn[1-1](x2),n2\n",
    ],
)
def test_numbers_of_ranks_repeat_a_host_in_lists_and_host_files(tmp_path, text):
    (tmp_path / "hosts").write_text(text)
    assert read_hosts(str(tmp_path / "hosts")) == ["n0", "n0", "n1", "n1", "n2"]
    if "\n" not in text:
        assert read_hosts(text) == ["n0", "n0", "n1", "n1", "n2"]


def test_a_number_of_ranks_beyond_the_limit_is_refused():
    with pytest.raises(SourceError, match="ranks"):
        read_hosts("n[0-99]*999999999")


# --- Hosts of jobs of PBS and LSF: one name per slot, and no other list is taken for them.


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
