"""``python -m tests.fuzz``: mutations of all seeds until the time is over; status 1 where anything failed."""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.crafted import crafted
from tests.fuzz.mutations import mutate
from tests.fuzz.readers import READERS
from tests.fuzz.seeds import real, small


def cases(seed: int, only: str | None = None) -> Iterator[Case]:
    """The crafted inputs, then each seed unchanged, then mutations for ever, equally many per reader.

    :param seed: seed of the random numbers.
    :param only: the only reader; None for all.
    """
    yield from (Case(*one) for one in crafted() if only in (None, one[1]))
    seeds = [one for one in (*small(), *real()) if only in (None, one[0])]
    yield from (Case(f"seed {number}", *one) for number, one in enumerate(seeds))
    readers = sorted({reader for reader, _ in seeds})
    of_reader = {reader: [one for one in enumerate(seeds) if one[1][0] == reader] for reader in readers}
    weights = [len(of_reader[reader]) ** 0.5 for reader in readers]
    random = Random(seed)
    while True:
        reader = random.choices(readers, weights)[0]
        number, (_, data) = random.choice(of_reader[reader])
        yield Case(f"mutation of seed {number}", reader, mutate(data, random))


def main() -> int:
    """Run, print the counts by reader, and the failures."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=Path, help="folder for the inputs that failed")
    parser.add_argument("--reader", choices=sorted(READERS), help="only this reader")
    asked = parser.parse_args()
    if not real():
        print("the real files are not here: only what is made here is mutated")
    crafted()  # cached; it takes seconds, which do not count
    campaign = Campaign(asked.keep)
    campaign.run(cases(asked.seed, asked.reader), time.monotonic() + asked.seconds)
    for reader in sorted({reader for reader, _ in campaign.counts}):
        found = {name: campaign.counts[reader, name] for name in ("read", "refused", "failed")}
        print(f"{reader:16}", *(f"{number:8,} {name}" for name, number in found.items()))
    total = sum(campaign.counts.values())
    print(f"{total:,} inputs, seed {asked.seed}, slowest {campaign.slowest:.2f} s, {len(campaign.failures)} failed")
    for failure in campaign.failures:
        print(f"\n{failure}")
    return 1 if campaign.failures else 0


raise SystemExit(main())
