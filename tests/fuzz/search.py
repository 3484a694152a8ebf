"""A random search: one case after the other, in one process or in many, until a limit.

Case c of seed s draws its numbers from default_rng([s, c]): the same case whatever the number of
processes. What was counted is printed every minute and at the end, also when the search is stopped
(Ctrl-C, SIGTERM) or one of its processes dies, which is itself a finding.
"""

import argparse
import multiprocessing
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from multiprocessing.connection import Connection, wait

import numpy as np
from threadpoolctl import threadpool_limits

SECONDS_BETWEEN_MESSAGES = 1.0
SECONDS_BETWEEN_LINES = 60.0


@dataclass
class Found:
    """What a search counts. A subclass adds its own counters and says them in words."""

    cases: int = 0
    findings: list = field(default_factory=list)  # (case, what)

    def add(self, other):
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))


class Stop:
    """True once the time is up or somebody asked to stop: the case in hand is finished first."""

    def __init__(self, end=np.inf):
        self.end = end  # by time.time(), which all processes share
        self.asked = False

    def listen(self):
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self.ask)
        return self

    def ask(self, *_):
        self.asked = True

    def __bool__(self):
        return self.asked or time.time() > self.end


def search(one, kind, cases, seed=0, stop=None) -> Found:
    """The given cases in this process: `one(rng, found)` says what is wrong, or an empty text."""
    total = kind()
    for found in searched(one, kind, cases, seed, stop or Stop()):
        total.add(found)
    return total


def searched(one, kind, cases, seed, stop):
    """What was found since the last time, about once per second."""
    found, told = kind(), time.monotonic()
    for case in cases:
        if stop:
            break
        found.cases += 1
        try:
            what = one(np.random.default_rng([seed, case]), found)
        except Exception as error:  # a crash is a finding, and no reason to stop
            what = f"crash: {error!r}"
        if what:
            found.findings.append((case, what))
        if what or time.monotonic() - told > SECONDS_BETWEEN_MESSAGES:
            yield found
            found, told = kind(), time.monotonic()
    yield found


def worker(one, kind, cases, seed, end, sender: Connection):
    stop = Stop(end).listen()
    with threadpool_limits(1), sender:
        for found in searched(one, kind, cases, seed, stop):
            sender.send(found)


def search_in_processes(one, kind, cases, seed, jobs, end, report) -> Found:
    """The cases dealt out to `jobs` processes, each with one BLAS thread."""
    context = multiprocessing.get_context("spawn")
    processes, receivers = {}, []
    for job in range(jobs):
        receiver, sender = context.Pipe(duplex=False)
        mine = cases[job::jobs]
        process = context.Process(target=worker, args=(one, kind, mine, seed, end, sender))
        process.start()
        sender.close()
        processes[receiver] = process
        receivers.append(receiver)
    stop, told, total = Stop().listen(), time.monotonic(), kind()
    asked = False
    while receivers:
        if stop.asked and not asked:
            asked = True
            for process in processes.values():
                process.terminate()
        for receiver in wait(receivers, timeout=0.5):
            try:
                found = receiver.recv()
            except EOFError:
                receivers.remove(receiver)
                process = processes[receiver]
                process.join()
                if process.exitcode and not stop.asked:
                    found = kind(findings=[(-1, f"a process ended with {process.exitcode}")])
                else:
                    continue
            total.add(found)
            for case, what in found.findings:
                report(f"seed {seed}, case {case}: {what}")
        if time.monotonic() - told > SECONDS_BETWEEN_LINES:
            told = time.monotonic()
            report(f"so far: {total}")
    return total


def command(one: Callable, kind: type[Found], cases: int, description: str) -> int:
    """The search as a command: 1 where something was found."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, help=f"{cases} unless --seconds is given")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seconds", type=float, default=None, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    arguments = parser.parse_args()
    end = np.inf if arguments.seconds is None else time.time() + arguments.seconds
    endless = arguments.cases is None and arguments.seconds is not None
    cases = 10**9 if endless else arguments.cases or cases

    def report(line):
        print(line, flush=True)

    total = search_in_processes(
        one,
        kind,
        range(arguments.first, arguments.first + cases),
        arguments.seed,
        arguments.jobs,
        end,
        report,
    )
    report(str(total))
    return int(bool(total.findings))
