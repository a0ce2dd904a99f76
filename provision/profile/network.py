"""How a site's nodes reach the internet (`[network]`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.knowledge.secret_names import holds_user
from provision.profile.patterns import CONTROL, form
from provision.profile.reader import Reader

Reach = Literal["yes", "no", "proxy"]
HOST = form(r"[A-Za-z0-9][A-Za-z0-9._-]*", "of a host, such as `login.site.example`")
PROXY = form(r"https?://[A-Za-z0-9._-]+(:[0-9]+)?/?", "of a proxy, such as `http://proxy.site.example:3128`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Whether the login nodes and the compute nodes reach the internet: directly, not at all, or through `proxy`.

    `host` is the public name of the login node; `download_node` is the host for downloads if the site has a special one, and
    `data_host` the public name of the host for copies from and to other machines.
    """

    login: Reach
    compute: Reach
    proxy: str | None
    download_node: str | None = None
    host: str | None = None
    data_host: str | None = None

    @property
    def where_to_download(self) -> str | None:
        """The host on which to download what a job needs, as a phrase to follow `on`; None if no node has a network."""
        if self.download_node is not None:
            return f"{self.download_node} (`ssh {self.download_node}`)"
        return None if self.login == "no" else "a login node"

    @property
    def environ(self) -> tuple[tuple[str, str], ...]:
        """The variables that name the proxy: curl and Python read the lower-case ones, some programs only the upper-case ones."""
        if self.proxy is None:
            return ()
        return tuple((name, self.proxy) for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"))


def read_network(table: Reader) -> Network:
    """Read `[network]`; by default every node reaches the internet."""
    reach: tuple[Reach, ...] = ("yes", "no", "proxy")
    network = Network(
        login=table.choice("login", reach, "yes"),
        compute=table.choice("compute", reach, "yes"),
        proxy=table.optional("proxy"),
        download_node=table.optional("download_node", pattern=HOST),
        host=table.optional("host", pattern=HOST),
        data_host=table.optional("data_host", pattern=HOST),
    )
    if network.proxy is not None and not CONTROL.search(network.proxy) and not PROXY.fullmatch(network.proxy):
        # The value may have a password, so the fault does not repeat it.
        form = "is not an address like http://proxy.example.org:3128"
        user = "; all users can read a profile, so set a user and a password in `https_proxy` of your shell"
        table.fault("proxy", form + (user if holds_user(network.proxy) else ""))
    if "proxy" in (network.login, network.compute) and network.proxy is None:
        table.missing("proxy", "the address of the proxy through which nodes reach the network")
    table.done()
    return network
