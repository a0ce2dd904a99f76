"""How a site's nodes reach the internet (`[network]`)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from provision.knowledge.secret_names import holds_user
from provision.profile.patterns import Form
from provision.profile.reader import FormRule, Reader

Reach = Literal["yes", "no", "proxy"]
HOST = Form(r"[A-Za-z0-9][A-Za-z0-9._-]*", "of a host, such as `login.site.example`")
Host = Annotated[str, HOST]
PROXY = Form(r"https?://[A-Za-z0-9._-]+(:[0-9]+)?/?")


def not_a_proxy(address: str) -> str | None:
    """What is wrong with the address of a proxy; it may have a password, so it is not repeated."""
    user = "; all users can read a profile, so set a user and a password in `https_proxy` of your shell"
    wrong = f"is not an address like http://proxy.example.org:3128{user if holds_user(address) else ''}"
    return None if PROXY.fullmatch(address) else wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Whether the login nodes and the compute nodes reach the internet: directly, not at all, or through `proxy`.

    `host` is the public name of the login node; `download_node` is the host for downloads if the site has a special one, and
    `data_host` the public name of the host for copies from and to other machines.
    """

    login: Reach = "yes"
    compute: Reach = "yes"
    proxy: Annotated[str, FormRule(not_a_proxy)] | None = None
    download_node: Host | None = None
    host: Host | None = None
    data_host: Host | None = None

    def add_faults(self, table: Reader) -> None:
        """Record that nodes use a proxy whose address is missing."""
        if "proxy" in (self.login, self.compute) and self.proxy is None:
            table.missing("proxy", "the address of the proxy through which nodes reach the network")

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
