"""The variables that decide how pip, uv and downloads reach the package index: mirrors, proxies and certificates.

Their values can hold passwords and tokens.

Sources: `pip install --help`; the page "Environment variables" of uv; curl(1).
"""

from __future__ import annotations

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
