"""The command line that most scripts of tests share: what they need by name, and a folder to work in."""

import argparse
import os


class WorkParser(argparse.ArgumentParser):
    """Of the script with docstring `doc`; `required` arguments, positional or "--flags", are text. Makes the folder that
    --work names."""

    def __init__(self, doc, *required):
        super().__init__(description=doc.split("\n")[0])
        for name in required:
            self.add_argument(name, **({"required": True} if name.startswith("--") else {}))
        self.add_argument("--work", required=True)

    def parse_known_args(self, *args, **kwargs):
        parsed, rest = super().parse_known_args(*args, **kwargs)
        os.makedirs(parsed.work, exist_ok=True)
        return parsed, rest
