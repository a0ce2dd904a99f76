"""Ranks that each run alone: the launcher started several processes, and each of them prints that it is rank 0 of 1."""

from __future__ import annotations

import re

from provision.knowledge.failures.words import word_set

# The options of a launcher, if the log shows its command; `-n 1` in a list of runs is no start of several.
COMMAND = re.compile(
    r"(?:^|[\s/;$>])(?:mpirun|mpiexec(?:\.\w{1,20})?|orterun|prterun|srun|aprun|jsrun)\s(?:.{0,300}?\s)??"
    r"(?:-np|-n|--ntasks|--np)[ =]?(?P<processes>\d{1,6})\b"
)
# How a rank says that it is alone, and how it says that it is not.
ALONE = re.compile(
    r"\b(?:rank|process|processor|task|image|hello|PE)\b.{0,80}?\b0 ?(?:of|out of|/) ?1\b(?![./]?\d)|"
    r"\b(?:world|communicator|comm)[ _]size(?: is)? ?[:=]? ?1\b(?![./]?\d)|"
    r"\b(?:number of|total|num) (?:MPI )?(?:processes|ranks|tasks)(?: is)? ?[:=]? ?1\b(?![./]?\d)|"
    # VASP, Quantum ESPRESSO, GROMACS, LAMMPS, OpenFOAM.
    r"\brunning on +1 (?:total cores|cores?|processors?)\b|\busing 1 MPI process\b|(?P<often>\b1 by 1 by 1 MPI processor grid)|"
    # FDS counts from 0 there, too.
    r"^nProcs +: 1$|^Process +0 of +0 is running\b",
    re.IGNORECASE,
)
# The first lines of a run of VASP: copies that run alone print them at the same time, into each other.
BANNER = re.compile(r"\bvasp\.\d\.\d\.\d{1,2}[\w.-]{0,60} (?:\S{1,60} )?\(build ")
# How the tests of NCCL name their ranks: two that are rank 0, of which the second is directly below the first.
NCCL_TESTS = re.compile(r"# +Rank +0 (?P<process>.{0,40}\bPid +\d+ on \S+)")
# How a rank names itself when it does not say how many there are.
FIRST = re.compile(r"\b(?:rank|process|processor|task)\b\W{0,20}0\b(?![.\d])", re.IGNORECASE)
LONE_WORDS = word_set(
    "rank process processor task image hello size processes ranks tasks mpirun mpiexec srun orterun aprun jsrun "
    "running using grid nprocs vasp build"
)
# A line whose digits are all written `0`, which may be one of the above.
MAYBE = re.compile(
    r"\b0 ?(?:of|out of|/) ?0\b|\bsize(?: is)? ?[:=]? ?0\b|\b(?:processes|ranks|tasks)(?: is)? ?[:=]? ?0\b|"
    r"\brunning on +0 |\bvasp\.0\.0\.0|\busing 0 mpi\b|\b0 by 0 by 0 mpi\b|^nprocs +: 0$|"
    r"\b(?:rank|process|processor|task)\b\W{0,20}0\b|\b(?:mpirun|mpiexec|orterun|prterun|srun|aprun|jsrun)\b"
)
# Without the command it takes so many ranks that say so, each at most so many lines after the one before.
WITHOUT_COMMAND, NEAR = 3, 8
# The list of the ranks of one test has no other lines in it; another copy's heading may stand between two.
NEAREST = 4


def may_be_lone(template: str, words: frozenset[str]) -> bool:
    """Whether a line without its digits may say that a rank is alone, or start ranks."""
    return not words.isdisjoint(LONE_WORDS) and MAYBE.search(template) is not None


class LoneRanks:
    """Counts the ranks that say that they are alone."""

    def __init__(self) -> None:
        self._wanted = 0  # how many ranks the last command starts
        self._count = self._last = 0
        self._same, self._text = 0, ""
        self._first, self._process = 0, ""
        self._banner = 0

    def feed(self, number: int, text: str) -> bool:
        """Take a line; returns whether it shows that several ranks run alone."""
        if command := COMMAND.search(text):
            self._wanted, self._count, self._same = int(command["processes"]), 0, 0
            return False
        if self._wanted > 1 and FIRST.search(text):
            self._same = self._same + 1 if text == self._text else 1
            self._text = text
            if self._same >= self._wanted:
                return True
        if tested := NCCL_TESTS.match(text):
            alone = 0 < self._first >= number - NEAREST and tested["process"] != self._process
            self._first, self._process = number, tested["process"]
            return alone
        if banners := BANNER.findall(text):
            together = len(banners) > 1 or 0 < self._banner >= number - NEAREST
            self._banner = number
            return together
        found = ALONE.search(text)
        if not found:
            return False
        # LAMMPS prints its grid several times in one run, with other lines between.
        near = 1 if found["often"] else NEAR
        self._count = self._count + 1 if number - self._last <= near else 1
        self._last = number
        enough = min(self._wanted, WITHOUT_COMMAND) if self._wanted else WITHOUT_COMMAND
        return self._wanted != 1 and self._count >= enough
