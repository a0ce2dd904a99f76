"""`provision tensorboard JOBID|DIR`: start TensorBoard on this node, and print the tunnel for the user's own machine."""

from __future__ import annotations

import re

from provision.commands.shared.environments import find_environment, read_store
from provision.commands.shared.ground import script_in
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.parsers import command_line
from provision.errors import CommandError, ConfigError
from provision.jobs.environment_script import EnvironmentScript, on_modules
from provision.launch.available_modules import without_horovod
from provision.machine.configuration import shipped
from provision.machine.files.disk import folders_named, is_file, is_folder
from provision.machine.programs.run import serve
from provision.machine.programs.shell import absolute, environ, expand_variables, free_port, login_name, node_name
from provision.machine.root.store import Store
from provision.machine.submission.render_jobs import render_environment_script
from provision.machine.terminal.console import say
from provision.model.quoting import words as quoted
from provision.profile.site import USER, Site

JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
MODULES = "modules"
PORTS = range(1024, 65536)
# The port on the person's own machine: TensorBoard's own.
LOCAL_PORT = 6006


def run(args: Args) -> Outcome:
    """Find the folder, print the tunnel, start TensorBoard until Ctrl-C."""
    if args.port is not None and args.port not in PORTS:
        raise ConfigError(
            f"{args.port} is not a valid value of `--port`: {PORTS.start} to {PORTS.stop - 1}",
            hint="leave `--port` out",
        )
    if args.user is not None and not USER.fullmatch(args.user):
        raise ConfigError(f"{args.user!r} is not a valid value of `--user`", hint="letters, digits and `_.-`")
    site = shipped.load_site(args.site)
    folder = find_run(args.summaries, site)
    environment, shown, script = _program(args, site, read_store(site))
    port, node = free_port(args.port), node_name()
    user, login = args.user or login_name(), site.network.host
    # The server listens on 127.0.0.1, so the tunnel ends on this node: behind a public name there may be several.
    through = () if login in (None, node) else ("-J", f"{user}@{login}")
    tunnel = quoted(("ssh", "-N", "-L", f"{LOCAL_PORT}:127.0.0.1:{port}", *through, f"{user}@{node}"))
    options = ("-m", "tensorboard.main", "--logdir", folder, "--host", "127.0.0.1", "--port", str(port))
    lines = [
        f"folder       {folder}",
        f"environment  {shown}",
        "",
        "On your own machine, in another terminal:",
        f"  {tunnel}",
        f"then open http://127.0.0.1:{LOCAL_PORT} in its browser. On this node it is http://127.0.0.1:{port}.",
        f"TensorBoard asks for no password: every user of {node} can open it there and see these curves.",
    ]
    result = {
        "folder": folder,
        "environment": shown,
        "node": node,
        "port": port,
        "tunnel": tunnel,
        "program": quoted((script.python, *options)),
    }
    if args.only_print:
        command = ("provision", "tensorboard", args.summaries, "--site", args.site, "--on", environment)
        start = quoted((*command, "--port", str(port), *(("--arch", args.arch) if args.arch else ())))
        return Outcome(text="\n".join((*lines, "", "To start it on this node:", f"  {start}")), result=result)
    say("\n".join((*lines, "It stops with Ctrl-C.", "")))
    text = render_environment_script(script, command=command_line(args), again="name another one with `--on`")
    code = serve(("bash", "-c", text, "bash", *options), environ())
    if code:
        raise CommandError(
            f"TensorBoard ended with exit code {code}",
            evidence=["its messages are above"],
            hint=f"`provision list --site {site.typed}` lists other environments, for `--on`",
        )
    return Outcome(text="TensorBoard has stopped", result=result)


def find_run(text: str, site: Site) -> str:
    """The folder with the summaries of a run: that of a job of the site, or one that is given.

    Raises:
        ConfigError: there is no such folder.
    """
    given = absolute(text)
    scratch = expand_variables(site.files.scratch or "")
    if "$" in scratch and JOB.fullmatch(text) and not is_folder(given):
        raise ConfigError(
            f"this machine does not see the output of jobs at `{site.name}`: `{scratch}/runs`",
            evidence=["a variable in this path is not set in this shell"],
            hint=f"`ssh {site.network.host or 'LOGIN-NODE'}`, then run the same command there",
        )
    runs = absolute(f"{scratch}/runs" if site.files.scratch else "runs")
    # PBS and Cobalt append the name of the server to the number of a job.
    found = [given] if is_folder(given) else folders_named(runs, text) if JOB.fullmatch(text) else []
    if not found:
        raise ConfigError(
            f"there is no folder `{text}`"
            + (f", and no output of a job `{text}` in `{runs}`" if JOB.fullmatch(text) else ""),
            hint=f"`ls {runs}`; the output of a job names its folder: `output: …`",
        )
    inner = f"{found[0]}/tensorboard"
    return inner if is_folder(inner) else found[0]


def _program(args: Args, site: Site, store: Store) -> tuple[str, str, EnvironmentScript]:
    """What has the TensorBoard that is used: the value of `--on`, its name, and the script that becomes its Python.

    Raises:
        ConfigError: no published environment has TensorBoard, and the site has no modules with TensorFlow.
    """
    published = sorted(store.pointers().values(), reverse=True)
    loaded = environ().get("PROVISION_ENVIRONMENT")
    names = [args.on] if args.on else [*([loaded] if loaded in published else []), *published]
    for name in names if args.on != MODULES else ():
        env = find_environment(store, name, args.arch, site=site)
        record = store.record(env)
        if record is not None and is_file(f"{record.prefix}/bin/tensorboard"):
            return str(env), str(env), script_in(site, store, env, record.module, record.prefix)
    if args.on in (None, MODULES):
        archs = [site.arch(args.arch)] if args.arch else site.archs
        # TensorBoard needs no GPU, and login nodes have none.
        for arch in sorted((one for one in archs if one.provided), key=lambda one: one.gpu is not None):
            modules = without_horovod(arch.provided)
            return MODULES, " ".join(modules), on_modules(site, arch, modules=modules)
    raise ConfigError(
        f"`{args.on}` has no TensorBoard"
        if args.on
        else f"no published environment below `{store.root}` has TensorBoard",
        evidence=[
            f"looked for bin/tensorboard in: {', '.join(names) or 'nothing is published'}",
            *([] if args.on else [f"`archs.*.provided` in `{site.origin}` is empty"]),
        ],
        hint="`pip install tensorboard` in a virtual environment of `provision venv create`"
        if names
        else "`provision build` builds an environment with it",
    )
