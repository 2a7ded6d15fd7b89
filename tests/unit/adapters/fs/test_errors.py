"""Every errno there is becomes one failure that names the path; a few have a meaning of their own."""

import errno
import os

import pytest

from bcd.adapters.fs.errors import translate
from bcd.domain.model.failures import FixConfiguration, Message, Refused, TryLater

PATH = "/var/lib/bcd/node.key"
OWN_MEANING = {
    errno.ENOSPC: (TryLater, Message.NO_SPACE),
    errno.EDQUOT: (TryLater, Message.NO_SPACE),
    errno.EROFS: (TryLater, Message.READ_ONLY),
    errno.EACCES: (Refused, Message.PERMISSION_DENIED),
    errno.EPERM: (Refused, Message.PERMISSION_DENIED),
    errno.ELOOP: (FixConfiguration, Message.NOT_A_FILE),
    errno.EISDIR: (FixConfiguration, Message.NOT_A_FILE),
    errno.ENXIO: (FixConfiguration, Message.NOT_A_FILE),
    errno.ENOTDIR: (FixConfiguration, Message.NOT_A_DIRECTORY),
}


@pytest.mark.parametrize("code", sorted(errno.errorcode), ids=lambda code: errno.errorcode[code])
def test_every_errno_is_one_failure_that_names_the_path(code: int) -> None:
    kind, message = OWN_MEANING.get(code, (TryLater, Message.FILE_SYSTEM))
    failure = translate(OSError(code, os.strerror(code)), PATH, 4096)
    assert type(failure) is kind
    assert failure.message is message
    assert ("/var/lib/bcd" if message is Message.READ_ONLY else PATH) in failure.text
    if message is Message.FILE_SYSTEM:
        assert os.strerror(code) in failure.text
    assert failure.text.isprintable()


def test_an_error_without_words_is_told_by_its_number() -> None:
    assert translate(OSError(4711, None), PATH, None).text == f"{PATH}: errno 4711"


def test_b08_a_full_disk_is_told_with_what_is_free_when_that_is_known() -> None:
    """Field report B08."""
    full = OSError(errno.ENOSPC, "No space left on device")
    assert "(512 bytes free)" in translate(full, PATH, 512).text
    assert "(? bytes free)" in translate(full, PATH, None).text
