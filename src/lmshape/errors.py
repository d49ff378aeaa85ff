"""The errors a user of lmshape can cause; each message names what is wrong and what to do."""


class LmshapeError(Exception):
    """Anything lmshape refuses to do: the message names the file, key or combination."""


class ConfigError(LmshapeError):
    """A study, a suite or a command-line setting that cannot be used."""
