"""The published environment beneath a user's own virtual environment."""

from __future__ import annotations

from provision.errors import PlanError
from provision.machine.install import make_own_venv
from provision.machine.programs.shell import absolute, environ
from provision.machine.root.completing import hint_to_complete
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId
from provision.model.own_venv import Beneath
from provision.profile.site import Site


def beneath_of(site: Site, store: Store, env: EnvironmentId, typed: str, *, retry: str) -> Beneath:
    """What a venv on a published environment needs to know of it. `typed` is the value of `--site`.

    `retry` is the command for the hint, with `%s` for the environment that is published.

    Raises:
        PlanError: it is not published.
        CommandError: its Python does not start.
    """
    record = store.record(env)
    published = store.pointers().get(f"{env.arch}/{env.name}/{env.version}")
    if record is None or published != str(env):
        raise PlanError(
            f"`{env}` is not published" + (f": its module loads `{published}`" if published else ""),
            hint=f"`{retry % published}`"
            if published
            else f"`provision publish --site {site.typed} {env}` publishes it"
            if record
            else hint_to_complete(store, env, site),
        )
    minor, folders = make_own_venv.look_beneath(record.prefix, environ())
    return Beneath(
        environment=str(env),
        module=record.module,
        prefix=record.prefix,
        root=str(store.root),
        site=absolute(typed) if "/" in typed else site.name,
        minor=minor,
        folders=folders,
    )
