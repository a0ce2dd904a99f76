"""From where a site's nodes reach the internet, as `[network]` describes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from provision.profile.reader import Reader

Reach = Literal["yes", "no", "proxy"]
HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PROXY = re.compile(r"https?://[A-Za-z0-9._-]+(:\d+)?/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What the login nodes and the compute nodes reach: everything, nothing, or through `proxy`, an address.

    `host` is the login node by the name that the world reaches it by; `download_node` the host on which the site wants
    downloads to run, where that is no login node.
    """

    login: Reach
    compute: Reach
    proxy: str | None
    download_node: str | None = None
    host: str | None = None

    @property
    def where_to_download(self) -> str | None:
        """Where to fetch what a job needs: for a sentence that goes on behind `on`. None: nowhere at this site."""
        if self.download_node is not None:
            return f"{self.download_node} (`ssh {self.download_node}`)"
        return None if self.login == "no" else "a login node"

    @property
    def environ(self) -> tuple[tuple[str, str], ...]:
        """The variables by which programs find the proxy: curl and Python read the lower case, some only the upper."""
        if self.proxy is None:
            return ()
        return tuple((name, self.proxy) for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"))


def read_network(table: Reader) -> Network:
    """The network of `[network]`; where nothing is said, every node reaches what it needs."""
    reach = ("yes", "no", "proxy")
    network = Network(
        login=table.text("login", "yes", choices=reach),  # type: ignore[arg-type]
        compute=table.text("compute", "yes", choices=reach),  # type: ignore[arg-type]
        proxy=table.optional("proxy", pattern=PROXY),
        download_node=table.optional("download_node", pattern=HOST),
        host=table.optional("host", pattern=HOST),
    )
    if "proxy" in (network.login, network.compute) and network.proxy is None:
        table.fault("proxy", "missing; the address of the proxy that nodes reach the network by")
    table.done()
    return network
