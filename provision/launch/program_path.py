"""Where programs are searched that decide an environment: the same folders in a login shell, in cron and in a job.

PATH differs between them: a login shell has the user's own folders (`~/bin`, pyenv, conda), cron has two folders of the system.
So the folders of the system come first here, with what modules add before them, and the folders of the user's shell last: what
only they have is still found.
"""

from __future__ import annotations

SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
# The last of the folders that are the same in every shell. What follows it is of the user's shell.
LAST = "/bin"


def steady_first(path: str, home: str, *, purged: bool) -> str:
    """PATH with the folders of the system first, and those of the user's shell behind them.

    If modules of the login shell stay (not `purged`), what they added is the site's: only folders below the home are the
    user's. Relative folders are left out: they are other ones in each working folder.
    """
    folders = [folder for folder in dict.fromkeys(path.split(":")) if folder.startswith("/")]
    steady = [] if purged else [folder for folder in folders if folder != LAST and not _is_below(folder, home)]
    steady += [folder for folder in SYSTEM_FOLDERS if folder not in steady]
    return ":".join((*steady, LAST, *(folder for folder in folders if folder not in (*steady, LAST))))


def steady_part(path: str) -> str:
    """The folders of such a PATH that are the same in every shell, with those that modules added since."""
    folders = path.split(":")
    return ":".join(folders[: folders.index(LAST) + 1]) if LAST in folders else path


def _is_below(folder: str, home: str) -> bool:
    """Whether a folder is the user's: the home, or in it."""
    return home not in ("", "/") and f"{folder}/".startswith(f"{home.rstrip('/')}/")
