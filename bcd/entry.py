"""The console scripts. Nothing is imported at the top: a failed import, like any unforeseen exception, must not end
the process with Python's own status 1, which for bcd means that an identity is dead (decision 18)."""


def bcd() -> int:
    """`bcd`."""
    return _run("bcd", "bcd.cli.main")


def bcd_fakehw() -> int:
    """`bcd-fakehw`: bcd with the machine it says it is."""
    return _run("bcd-fakehw", "bcd.cli.fakehw")


def bcd_controlplane() -> int:
    """`bcd-controlplane`."""
    return _run("bcd-controlplane", "bcd.controlplane.cli.main")


def _run(program: str, module: str) -> int:
    """Runs the command and ends the process with its status."""
    internal = 70
    try:
        import gc
        import os
        import sys
        from importlib import import_module

        _open_standard_streams()
        # Imports make a great many objects and no garbage: looking for it is a tenth of a command's time.
        gc.disable()
        main = import_module(module).main
        gc.enable()
        status = int(main(sys.argv[1:]))
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read the output has seen enough, and may still want to know how it ended.
            return _end("", status)
        except OSError as error:
            # A full disk, or a terminal that is gone. No defect of ours, and what was to be done is done.
            return _end(f"{program}: cannot write the result to standard output: {error.strerror}", status or 75)
        # Everything durable is on the disk by now, and standard error is never buffered. Taking the interpreter apart
        # costs time, and has hung on a gRPC channel before.
        os._exit(status)
    except KeyboardInterrupt:
        return _end(f"{program}: interrupted", 75)
    except BaseException as error:  # noqa: BLE001 - the outermost line: whatever it is, it is not "revoked"
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            # The output was longer than a buffer, and the command had not ended.
            return _end("", 0)
        return _end(f"{program}: internal error ({_named(error)}): please report it; nothing was deleted", internal)


def _nobody_reads() -> bool:
    """Whether it is standard output whose reader has gone, and not some other pipe or connection."""
    import sys

    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return True
    except (OSError, ValueError):
        pass
    return False


def _open_standard_streams() -> None:
    """Standard streams that a supervisor left closed lead nowhere from now on. Otherwise the next file opened, an
    identity's, would get the number, and what is printed would be written into it."""
    import io
    import os
    import sys

    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is what an open gets.
            os.open(os.devnull, os.O_RDONLY if descriptor == 0 else os.O_WRONLY)
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, "r" if descriptor == 0 else "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Whatever the locale: its encoding may lack a character, a path need not be text, and neither is a defect.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # With PYTHONUNBUFFERED a print would fail in the middle of a command, not at its end.
        sys.stdout.reconfigure(write_through=False)


def _named(error: BaseException) -> str:
    """The kind of error and where it was raised; its text only for a failed import, as any other may hold a secret."""
    text = f": {error}" if isinstance(error, ImportError) else ""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        where = f" at {trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
    return f"{type(error).__name__}{text}{where}"


def _end(line: str, status: int) -> int:
    """Ends the process with `status`, and `line` on standard error if that is still possible."""
    import os

    if line:
        try:
            os.write(2, line.replace("\n", " ").encode() + b"\n")
        except OSError:
            pass
    # Not by sys.exit: what is left in Python's buffers would be written, fail again and change the status to 120, and a
    # defect may have left a gRPC channel open, on which the interpreter hangs.
    os._exit(status)
