"""Sources of progress: counters of the kernel, published counters, CPU time, and the choice among them."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import topompi.machine.shutter
from tests.shutter.real import BUSY, ENVIRONMENT, FORKS_END, end_with_parent, eventually, program
from tests.support import ROOT
from topompi.machine.shutter.errors import ShutterError
from topompi.machine.shutter.holds import Process
from topompi.machine.shutter.published import path_of
from topompi.machine.shutter.sources import SOURCES, UnavailableError, choose, usable
from topompi.machine.shutter.sources.perf import TASK_CLOCK, Perf

HEADER = ROOT / "topompi/machine/shutter"
COUNTING = "from topompi.machine.shutter import progress\nprogress(7)\nprint(flush=True)\nimport time\ntime.sleep(60)"
THREAD = "import threading, time\nthreading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()\ntime.sleep(60)"


def gained(reader, seconds=0.1):
    before = reader.read()[0]
    time.sleep(seconds)
    return reader.read()[0] - before


def test_the_kernel_counts_a_software_event_of_another_process():
    """The path of hardware counters, with an event that every machine has."""
    perf = Perf(TASK_CLOCK, TASK_CLOCK)
    try:
        perf.check()
    except UnavailableError as why:
        pytest.skip(str(why))
    with program(BUSY) as made, program("import time; time.sleep(60)") as idle:
        hold, other = Process.open(made.pid), Process.open(idle.pid)
        reader, still = perf.open(hold), perf.open(other)
        eventually(lambda: reader.read()[0] > 50e6)
        value, base = reader.read()
        assert value == pytest.approx(base, rel=0.2)
        assert still.read()[0] < 50e6
        reader.close()
        still.close()
        hold.close()
        other.close()


def test_events_are_counted_in_all_threads_and_in_children_that_start_later():
    perf = Perf(TASK_CLOCK, None)
    try:
        perf.check()
    except UnavailableError as why:
        pytest.skip(str(why))
    forks = "import os, sys\nsys.stdin.readline()\nif os.fork():\n    import time; time.sleep(60)\nwhile True: pass"
    with program(THREAD) as made, program(FORKS_END + forks, stdin=subprocess.PIPE) as parent:
        eventually(lambda: len(os.listdir(f"/proc/{made.pid}/task")) == 2)
        for one in (made, parent):
            hold = Process.open(one.pid)
            reader = perf.open(hold)
            if one is parent:
                parent.stdin.write(b"\n")
                parent.stdin.flush()
            eventually(lambda reader=reader: reader.read()[0] > 20e6)
            assert reader.read()[1] is None
            reader.close()
            hold.close()


def test_a_machine_without_counters_says_so_and_the_next_source_is_used():
    found, missing = usable()
    assert [one.name for one in found][-3:] == ["counter", "calls", "clock"]
    if "perf" in missing:
        assert "counters" in missing["perf"]
        with pytest.raises(ShutterError, match="expecting the source perf, but this"):
            usable("perf")
    missing_event = Perf((0, 999), None)
    with pytest.raises(UnavailableError):
        missing_event.check()


def test_the_clock_counts_cpu_time_of_all_threads_and_ends_with_the_process():
    with program(THREAD) as made:
        hold = Process.open(made.pid)
        reader = SOURCES["clock"].open(hold)
        eventually(lambda: reader.read()[0] > 30e6)
        made.send_signal(signal.SIGSTOP)
        eventually(hold.is_stopped)
        assert gained(reader, 0.02) == 0
        made.kill()
        made.wait(10)
        with pytest.raises(OSError, match=r"Invalid argument|No such"):
            reader.read()
        hold.close()


@pytest.fixture
def counting():
    with program(COUNTING, stdout=subprocess.PIPE) as made:
        made.stdout.readline()
        hold = Process.open(made.pid)
        yield made, hold
        hold.close()
    Path(path_of(os.geteuid(), made.pid)).unlink(missing_ok=True)


def test_a_python_program_publishes_its_steps(counting):
    reader = SOURCES["counter"].open(counting[1])
    assert reader.read() == (7, None)
    reader.close()


def test_a_counter_left_by_an_earlier_process_of_the_pid_is_not_read(counting):
    made, hold = counting
    path = Path(path_of(os.geteuid(), made.pid))
    content = bytearray(path.read_bytes())
    content[16] ^= 1  # the start of the process
    path.write_bytes(content)
    with pytest.raises(UnavailableError, match="publishes no counter"):
        SOURCES["counter"].open(hold)


def test_a_shortened_counter_or_a_pipe_in_its_place_does_no_harm(counting):
    made, hold = counting
    path = Path(path_of(os.geteuid(), made.pid))
    reader = SOURCES["counter"].open(hold)
    os.truncate(path, 10)
    with pytest.raises(OSError, match="shortened"):
        reader.read()
    reader.close()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UnavailableError):
        SOURCES["counter"].open(hold)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(UnavailableError):
        SOURCES["counter"].open(hold)


def test_the_counter_of_a_program_that_ended_is_removed_and_a_fork_has_its_own():
    text = (
        "import os\nfrom topompi.machine.shutter import progress\n"
        "from topompi.machine.shutter.published import path_of\n"
        "path = lambda: path_of(os.geteuid(), os.getpid())\n"
        "progress(3); mine = path()\n"
        "value = lambda: int.from_bytes(open(path(), 'rb').read()[64:72], 'little')\n"
        "child = os.fork()\n"
        "if child == 0: progress(5); assert value() == 5; raise SystemExit\n"
        "assert os.waitpid(child, 0)[1] == 0 and value() == 3\n"
        "print(mine, mine.replace(str(os.getpid()), str(child)))\n"
    )
    done = subprocess.run([sys.executable, "-c", text], env=ENVIRONMENT, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    assert [os.path.exists(path) for path in done.stdout.split()] == [False, False]


def test_the_best_source_that_measures_a_process_of_the_job_is_chosen(counting):
    with program(BUSY) as made:
        plain = Process.open(made.pid)
        usual = [SOURCES["counter"], SOURCES["clock"]]
        source, readers = choose([counting[1], plain], usual)
        assert (source.name, list(readers)) == ("counter", [counting[1]])
        source, readers = choose([plain], usual)
        assert (source.name, list(readers)) == ("clock", [plain])
        assert choose([], usual) == (None, {})
        plain.close()


def test_steps_are_preferred_to_calls_and_calls_to_the_clock():
    text = (
        "import sys\nfrom topompi.machine.shutter import progress\n"
        "from topompi.machine.shutter.published import count_call\n"
        "count_call(); count_call(); print(flush=True); sys.stdin.readline()\n"
        "progress(9); print(flush=True); sys.stdin.readline()\n"
    )
    with program(text, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
        made.stdout.readline()
        hold = Process.open(made.pid)
        usual = [SOURCES[name] for name in SOURCES if name != "perf"]
        source, readers = choose([hold], usual)
        assert (source.name, readers[hold].read()) == ("calls", (2, None))
        readers[hold].close()
        made.stdin.write(b"\n")
        made.stdin.flush()
        made.stdout.readline()
        source, readers = choose([hold], usual)
        assert (source.name, readers[hold].read()) == ("counter", (9, None))
        readers[hold].close()
        hold.close()
        made.communicate(b"\n", timeout=10)
        assert not any(os.path.exists(path_of(os.geteuid(), made.pid, kind)) for kind in ("calls", "progress"))


LOOP = """
#include "topompi_progress.h"
#include <time.h>
int main(void) {
    struct timespec a, b;
    double best = 1e9;
    topompi_progress(1);
    for (int round = 0; round < 10; round++) {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
        for (int i = 0; i < 1000000; i++) topompi_progress(1);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        double each = ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / 1e6;
        if (each < best) best = each;
    }
    printf("%g\\n", best);
    fflush(stdout);
    getchar();
    return 0;
}
"""


def build(folder, compiler, *words):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    subprocess.run([compiler, *words, "-I", str(HEADER)], cwd=folder, check=True, timeout=60)


def steps_of(command):
    """The steps that a program counts until it waits for its input, and the line that it prints."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    made = subprocess.Popen(command, **pipes, start_new_session=True, preexec_fn=end_with_parent)
    try:
        line = made.stdout.readline().decode()
        hold = Process.open(made.pid)
        reader = SOURCES["counter"].open(hold)
        steps = reader.read()[0]
        reader.close()
        hold.close()
        made.communicate(b"\n", timeout=10)
        assert not os.path.exists(path_of(os.geteuid(), made.pid))
    finally:
        made.kill()
        made.wait(10)
    return steps, line


def test_a_c_program_counts_a_step_in_less_than_20_ns(tmp_path):
    (tmp_path / "loop.c").write_text(LOOP)
    build(tmp_path, "gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "loop", "loop.c")
    steps, line = steps_of([str(tmp_path / "loop")])
    assert steps == 10_000_001
    assert float(line) < 20


def test_the_header_compiles_as_cplusplus(tmp_path):
    (tmp_path / "loop.cc").write_text(LOOP)
    build(tmp_path, "g++", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "loop", "loop.cc")
    assert steps_of([str(tmp_path / "loop")])[0] == 10_000_001


def test_a_fortran_program_counts_its_steps(tmp_path):
    (tmp_path / "one.c").write_text('#define TOPOMPI_PROGRESS_FORTRAN\n#include "topompi_progress.h"\n')
    loop = "program p\n  integer :: i\n  do i = 1, 5\n    call topompi_progress()\n  end do\n  print *, 'done'\n"
    (tmp_path / "p.f90").write_text(f"{loop}  call flush(6)\n  read(*, *, iostat=i)\nend program\n")
    build(tmp_path, "gcc", "-O2", "-c", "one.c")
    build(tmp_path, "gfortran", "-O2", "-o", "p", "p.f90", "one.o")
    assert steps_of([str(tmp_path / "p")])[0] == 5


def test_progress_is_reached_from_the_package():
    assert topompi.machine.shutter.progress.__module__ == "topompi.machine.shutter.published"
