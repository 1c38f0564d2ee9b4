"""The text the model is trained on: the King James Bible, from two Debian packages.

    python3 text.py --out FILE     writes the whole text (stdout without --out)

The text is public domain and stays out of the repository. It is one verse per line, without the verse
numbers, every line ended by a newline. `split` says which part is held out; training and measuring both use it.
"""

import argparse
import shutil
import subprocess
import sys

INSTALL = "apt-get install bible-kjv bible-kjv-text"
WHOLE_BIBLE = "gen1:1-rev22:21"
HELD_OUT_ONE_IN = 20
LEAST_CHARACTERS = 4_000_000


def read_text() -> str:
    """The whole text, one verse per line, or SystemExit saying what to install."""
    if shutil.which("bible") is None:
        raise SystemExit(f"the program `bible` is missing, install it: {INSTALL}")
    # -f prints one verse per line, each headed by its number: "Ge1:1 In the beginning ..."
    printed = subprocess.run(["bible", "-f", WHOLE_BIBLE], capture_output=True, text=True, check=True).stdout
    verses = [line.partition(" ")[2] for line in printed.splitlines()]
    text = "".join(verse + "\n" for verse in verses)
    if len(text) < LEAST_CHARACTERS:
        raise SystemExit(f"`bible` printed only {len(text)} characters, is its text installed? {INSTALL}")
    return text


def split(text: str) -> tuple[str, str]:
    """The training part and the held-out part: the last 5 % of the characters are held out."""
    cut = len(text) - len(text) // HELD_OUT_ONE_IN
    return text[:cut], text[cut:]


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the training text (King James Bible, public domain).")
    parser.add_argument("--out", help="file to write instead of stdout")
    arguments = parser.parse_args()
    text = read_text()
    if arguments.out is None:
        sys.stdout.write(text)
        return
    with open(arguments.out, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


if __name__ == "__main__":
    main()
