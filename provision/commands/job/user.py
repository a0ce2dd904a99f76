"""`provision job single|mirrored|multiworker|horovod|ddp|mpi|cray-ml-plugin`: the script of a user's training job."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from provision.commands.options.jobs import OF_SOME_KINDS
from provision.commands.shared.environments import arch_below
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.parsers import command_line
from provision.commands.shared.target import Target, make_target
from provision.errors import ConfigError, UsageError, raise_faults
from provision.jobs.arguments import split_arguments
from provision.jobs.on_cluster import misfits
from provision.jobs.sweep import sweep_jobs
from provision.jobs.user_job import UserJob, get_environment, nodes_of, unstaged, with_launcher, without_prefix
from provision.jobs.user_script import Script, make_script
from provision.machine.configuration import shipped
from provision.machine.files.disk import is_file
from provision.machine.install.make_own_venv import read_venv
from provision.machine.probes.ask_scheduler import cluster_of
from provision.machine.programs.shell import absolute, expand_variables
from provision.machine.submission.render_jobs import render_user_script
from provision.machine.terminal.console import say
from provision.profile.container import Runtime
from provision.profile.strategy import PLUGINS, StrategyName

# Options that are not simply the field of the same name of a `UserJob`.
OTHERS = ("site", "arch", "stack", "module", "script", "arguments", "venv", "data", "stage_in", "extra", "watch_gpus")


def run(args: Args) -> Outcome:
    """Write the script, and print a note of what is missing to run it."""
    for option in OF_SOME_KINDS:
        vars(args).setdefault(option.to, option.omitted)
    kind = args.leaf.words[-1]
    if args.script is not None and not is_file(args.script):
        raise ConfigError(
            f"there is no training script `{args.script}`",
            evidence=[f"looked for: {absolute(args.script)}"],
            hint=f"`ls {shlex.quote(str(PurePosixPath(args.script).parent))}`, then `--script FILE`",
        )
    if args.no_wait and not args.submit:
        raise UsageError("`--no-wait` is for `--submit`", hint="add `--submit`, or leave `--no-wait` out")
    _check_sweep(args)
    _take_modules_of_venv(args)
    site = shipped.load_site(args.site)
    advised, chosen = site.strategy(kind).stack, args.stack or args.module or args.runtime or args.image
    if advised and not chosen and "venv" in site.runtimes:
        args.stack, args.runtime = advised, "venv"
    target = make_target(site, args.arch, args.stack)
    _take_runtime_of_stack(args, target, kind)
    module = args.module[0] if args.module else target.stack.module
    arch = arch_below(target.site, target.arch.name) or target.arch.name
    modules = target.store.layout.modules(arch)
    job = UserJob(
        kind=kind,
        site=target.site,
        arch=with_launcher(target.site, target.arch, args.launcher),
        command=command_line(args),
        module=module,
        modulepath=str(modules / target.site.modules.module_kind),
        activate=target.store.activation_of(arch, module),
        site_modules=tuple(args.module or ()),
        stack=None if args.module else args.stack or target.stack.name,
        framework=None if args.module else target.stack.framework,
        alternative=_alternative(target, kind),
        script=absolute(args.script) if args.script else target.site.strategy(kind).example or "train.py",
        arguments=split_arguments(args.arguments),
        use_gpu=not args.no_gpu,
        overlays=tuple(_path(path) or path for path in args.overlay),
        use_overlay=not args.no_overlay,
        venv=_path(args.venv),
        data=_path(args.data),
        resume=args.resume_from,
        stage_in=_staged(args.stage_in),
        extra=tuple(without_prefix(target.site, text) for text in args.extra),
        watch_gpus=args.watch_gpus
        or ((args.record or bool(args.sweep)) and target.arch.gpu is not None and not args.no_gpu),
    )
    as_given = {name: value for name, value in vars(args).items() if name in UserJob.__slots__ and name not in OTHERS}
    job = dataclasses.replace(job, **as_given)
    scripts = [make_script(one) for one in (sweep_jobs(job, args.sweep) if args.sweep else (job,))]
    script = scripts[-1]
    refuse_other_runtime(args, script.runtime, job)
    published = f"{arch}/{module}" in target.store.pointers()
    if script.runtime == "venv" and not args.module:
        from provision.commands.job.check_stack import check_judgement, check_packages

        if args.venv is None:  # which may have the package
            check_packages(kind, target)
        if not published:
            check_judgement(kind, target)
    _compare_with_cluster(scripts, submit=args.submit)
    if args.launcher not in (None, target.arch.launcher.name):
        say(f"note: site `{target.site.name}` starts ranks with `{target.arch.launcher.name}`, not `{args.launcher}`")
    text = render_user_script(script)
    if args.script is not None:
        # Only a job whose program is here needs the linter, which takes long to load.
        from provision.commands.job.check_program import check_downloads, check_program

        check_downloads(target.site, args.script, kind)
        if not args.no_lint:
            check_program(args.script, text, target.site, nodes_of(job))
    advice = unstaged(job, script.shape)
    if advice:
        say(f"note: {advice}")
    if script.runtime == "venv" and not published:
        say(f"note: `{module}` is not published below `{modules}` yet; {get_environment(job)}")
    result = {"kind": kind, "site": target.site.name, "arch": target.arch.name, "script": text}
    if not args.sweep and not args.submit:
        return Outcome(text=text, result=result)
    # Only a job that is submitted needs what follows jobs and explains their ends.
    from provision.commands.job.sweep import finish_sweep, submit_job

    if args.sweep:
        return finish_sweep(args, target, [(one, render_user_script(one)) for one in scripts], result)
    return submit_job(args, target, script, text, result)


def _compare_with_cluster(scripts: Sequence[Script], *, submit: bool) -> None:
    """Compare jobs with what the scheduler says, if it is that of their site and answers here; only note it without `submit`.

    Raises:
        ConfigError: the scheduler would refuse or never start a job that is to be submitted.
    """
    there = cluster_of(scripts[0].job.site, scripts[0].job.arch)
    if there is None:
        return
    faults = tuple(dict.fromkeys(fault for script in scripts for fault in misfits(script.batch, there)))
    if submit:
        raise_faults(faults, ConfigError, "refused-by-site")
    for fault in faults:
        say(f"note: {fault.message} ({'; '.join(fault.evidence)}); {fault.hint}")


def _check_sweep(args: Args) -> None:
    """Raise for options of a sweep that do not go together.

    Raises:
        ConfigError: a sweep is neither submitted nor written, or both; or `--out` without a sweep.
    """
    if args.sweep is None:
        if args.out is not None:
            raise UsageError("`--out` is for `--sweep`", hint="write one script with `> FILE`")
    elif bool(args.out) == args.submit:
        given = "both were given" if args.submit else "neither was given"
        raise UsageError(
            "`--sweep` needs either `--submit` or `--out DIR`",
            evidence=[given],
            hint="`--submit` submits the jobs; `--out DIR` writes their scripts to a folder",
        )


def _take_modules_of_venv(args: Args) -> None:
    """If the venv was made on modules of the site, and no other runtime was asked for, the job loads these modules.

    A venv that this machine does not see, or that another program made, changes nothing: the job checks it.
    """
    if args.venv is None or args.runtime not in (None, "modules") or args.module or args.stack:
        return
    try:
        beneath = read_venv(Path(expand_variables(args.venv)))
    except ConfigError:
        return
    if beneath.modules:
        args.runtime, args.module = "modules", [*beneath.modules]


def _take_runtime_of_stack(args: Args, target: Target, kind: StrategyName) -> None:
    """A stack that is typed is run by the runtime of our environments.

    Raises:
        ConfigError: the site does not have this runtime.
    """
    if not args.stack or kind in PLUGINS:
        return
    site, of = target.site, target.stack.framework.interface
    if "venv" not in site.runtimes:
        # Without it the job gets the framework of the site, which its own stack names too.
        same = of is shipped.load_stack(site.stack).framework.interface
        image = f", and name an image with {of.title}: `--runtime container --image IMAGE`"
        module = f", and name a module with {of.title}: `--runtime modules --module NAME`"
        instead = "" if same else image if "container" in site.runtimes else module
        raise ConfigError(
            f"`--stack {args.stack}` cannot be used: site `{site.name}` does not run {of.title} from environments of stacks",
            evidence=[f"`runtimes` in `{site.origin}`: {', '.join(site.runtimes)}"],
            hint=f"leave `--stack` out{instead}",
        )
    if not (args.runtime or args.image or args.module):
        args.runtime = "venv"


def _alternative(target: Target, kind: StrategyName) -> str | None:
    """A stack for this kind of job, if the framework of the target's stack has no such kind and the site runs stacks."""
    if kind in target.stack.framework.interface.kinds:
        return target.stack.name
    if kind in PLUGINS or "venv" not in target.site.runtimes:
        return None
    from provision.commands.job.check_stack import stacks_for

    return next(iter(stacks_for(kind, target)), None)


def _path(text: str | None) -> str | None:
    """A path for the node, from the root of the file system; a variable at its beginning is left to the node."""
    return text if text is None or text.startswith("$") else absolute(text)


def _staged(text: str | None) -> str | None:
    """The path of `--stage-in`, with the variables of this shell: the scheduler copies before the job, and expands none.

    Raises:
        ConfigError: a variable is not set here.
    """
    if text is None:
        return None
    expanded = expand_variables(text)
    if "$" in expanded:
        raise ConfigError(
            f"`--stage-in {text}` has a variable that is not set in this shell",
            evidence=["the scheduler copies the data before the job starts, and expands no variables"],
            hint="give the whole path: `--stage-in /a/path`",
        )
    return absolute(expanded)


def refuse_other_runtime(args: Args, runtime: Runtime, job: UserJob) -> None:
    """Raise for an option that this runtime would not use.

    Raises:
        ConfigError: `--module`, `--stack`, `--venv` or `--deliver image` was given, but the job does not load it.
    """
    if runtime == "venv" and len(args.module or ()) > 1:
        raise ConfigError(
            "our environment is one module, but `--module` names several",
            evidence=[f"`--module {' '.join(args.module)}`"],
            hint="add `--runtime modules` to load modules of the site, or name one module",
        )
    unused = [
        option
        for option, given, used in (
            ("--module", args.module, runtime != "container"),
            ("--stack", args.stack, runtime == "venv"),
            ("--venv", args.venv, runtime != "container"),
            ("--deliver image", args.deliver == "image", runtime == "venv"),
        )
        if given and not used
    ]
    has_venv = "venv" in job.site.runtimes and job.kind not in PLUGINS and not args.image
    if unused:
        raise ConfigError(
            f"`{unused[0]}` is not used if the program is run by `{runtime}`",
            evidence=[f"`--runtime {runtime}` was given" if args.runtime else f"`runtimes` in `{job.site.origin}`"],
            hint=f"leave `{unused[0]}` out{', or use `--runtime venv`' if has_venv else ''}",
        )
