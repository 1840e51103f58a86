"""``migrate``: a run of an earlier schema is copied forward. Room: deploy; light imports."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from deploy.commands import UserError, option
from deploy.commands.runs import find_run


def migrate(
    name: Annotated[Positional[str], arg(metavar="RUN")],
    /,
    *,
    to: Annotated[str | None, option("FOLDER")] = None,
) -> int:
    """Copy a run of an earlier version of the program, so that this one can go on with it.

    The run itself is not changed.

    Args:
        name: Folder of the run, or its name.
        to: Folder of the copy, which must not exist; by default beside the run.
    """
    from deploy.migration import MigrateError, default_target
    from deploy.migration import migrate as copy_forward
    from replay.redis_link import StoreError
    from replay.segments import SegmentError

    source = find_run(name)
    target = default_target(source) if to is None else Path(to)
    try:
        manifest = copy_forward(source, target)
    except (MigrateError, SegmentError, StoreError, OSError) as error:
        raise UserError(str(error)) from error
    before = manifest.migrations[-1].schema
    sys.stdout.write(
        f"copied run {str(source)!r} from schema {before} to {manifest.schema_version}: "
        f"{str(target)!r}; go on with: cardleague resume {shlex.quote(str(target))}\n"
    )
    return 0
