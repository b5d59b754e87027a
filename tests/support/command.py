"""The command ``focused`` in this process."""

from click.testing import CliRunner, Result

from focused.cli import main


def focused(*arguments: object, status: int = 0) -> Result:
    """Run the command, which must end with this exit status and may not break."""
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == status, done.output
    return done
