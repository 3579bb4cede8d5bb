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

ENGINES = {"docker": "Docker", "podman": "Podman"}
NO_ENGINE_FIX = {
    "docker": "install Docker (`apt install docker.io`) and start it, or name its socket in DOCKER_HOST=unix:///path",
    "podman": "install Podman and start its socket (`systemctl --user start podman.socket`), or name it in CONTAINER_HOST=unix:///path",
}
ENGINE_CLOSED_FIX = {
    "docker": "add yourself to its group, which is as good as root: `sudo usermod -aG docker $USER`, then log in again",
    "podman": "use your own socket, not root's: `systemctl --user start podman.socket`",
}
OPEN_FIX = (
    "name an image with a whole Python, ctypes too, in HERDBOOK_BOX_IMAGE (Debian's python3-minimal has none), "
    "and see how the engine is set up: `docker info`"
)
CGROUP_FIX = "the engine wants cgroups as systemd sets them up: use the other engine, or a host with cgroups of version 2"

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


def engine_finding(name: str, said: str, *, image: str) -> Finding:
    """The finding for a container that did not run."""
    words = " ".join(said.split())[-300:]
    return Finding(ok=False, what=f"{name}: no container ran: {words}", fix=engine_fix(name, words, image=image))


def engine_fix(name: str, words: str, *, image: str) -> str:
    low = words.lower()
    if "permission denied" in low and "cannot be reached" in low:
        return ENGINE_CLOSED_FIX[name]
    if "engine listens" in low or "cannot be reached" in low:
        return NO_ENGINE_FIX[name]
    if "no such image" in low or "image not known" in low or "not known" in low:
        return f"`{name} pull {image}`, or name an image that is there and has Python in HERDBOOK_BOX_IMAGE"
    if "python3" in low and ("not found" in low or "no such file" in low):
        return f"the image {image} has no python3: name one that has in HERDBOOK_BOX_IMAGE"
    if "cgroup" in low:
        return CGROUP_FIX
    return f"see whether `{name} run --rm --network none {image} python3 -V` works in a shell, as the same user, and what it says"


SPRITES_FIXES = {
    "no token": "make a token at sprites.dev and set SPRITES_TOKEN",
    "no package": "the package for Sprites is missing: `pip install 'herdbook[sprites]'`",
    "no connector": (
        "make a connector of the kind custom API to a herdbook server that Sprites can reach, allow it to machines named "
        "`herdbook-*`, and set HERDBOOK_SPRITES_CONNECTOR_ID to its id"
    ),
    "does not take": "make a new token at sprites.dev and set SPRITES_TOKEN",
}


def sprites_finding(said: str) -> Finding:
    """The finding for a machine that did not run."""
    fix = next((fix for sign, fix in SPRITES_FIXES.items() if sign in said), "see https://status.fly.io, and try `sprite list`")
    return Finding(ok=False, what=f"sprites: {said}", fix=fix)


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
