"""Why boxes do not work here, and the sentence that mends it: from what bwrap said and what the kernel's settings are. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from herdbook.boxes.provider import Finding

NO_BWRAP_FIX = "install bubblewrap: `pip install 'herdbook[boxes]'`, or your distribution's package (`apt install bubblewrap`)"
NOT_LINUX = Finding(
    ok=False,
    what="bubblewrap: this is not Linux",
    fix="run herdbook in a Linux virtual machine or container that may make user namespaces",
)
APPARMOR_FIX = (
    "AppArmor forbids user namespaces to unprivileged programs: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, "
    "or give bwrap an AppArmor profile with `userns,`"
)
CLONE_FIX = "unprivileged user namespaces are off: `sudo sysctl kernel.unprivileged_userns_clone=1`"
MAX_FIX = "user namespaces are limited to none: `sudo sysctl user.max_user_namespaces=15000`"
CONTAINER_FIX = (
    "a container around herdbook forbids namespaces: run it outside, or start the container with "
    "`--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, and not as root"
)
ELSE_FIX = "see whether `bwrap --unshare-all --ro-bind / / true` works in a shell, as the same user, and what it says"

SETTINGS = (
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/unprivileged_userns_clone",
    "user/max_user_namespaces",
)


def explain(said: str, settings: Mapping[str, str] | None = None, *, as_root: bool = False) -> Finding:
    """The finding for a sandbox that did not start: a setting that explains it wins over the wording, which varies by version."""
    words = " ".join(said.split())[-300:]
    return Finding(
        ok=False, what=f"bubblewrap: the sandbox did not start: {words}", fix=fix_for(words, settings or {}, as_root=as_root)
    )


def fix_for(words: str, settings: Mapping[str, str], *, as_root: bool) -> str:
    if settings.get("user/max_user_namespaces") == "0":
        return MAX_FIX
    if settings.get("kernel/unprivileged_userns_clone") == "0" and not as_root:
        return CLONE_FIX
    if settings.get("kernel/apparmor_restrict_unprivileged_userns") == "1" and not as_root:
        return APPARMOR_FIX
    if any(sign in words for sign in ("proc", "namespace", "not permitted", "uid map", "Permission denied")):
        return CONTAINER_FIX
    return ELSE_FIX


def kernel_settings() -> dict[str, str]:
    """The kernel's settings that decide about user namespaces, as far as it has them."""
    found = {}
    for name in SETTINGS:
        try:
            with open(f"/proc/sys/{name}", encoding="ascii") as file:
                found[name] = file.read().strip()
        except OSError:
            continue  # because most kernels have only some of them
    return found
