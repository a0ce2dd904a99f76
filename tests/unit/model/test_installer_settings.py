"""From where pip and uv get packages: one wish, in each of the spellings that pip and uv read, reaches both."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from parts.profiles import tomllib
from provision.model.installer_settings import EMPTY_INDEX, installer_settings

HOME = {"HOME": "/home/ada", "PATH": "/usr/bin"}


def settings(pip: str = "", uv: str = "", environ: Mapping[str, str] | None = None, **more: str) -> dict[str, str]:
    """What the installers get: texts of a file of pip and of one of uv, and variables."""
    return installer_settings(
        {**HOME, **(environ or {}), **more},
        pip_files=[pip],
        uv_tables=[tomllib.loads(uv)],
        system_certificates="/etc/system.pem",
    )


INDEX = {"UV_DEFAULT_INDEX": "https://m/simple", "PIP_INDEX_URL": "https://m/simple"}
CERT = {"SSL_CERT_FILE": "/ca.pem", "PIP_CERT": "/ca.pem"}


@pytest.mark.parametrize(
    ("pip", "uv", "environ", "expected"),
    [
        ("[global]\nindex-url = https://m/simple", "", {}, INDEX),
        ("[install]\nindex_url: https://m/simple", "", {}, INDEX),
        ("[global]\n--index-url=https://m/simple", "", {}, INDEX),
        ("[download]\npypi-url=https://m/simple", "", {}, INDEX),
        ("[global]\nindex-url=https://n\n[install]\nindex-url=https://m/simple", "", {}, INDEX),
        ("[global]\nindex-url=https://n", "", {"PIP_INDEX_URL": "https://m/simple"}, INDEX),
        ("", 'index-url = "https://m/simple"', {}, INDEX),
        ("", '[pip]\nindex-url = "https://m/simple"', {}, INDEX),
        ("", '[[index]]\nurl = "https://m/simple"\ndefault = true', {}, INDEX),
        ("", "", {"UV_INDEX_URL": "https://m/simple"}, INDEX),
        ("", "", {"UV_DEFAULT_INDEX": "site=https://m/simple"}, {"PIP_INDEX_URL": "https://m/simple"}),
        ("[global]\nextra-index-url =\n  https://a\n  https://b", "", {}, {"UV_INDEX": "https://a https://b"}),
        ("[global]\nfind-links = ~/w /opt/w", "", {}, {"UV_FIND_LINKS": "/home/ada/w,/opt/w"}),
        ("[global]\nno-index = yes\nfind-links = /w", "", {}, {"UV_DEFAULT_INDEX": EMPTY_INDEX, "PIP_NO_INDEX": "1"}),
        ("", "no-index = true", {}, {"UV_DEFAULT_INDEX": EMPTY_INDEX, "PIP_NO_INDEX": "1"}),
        ("[global]\ntrusted-host = a\n  b:8443", "", {}, {"UV_INSECURE_HOST": "a b:8443"}),
        ("[global]\ncert = /ca.pem", "", {}, CERT),
        ("[global]\ncert = ~/ca.pem", "", {}, {"SSL_CERT_FILE": "/home/ada/ca.pem"}),
        ("", "", {"PIP_CERT": "/ca.pem"}, CERT),
        ("", "", {"REQUESTS_CA_BUNDLE": "/ca.pem"}, CERT),
        ("", "", {"SSL_CERT_FILE": "/ca.pem"}, CERT),
        (
            "[global]\ncert = /ca.pem",
            "",
            {"SSL_CERT_FILE": "/b.pem"},
            {"PIP_CERT": "/ca.pem", "SSL_CERT_FILE": "/b.pem"},
        ),
        ("", "", {}, {"SSL_CERT_FILE": "/etc/system.pem", "PIP_CERT": "/etc/system.pem"}),
        ("", "system-certs = true", {}, {"SSL_CERT_FILE": "/etc/system.pem"}),
        ("[global]\nclient-cert = /me.pem", "", {}, {"SSL_CLIENT_CERT": "/me.pem", "PIP_CLIENT_CERT": "/me.pem"}),
        ("[global]\nproxy = gul:fugl@p:3128", "", {}, {"https_proxy": "http://gul:fugl@p:3128"}),
        ("[global]\nproxy = http://p:3128", "", {"https_proxy": "http://q"}, {"HTTPS_PROXY": "http://p:3128"}),
        ("", 'https-proxy = "http://p:3128"', {}, {"https_proxy": "http://p:3128"}),
        ("not a configuration", "", {}, {"PIP_CONFIG_FILE": "/dev/null", "UV_NO_CONFIG": "1"}),
    ],
)
def test_what_one_of_the_two_knows_of_the_index_reaches_both(
    pip: str, uv: str, environ: dict[str, str], expected: dict[str, str]
) -> None:
    found = settings(pip, uv, environ)
    assert {name: found.get(name) for name in expected} == expected


def test_a_file_that_wins_over_another_comes_later() -> None:
    texts = ["[global]\nindex-url = https://a", "[global]\nindex-url = https://b"]
    found = installer_settings(HOME, pip_files=texts, uv_tables=[], system_certificates=None)
    assert found["UV_DEFAULT_INDEX"] == "https://b"
    assert "SSL_CERT_FILE" not in found


@pytest.mark.parametrize("option", ["link-mode", "target", "prefix", "root", "user", "no-binary", "compile", "python"])
def test_nothing_that_says_how_packages_are_laid_down_reaches_them(option: str) -> None:
    variable = option.upper().replace("-", "_")
    variables = {f"PIP_{variable}": "x", f"UV_{variable}": "x", f"VIRTUALENV_{variable}": "x"}
    found = settings(f"[install]\n{option} = x", f'{option} = "x"\n[pip]\n{option} = "x"', variables)
    plain = settings(environ={"SSL_CERT_FILE": "/ca.pem"})
    assert found.keys() == plain.keys()
