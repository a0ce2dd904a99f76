"""From where pip and uv get packages here, as variables: from their variables and from the files that each of them reads. Pure.

An installer that we start reads no file of a user, only these variables: a `user`, `target`, `link-mode` or `no-binary` that is
written for other projects would decide how an environment is laid down. What only one of the two knows holds for both, because
a site writes its mirror, its proxy and its certificate into the file of pip alone.

Sources: pip 26, User guide, Configuration; uv 0.13, Reference, Settings and Environment variables.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from provision.knowledge.index_settings import is_installer_setting

# Variables of virtualenv, which has a file too.
INSTALLERS = ("PIP_", "UV_", "VIRTUALENV_")
# The variable that names a file, which is read already.
READ = "CONFIG_FILE"
# pip's options for a command win over `global`; a mirror for one of these commands is one for all of them.
SECTIONS = ("global", "download", "wheel", "install")
ALIASES = {"PYPI_URL": "INDEX_URL", "TIMEOUT": "DEFAULT_TIMEOUT"}
FILES_OF_PIP = ("CERT", "CLIENT_CERT", "CACHE_DIR")
# uv has keys for these in its file, but no variables of its own.
PROXIES_OF_UV = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# An index that has nothing: uv has no variable for `--no-index`.
EMPTY_INDEX = "file:///nonexistent/no-index"
# Every package has its hash, so it does not matter from which of several indexes it comes.
FIXED = {
    "PIP_CONFIG_FILE": "/dev/null",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_NO_CONFIG": "1",
    "UV_INDEX_STRATEGY": "unsafe-best-match",
    "VIRTUALENV_CONFIG_FILE": "/dev/null",
}


def installer_settings(
    environ: Mapping[str, str],
    *,
    pip_files: Sequence[str],
    uv_tables: Sequence[Mapping[str, Any]],
    system_certificates: str | None,
) -> dict[str, str]:
    """The environment in which pip, uv and virtualenv run.

    `pip_files` are the texts of pip's files, the one that wins last; `uv_tables` the tables of uv's, the one that wins first.
    `system_certificates` is used if nothing names other certificates.
    """
    pip, uv = _of_pip(environ, pip_files), _of_uv(environ, uv_tables)
    others = {name: value for name, value in environ.items() if not name.startswith(INSTALLERS)}
    _name_certificates(others, pip, uv, system_certificates)
    _name_proxies(others, pip, uv)
    _share_indexes(pip, uv)
    return {
        **others,
        **{f"PIP_{name}": value for name, value in pip.items()},
        **{f"UV_{name}": value for name, value in uv.items() if name != READ},
        **FIXED,
    }


def _of_pip(environ: Mapping[str, str], texts: Iterable[str]) -> dict[str, str]:
    """The settings of pip, by the names of its variables without `PIP_`."""
    parsers = []
    for text in texts:
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(text)
        except configparser.Error:
            continue  # pip itself stops at such a file, which does not concern an environment
        parsers.append(parser)
    sections = [(parser, name) for name in SECTIONS for parser in parsers if parser.has_section(name)]
    given = [pair for parser, name in sections for pair in parser.items(name)]
    given += [(name.removeprefix("PIP_"), value) for name, value in environ.items() if name.startswith("PIP_")]
    found: dict[str, str] = {}
    for written, value in given:
        name = written.lower().removeprefix("--").replace("-", "_").upper()
        name = ALIASES.get(name, name)
        if value.strip() and is_installer_setting(f"PIP_{name}"):
            words = value.split() if name == "FIND_LINKS" else [value.strip()]
            paths = name in (*FILES_OF_PIP, "FIND_LINKS")
            found[name] = " ".join(_with_home(word, environ) if paths else word for word in words)
    return found


def _with_home(path: str, environ: Mapping[str, str]) -> str:
    """The path with the user's home instead of `~`, as pip has it; uv does not."""
    home = environ.get("HOME", "").rstrip("/")
    return f"{home}{path[1:]}" if home and path.startswith("~/") else path


def _of_uv(environ: Mapping[str, str], tables: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The settings of uv, by the names of its variables without `UV_`."""
    found: dict[str, str] = {}
    extra: list[str] = []
    links: list[str] = []
    for table in tables:
        pip = table.get("pip")
        layers = (pip, table) if isinstance(pip, Mapping) else (table,)
        for layer in layers:
            for name, value in layer.items():
                variable = name.upper().replace("-", "_").replace("ALLOW_INSECURE_HOST", "INSECURE_HOST")
                if isinstance(value, bool):
                    value = "1" if value else ""
                if isinstance(value, (str, int)) and variable not in ("FIND_LINKS", "EXTRA_INDEX_URL"):
                    found.setdefault(variable, str(value))
            found.setdefault("INSECURE_HOST", " ".join(_texts(layer.get("allow-insecure-host"))))
            extra += _texts(layer.get("extra-index-url"))
            links += _texts(layer.get("find-links"))
            for index in layer.get("index") or ():
                if not isinstance(index, Mapping) or not isinstance(index.get("url"), str) or index.get("explicit"):
                    continue
                address = f"{index['name']}={index['url']}" if isinstance(index.get("name"), str) else index["url"]
                if index.get("format") == "flat":
                    links.append(index["url"])
                elif index.get("default"):
                    found.setdefault("DEFAULT_INDEX", address)
                else:
                    extra.append(address)
    found |= {"INDEX": " ".join(extra), "FIND_LINKS": ",".join(links)}
    found |= {name.removeprefix("UV_"): value for name, value in environ.items() if name.startswith("UV_") and value}
    names = [name for name in found if is_installer_setting(f"UV_{name}") or name in PROXIES_OF_UV]
    found = {name: found[name] for name in names if found[name]}
    if "INDEX_URL" in found:  # the older names of the two
        found.setdefault("DEFAULT_INDEX", found.pop("INDEX_URL"))
    if "EXTRA_INDEX_URL" in found:
        found["INDEX"] = " ".join(filter(None, (found.get("INDEX"), found.pop("EXTRA_INDEX_URL"))))
    return found


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _share_indexes(pip: dict[str, str], uv: dict[str, str]) -> None:
    """Give each of the two what only the other one knows of indexes and links."""
    no_index = any(
        settings.pop("NO_INDEX", "").lower() in ("1", "true", "yes", "on", "y", "t") for settings in (pip, uv)
    )
    default, others = _address(uv.get("DEFAULT_INDEX")), [_address(word) for word in uv.get("INDEX", "").split()]
    links = uv.get("FIND_LINKS", "").split(",") if uv.get("FIND_LINKS") else []
    pairs = (
        ("INDEX_URL", default, "DEFAULT_INDEX", pip.get("INDEX_URL", "")),
        ("EXTRA_INDEX_URL", " ".join(others), "INDEX", " ".join(pip.get("EXTRA_INDEX_URL", "").split())),
        ("FIND_LINKS", " ".join(links), "FIND_LINKS", ",".join(pip.get("FIND_LINKS", "").split())),
        ("TRUSTED_HOST", uv.get("INSECURE_HOST", ""), "INSECURE_HOST", " ".join(pip.get("TRUSTED_HOST", "").split())),
    )
    for for_pip, of_uv, for_uv, of_pip in pairs:
        pip.update({for_pip: of_uv} if of_uv and not of_pip else {})
        uv.update({for_uv: of_pip} if of_pip and not of_uv else {})
    if no_index:
        pip["NO_INDEX"], uv["DEFAULT_INDEX"] = "1", EMPTY_INDEX
        uv.pop("INDEX", None)


def _address(index: str | None) -> str:
    """The address of an index of uv, which may have a name before it: `site=https://…`."""
    name, equal, address = (index or "").partition("=")
    return address if equal and "/" not in name else index or ""


def _name_certificates(
    others: dict[str, str], pip: dict[str, str], uv: dict[str, str], system_certificates: str | None
) -> None:
    """The certificates of one as those of the other; those of the system if none are named, as a browser has it."""
    system = bool(uv.pop("SYSTEM_CERTS", "") or uv.pop("NATIVE_TLS", ""))
    of_pip = pip.get("CERT") or others.get("REQUESTS_CA_BUNDLE") or others.get("CURL_CA_BUNDLE")
    of_uv = others.get("SSL_CERT_FILE") or (system_certificates if system else None)
    if not of_pip and not of_uv and not others.get("SSL_CERT_DIR"):
        of_pip = of_uv = system_certificates
    if of_pip or of_uv:
        pip["CERT"] = of_pip or of_uv or ""
        others["SSL_CERT_FILE"] = of_uv or of_pip or ""
    if pip.get("CLIENT_CERT"):
        others.setdefault("SSL_CLIENT_CERT", pip["CLIENT_CERT"])
    elif others.get("SSL_CLIENT_CERT"):
        pip["CLIENT_CERT"] = others["SSL_CLIENT_CERT"]


def _name_proxies(others: dict[str, str], pip: dict[str, str], uv: dict[str, str]) -> None:
    """pip's proxy, and those of uv's file, as the variables that all programs read; the caller's own win."""
    of_file = {name: uv.pop(name) for name in PROXIES_OF_UV if name in uv}
    for scheme in ("http", "https"):
        proxy = pip.get("PROXY") or of_file.get(f"{scheme.upper()}_PROXY")
        # With `PIP_PROXY`, pip does not look at these variables; uv looks at nothing else.
        if proxy and (pip.get("PROXY") or not (others.get(f"{scheme}_proxy") or others.get(f"{scheme.upper()}_PROXY"))):
            address = proxy if "://" in proxy else f"http://{proxy}"
            others[f"{scheme}_proxy"] = others[f"{scheme.upper()}_PROXY"] = address
    if of_file.get("NO_PROXY") and not (others.get("no_proxy") or others.get("NO_PROXY")):
        others["no_proxy"] = others["NO_PROXY"] = of_file["NO_PROXY"]
