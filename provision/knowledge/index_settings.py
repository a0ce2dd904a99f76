"""The variables that decide how pip, uv and downloads reach the package index: mirrors, proxies and certificates.

Their values can hold passwords and tokens; how a secret is recognised from outside is here too: by the name of its variable, or
as a part of an address.

Sources: `pip install --help`; the page "Environment variables" of uv; curl(1).
"""

from __future__ import annotations

import re

# The part after `PIP_` or `UV_`.
INSTALLER_SETTINGS = (
    *("INDEX_URL", "EXTRA_INDEX_URL", "DEFAULT_INDEX", "INDEX", "CERT", "CLIENT_CERT", "PROXY", "TRUSTED_HOST"),
    *("INSECURE_HOST", "FIND_LINKS", "NO_INDEX", "CONFIG_FILE", "CACHE_DIR", "DEFAULT_TIMEOUT", "HTTP_TIMEOUT"),
    *("OFFLINE", "KEYRING_PROVIDER", "NATIVE_TLS", "SYSTEM_CERTS", "CREDENTIALS_DIR", "RETRIES", "HTTP_RETRIES"),
    *("PYPI_URL", "TIMEOUT"),
)
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "PIP_PROXY")
OTHERS = (
    *("no_proxy", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("SSL_CLIENT_CERT", "NETRC"),
)


# `TOKENIZERS_PARALLELISM` of Hugging Face is not a token.
SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|JWT|API_?KEY|ACCESS_?KEY|_KEYS?$|_PAT$|_PASS$|_PWD$|^SSHPASS$"
    r"|CONNECTION_STRING",
    re.IGNORECASE,
)
ADDRESS_WITH_USER = re.compile(r"://[^\s/?#]*@")


def is_secret_name(name: str) -> bool:
    """Whether the name of a variable says that its value is a secret."""
    return SECRET_NAME.search(name) is not None


def has_user(text: str) -> bool:
    """Whether a text has an address with a user, who may have a password."""
    return "@" in text and ADDRESS_WITH_USER.search(text) is not None


def holds_user(address: str) -> bool:
    """Whether an address has a user, who may have a password; a file that others can read must not have it."""
    return "@" in address.rpartition("://")[2]


def is_installer_setting(name: str) -> bool:
    """Whether this is a variable of pip or uv that decides from where packages come, and not how they are installed.

    uv reads the user and the password of the index `x` from `UV_INDEX_X_USERNAME` and `UV_INDEX_X_PASSWORD`.
    """
    tool, _, setting = name.partition("_")
    of_an_index = setting.startswith("INDEX_") and setting.endswith(("_USERNAME", "_PASSWORD"))
    return tool in ("PIP", "UV") and (setting in INSTALLER_SETTINGS or of_an_index)


def is_index_setting(name: str) -> bool:
    """Whether this variable decides how pip, uv or a download reaches the network."""
    return is_installer_setting(name) or name in PROXIES or name in OTHERS
