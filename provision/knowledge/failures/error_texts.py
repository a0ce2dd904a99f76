"""What the texts of the system's error numbers mean, for an error that no entry of the catalogue names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorText:
    """A text of the system: what it means, and what to look at. `{path}` is the file that the line names."""

    texts: str
    """The texts, separated by `|`. Source: glibc's `strerror` and `gai_strerror`, musl, and Python's and Go's words for them."""
    meaning: str
    hint: str


LOOK_AT_PATH = (
    "`ls -ld {path}` on the node shows what is there; write the path in full, and check the working folder of the job"
)
MEANINGS = tuple(
    ErrorText(texts=texts, meaning=meaning, hint=hint)
    for texts, meaning, hint in (
        (
            "No such file or directory|no such file or directory|Directory nonexistent",
            "the file or folder does not exist on this node",
            LOOK_AT_PATH,
        ),
        (
            "Permission denied|permission denied|Access denied|Operation not permitted",
            "the user may not do this with the file, the folder or the device",
            "`ls -ld {path}` and `id` show who may use it; `namei -l {path}` shows the folders above it",
        ),
        (
            "Function not implemented|Operation not supported|Not supported",
            "the file system, the kernel or the container does not offer this operation",
            "try it in another file system (`df -T .` shows the type), and outside of the container",
        ),
        ("Not a directory|not a directory", "a part of the path is a file, and no folder", LOOK_AT_PATH),
        ("Is a directory|is a directory", "the path is a folder, and a file is needed", LOOK_AT_PATH),
        (
            "File exists|file exists",
            "the file or folder exists already",
            "remove or rename it, or choose another name: `ls -ld {path}`",
        ),
        (
            "Directory not empty",
            "the folder is not empty",
            "`ls -la {path}` shows what is in it; another program may write there",
        ),
        (
            "Exec format error|cannot execute binary file",
            "the program is for another CPU, or its script does not begin with `#!`",
            "`file {path}` shows what it is, and `uname -m` the CPU of the node",
        ),
        (
            "Text file busy",
            "a program is written while it runs",
            "wait until no process runs it, or copy it under another name",
        ),
        (
            "Read-only file system",
            "the file system is mounted read-only",
            "`findmnt -T {path}` shows how it is mounted; write somewhere else",
        ),
        (
            "Stale file handle|Stale NFS file handle",
            "the file was replaced on the file server",
            "repeat it; if it stays, the node has to mount the file system again",
        ),
        (
            "Device or resource busy|Resource busy",
            "another process uses the file, the folder or the device",
            "`fuser -v {path}` shows the processes that use it",
        ),
        (
            "No such device or address|No such device",
            "the node does not have this device",
            "`ls -l /dev` on the node, and the options of the container that hand devices in",
        ),
        (
            "Too many open files",
            "the process has more open files than its limit allows",
            "`ulimit -n` shows the limit; raise it in the job script (`ulimit -n 65536`)",
        ),
        (
            "Argument list too long",
            "the command line is longer than the system allows",
            "give the names in a file, or with `xargs`",
        ),
        ("File name too long", "a path is longer than the file system allows", "use a shorter folder"),
        ("Too many levels of symbolic links", "links point at each other in a circle", "`namei -l {path}` shows them"),
        (
            "Invalid cross-device link",
            "the two paths are in different file systems",
            "put the temporary folder into the same file system: `export TMPDIR=…`",
        ),
        (
            "Connection refused|connection refused",
            "nothing listens at the address, or a firewall refuses it",
            "check the name and the port, and that the server runs: `ss -ltn` on its node",
        ),
        (
            "Connection timed out|Operation timed out|connection timed out|i/o timeout|deadline exceeded",
            "the other side did not answer",
            "check the name and the port from this node; compute nodes often have no network, and firewalls drop packets",
        ),
        (
            "No route to host|Network is unreachable|network is unreachable|Host is unreachable",
            "there is no way from this node to the address",
            "`ip route get ADDRESS` on the node; compute nodes often have no network",
        ),
        (
            "Name or service not known|Temporary failure in name resolution|no such host|Could not resolve host|Unknown host",
            "the name of a host cannot be resolved",
            "`getent hosts NAME` on the node; compute nodes often have no DNS for the outside",
        ),
        (
            "Connection reset by peer|Broken pipe|Transport endpoint is not connected|Connection closed",
            "the other side ended the connection",
            "look at the log of the other side: it ended first",
        ),
        (
            "Address already in use|address already in use",
            "another process has the port",
            "choose another port, or end the other process: `ss -ltnp`",
        ),
        (
            "Resource temporarily unavailable",
            "a limit of the user or the node is reached, such as that of processes",
            "`ulimit -a` shows the limits",
        ),
        (
            "Cannot allocate memory|cannot allocate memory|Out of memory|out of memory",
            "memory ran out",
            "request more memory, or use less",
        ),
        (
            "Input/output error",
            "the disk or the file server failed",
            "repeat it on another node; report it to the support of the site",
        ),
        ("Bad file descriptor", "the program uses a file that is closed", "look at the error before it"),
        (
            "Inappropriate ioctl for device",
            "a file is of another kind than the program expects: no terminal, or not on the file system (such as Lustre)",
            "if it wants a terminal, use its option for batch mode",
        ),
        (
            "Protocol not supported|Address family not supported by protocol|Protocol not available",
            "the node does not have this protocol of the network, such as IPv6",
            "choose another interface or protocol",
        ),
        (
            "Network is down|Host is down|Machine is not on the network|Link has been severed",
            "the network of this node or of the other one does not work",
            "`ip -br link` on the node shows the interfaces that are up; report the node to the support of the site",
        ),
        (
            "Cannot assign requested address",
            "the address does not belong to this node, or all its ports are in use",
            "`ip -br addr` on the node shows its addresses; use a name or an interface of this node",
        ),
        (
            "Software caused connection abort|Network dropped connection|Communication error on send|Remote I/O error",
            "the connection broke",
            "look at the log of the other side, and try it again on other nodes",
        ),
        (
            "Protocol error|Bad message|Invalid request code|Invalid exchange",
            "the two sides of a connection do not understand each other: they are of different releases, or one of them ended",
            "look at the log of the other side; compare the versions on both",
        ),
        (
            "No locks available",
            "the file system or its server gives no lock for a file",
            "use another file system for it (`df -T .` shows the type), or switch the program's locking of files off",
        ),
        (
            "No buffer space available|Message too long",
            "the system has no buffer of this size for the network",
            "`sysctl net.core.rmem_max net.core.wmem_max` shows the limits; too many connections or messages that are too long",
        ),
        (
            "File too large",
            "the file is larger than the file system or a limit allows",
            "`ulimit -f` shows the limit; FAT and some servers take no files of 4 GB and more",
        ),
        (
            "Value too large for defined data type",
            "a size or a number of a file does not fit into the program's type: it is a program with 32 bits",
            "`file {path}` shows what the program is; use one with 64 bits",
        ),
        (
            "Structure needs cleaning",
            "the file system is damaged",
            "report the node and the path to the support of the site",
        ),
        (
            "Required key not available|Key has expired|Key has been revoked|Key was rejected by service",
            "the user has no valid ticket or key on this node, as file systems with Kerberos and encrypted ones ask for",
            "`klist` shows the tickets, `kinit` asks for a new one; in jobs ask the support of the site how they get one",
        ),
        (
            "No such process|No child processes",
            "the process had ended already",
            "look at the error before it",
        ),
        (
            "Bad address",
            "the program passed an address that is not in its memory",
            "report it to the authors of the program, with the line before it",
        ),
        (
            "Accessing a corrupted shared library|Can not access a needed shared library",
            "a library is damaged, or for another CPU",
            "`file {path}` shows what it is; install its package again",
        ),
        (
            "command not found|: not found",
            "the program is not installed here, or its module is not loaded",
            "`command -v NAME` in the job script shows whether it is found",
        ),
    )
)

# With these words a lack of memory is one of a GPU.
OF_GPU = re.compile(r"(?i:\bGPU\b|cuda).{0,300}\b[Oo]ut of memory|\bhip[A-Z_].{0,300}\b[Oo]ut of memory")
GPU_MEMORY = ErrorText(
    texts="out of memory",
    meaning="the memory of the GPU is used up",
    hint="use a smaller problem for each GPU, or more GPUs; `nvidia-smi` on the node shows other processes on it",
)


@cache
def _pattern() -> re.Pattern[str]:
    """One pattern for all texts."""
    return re.compile("|".join(f"(?P<m{place}>{meaning.texts})" for place, meaning in enumerate(MEANINGS)))


# The path in a message, in quotes or from the root. It may stand in a command of a hint, so it has no character that a shell
# interprets.
_PATH = re.compile(
    r"""['"‘`]([\w./~][\w./~+@=,-]{0,300})['"’`]|(?<![\w/.])(\.{0,2}/[\w./+@=,-]{1,300})(?![^\s:,;'"()])"""
)


# Calls of the network's libraries: with them the texts are not about files, programs or addresses.
OF_NETWORK = re.compile(r"\b(?:ibv|rdma|fi|ucp|uct|psm2?)_\w+ ?\(|\b(?:OFI|libfabric)\b|\bbtl_openib")


def find_error_text(text: str) -> tuple[ErrorText, str] | None:
    """What the text of the system in a message means, and the path that the message names, or `PATH`."""
    found = None if OF_NETWORK.search(text) else _pattern().search(text)
    if found is None or found.lastgroup is None:
        return None
    if OF_GPU.search(text):
        return GPU_MEMORY, "PATH"
    path = _PATH.search(text)
    return MEANINGS[int(found.lastgroup[1:])], (path[1] or path[2]) if path else "PATH"


def names_error_text(text: str) -> bool:
    """Whether a message contains a text of the system's error numbers."""
    return _pattern().search(text) is not None
