"""The machine this process runs on, by what the kernel shows in /sys and /proc. Starts no other program (B60)."""

import os

from bcd.adapters.hardware.ethtool import PermanentAddress, ask_driver, ask_nobody
from bcd.adapters.hardware.reading import names_in, read_text
from bcd.domain.model.claims import Claims, only_real, real_mac

_DMI = "sys/class/dmi/id"
_NET = "sys/class/net"
_GPUS = "proc/driver/nvidia/gpus"
_HOSTNAME = "proc/sys/kernel/hostname"
_BOOT_ID = "proc/sys/kernel/random/boot_id"

# linux/if_arp.h ARPHRD_ETHER, linux/netdevice.h NET_ADDR_PERM
_ETHERNET = "1"
_ADDRESS_IS_PERMANENT = "0"
_GPU_UUID = "GPU UUID"


class SysfsHardware:
    """`Hardware` of the tree of files at `root`. The serials and the product UUID are readable by root alone."""

    def __init__(self, root: str | os.PathLike[str] = "/", permanent: PermanentAddress | None = None) -> None:
        """`permanent` is by default the running kernel's drivers for `/`, and nobody for another root."""
        self._root = os.fspath(root)
        self._permanent = permanent or (ask_driver if self._root == "/" else ask_nobody)

    def claims(self) -> Claims:
        return only_real(
            Claims(
                product_uuid=self._read(_DMI, "product_uuid"),
                product_serial=self._read(_DMI, "product_serial"),
                board_serial=self._read(_DMI, "board_serial"),
                chassis_serial=self._read(_DMI, "chassis_serial"),
                macs=tuple(self._mac(device) for device in self._names(_NET)),
                gpu_uuids=tuple(self._gpu_uuid(gpu) for gpu in self._names(_GPUS)),
                hostname=self._read(_HOSTNAME),
                boot_id=self._read(_BOOT_ID),
            )
        )

    def _mac(self, device: str) -> str:
        """The permanent MAC of a physical Ethernet device, else empty (decision 24, B50)."""
        if not self._is_physical(device) or self._read(_NET, device, "type") != _ETHERNET:
            return ""
        if permanent := real_mac(self._permanent(device)):
            return permanent
        # Some drivers leave the permanent address blank; the present one is it as long as nobody has set another,
        # which is what a bond does to its ports.
        if self._read(_NET, device, "addr_assign_type") != _ADDRESS_IS_PERMANENT:
            return ""
        return self._read(_NET, device, "address")

    def _is_physical(self, device: str) -> bool:
        """veth, bridge, bond, vlan, tun and docker's have no device below them; an SR-IOV virtual function has one,
        and that belongs to a physical function."""
        below = self._path(_NET, device, "device")
        return os.path.lexists(below) and not os.path.lexists(os.path.join(below, "physfn"))

    def _gpu_uuid(self, gpu: str) -> str:
        for line in self._read(_GPUS, gpu, "information").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == _GPU_UUID:
                return value
        return ""

    def _names(self, directory: str) -> list[str]:
        return names_in(self._path(directory))

    def _read(self, *parts: str) -> str:
        return read_text(self._path(*parts)).strip()

    def _path(self, *parts: str) -> str:
        return os.path.join(self._root, *parts)
